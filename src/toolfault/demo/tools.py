"""The agent's tools: plain functions behind the hook."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable
from datetime import date as calendar_date
from typing import Any

import toolfault

CALENDAR = "DEMO_CALENDAR"  # environment: address of the calendar service
_SECONDS = 0.5
_OWNED: dict[str, Any] = {
    "owner": "Calendar tools",
    "owner_contact": "#calendar-oncall",
    "runbook": "https://runbooks.example/calendar",
}


def _call(path: str, body: dict[str, str] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ[CALENDAR] + path, data)  # noqa: S310 - our own address
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:  # noqa: S310
        return json.load(response)


@toolfault.guard("book_meeting", **_OWNED)
def book_meeting(date: str, slot: str) -> Any:
    """Book a meeting. `date` is ISO-8601, `slot` the start in 24 h time."""
    try:
        calendar_date.fromisoformat(date)
    except ValueError:
        raise toolfault.ToolArgumentValidationError(
            "book_meeting",
            "date_not_iso",
            message="date must be an ISO-8601 calendar date such as 2026-10-06",
            field="date",
        ) from None
    return _call("/meetings", {"date": date, "slot": slot})


@toolfault.guard(
    "cancel_booking",
    **_OWNED,
    reasons={
        "booking_not_cancellable": "This meeting has already begun, so it cannot be cancelled."
    },
)
def cancel_booking(meeting_id: str) -> Any:
    """Cancel a booking that has not begun."""
    if _call(f"/meetings/{meeting_id}")["state"] == "started":
        raise toolfault.ToolRefusal(
            "cancel_booking", "booking_not_cancellable", "The meeting has already begun."
        )
    return _call(f"/meetings/{meeting_id}/cancel", {})


@toolfault.guard("send_invitation", **_OWNED)
def send_invitation(meeting_id: str, email: str) -> Any:
    """Send an invitation by e-mail."""
    return _call("/invitations", {"meetingId": meeting_id, "email": email})


@toolfault.guard("summarise_week", writes=False, **_OWNED)
def summarise_week(week: int) -> Any:
    """Sum a week's meetings up. Has a bug whose message holds a secret: it must not travel."""
    secret = "tok" + "en=not-a-real-secret-4711"
    raise RuntimeError(f"no feed for week {week} at https://feeds.example/week?{secret}")


TOOLS: dict[str, Callable[..., Any]] = {
    "book_meeting": book_meeting,
    "cancel_booking": cancel_booking,
    "send_invitation": send_invitation,
    "summarise_week": summarise_week,
}
#: What only a person may do: known to the model, never run by the agent.
NEEDS_APPROVAL = frozenset({"delete_calendar"})
