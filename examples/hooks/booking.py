"""The tools of the examples and what their model asks for, step by step.

Every framework is given the same tools and the same script, and ends with the same calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import toolfault
from toolfault.testing import capture_tool_errors

#: What the model calls, one after the other.
SCRIPT: list[tuple[str, dict[str, str]]] = [
    ("list_slots", {"day": "2026-03-02"}),
    ("book_meeting", {"slot": "09:00"}),
    ("book_meeting", {"slot": "10:00"}),
    ("book_meeting", {"slot": "11:00"}),
    ("book_meeting", {}),
    ("cancel_meeting", {"meeting": "m-1"}),
    ("reschedule_meeting", {"meeting": "m-1"}),
]


@toolfault.guard("list_slots", writes=False)
def list_slots(day: str) -> dict:
    """List the free slots of a day."""
    return {"day": day, "slots": ["09:00", "10:00", "11:00"]}


@toolfault.guard("book_meeting", reasons={"slot_taken": "That slot has just been taken."})
def book_meeting(slot: str) -> dict:
    """Book a meeting at a time of day."""
    if slot == "10:00":
        raise toolfault.ToolRefusal("book_meeting", "slot_taken", "The slot is taken.")
    if slot == "11:00":
        raise ConnectionRefusedError("calendar.internal:8443")
    return {"meeting": "m-1", "slot": slot}


@toolfault.guard("cancel_meeting")
def cancel_meeting(meeting: str) -> dict:
    """Cancel a meeting."""
    return {"cancelled": {}[meeting]}


TOOLS = [list_slots, book_meeting, cancel_meeting]


@contextmanager
def printed() -> Iterator[None]:
    """Print every call that ends inside; with an OTLP endpoint set, send it there as well."""
    if "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ:
        toolfault.configure("desk")
    with capture_tool_errors() as reported:
        yield
    for call in reported.calls:
        said = f"{call.code} {call.reason}" if call.code else ""
        print(f"{call.tool:20}{call.outcome:12}{said:40}attempts {len(call.attempts)}".rstrip())
