"""A scheduling agent whose calendar is down: what the model reads, step by step.

    python examples/booking_agent.py

Needs nothing but `pip install toolfault`. With `toolfault.configure()` and a running
`toolfault up` the same calls can be looked up by their reference.
"""

from __future__ import annotations

import json
from datetime import date

import toolfault


class CalendarBusyError(Exception):
    """What the calendar's own client raises."""


class Calendar:
    """A stand-in for the calendar service: it answers what it is told to."""

    def __init__(self) -> None:
        self.answers = [503, 503, 200, 409]

    def book(self, day: date, slot: str) -> dict[str, str]:
        status = self.answers.pop(0)
        if status == 409:
            raise CalendarBusyError("row 4711 locked by user 12")
        if status != 200:
            raise ConnectionRefusedError("calendar.internal:8443")
        return {"meeting_id": "m-7781", "start": f"{day}T{slot}:00Z"}


calendar = Calendar()
CALENDAR_ERRORS = toolfault.ToolErrorMap(
    {CalendarBusyError: toolfault.permanent("slot_taken", code=toolfault.Code.CONFLICT)}
)


@toolfault.guard(
    "book_meeting",
    owner="calendar team",
    owner_contact="#calendar",
    reasons={"upstream_unavailable": "The calendar is down. Nothing was booked."},
    error_map=CALENDAR_ERRORS,
)
def book_meeting(date_: str, slot: str) -> dict[str, str]:
    """Book a meeting on an ISO-8601 calendar date at a 24 h start time."""
    try:
        day = date.fromisoformat(date_)
    except ValueError:
        raise toolfault.ToolArgumentValidationError(
            "book_meeting",
            "bad_date",
            field="date_",
            message="date_ must be an ISO-8601 calendar date such as 2026-10-06",
        ) from None
    return calendar.book(day, slot)


def main() -> list[dict[str, object]]:
    """Play the conversation; a real agent would let its model choose the arguments."""
    told = []
    with toolfault.run("conversation-1", agent="scheduler"):
        for day in ("next Tuesday", "2026-10-06", "2026-10-06", "2026-10-06", "2026-10-07"):
            answer = book_meeting(day, "10:00")
            told.append(answer)
            print(f"book_meeting({day!r}, '10:00')\n  {json.dumps(answer)}")
    return told


if __name__ == "__main__":
    main()
