"""The scripted model: reads each envelope as a language model would, and does what it says."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

_TUESDAY = 1


class ToolCall(NamedTuple):
    """What the model wants to run."""

    tool: str
    arguments: dict[str, Any]


class Turn(NamedTuple):
    """One message of the user, and the model's way of dealing with it."""

    conversation: str
    user: str
    script: Callable[[], Script]


#: Yields calls, is sent envelopes, returns what the user reads.
Script = Generator[ToolCall, dict[str, Any], str]


def _action(answer: dict[str, Any]) -> str:
    return str(answer.get("error", {}).get("action", "none"))


def _ref(answer: dict[str, Any]) -> str:
    return f" (ref {answer['error']['ref']})"


def _next_tuesday() -> str:
    today = datetime.now(UTC).date()
    return (today + timedelta(days=(_TUESDAY - today.weekday() - 1) % 7 + 1)).isoformat()


def _book() -> Script:
    answer = yield ToolCall("book_meeting", {"date": "next Tuesday", "slot": "10:00"})
    call = ToolCall("book_meeting", {"date": _next_tuesday(), "slot": "10:00"})
    while _action(answer) in ("fix_arguments", "retry_later"):
        answer = yield call
    if answer["status"] == "ok":
        return f"Booked for {answer['output']['start']}."
    return "The calendar is not available at the moment and nothing was booked." + _ref(answer)


def _book_again() -> Script:
    answer = yield ToolCall("book_meeting", {"date": _next_tuesday(), "slot": "10:00"})
    return f"Done: {answer['output']['meetingId']}, {answer['output']['start']}."


def _cancel() -> Script:
    answer = yield ToolCall("cancel_booking", {"meeting_id": "m-7781"})
    return "It has already begun, so it stays." if answer["status"] == "declined" else "Cancelled."


def _invite() -> Script:
    answer = yield ToolCall("send_invitation", {"meeting_id": "m-7781", "email": "ana@example.org"})
    return "I cannot see whether the invitation went out; please ask Ana." + _ref(answer)


def _summarise() -> Script:
    answer = yield ToolCall("summarise_week", {"week": 41})
    return "The summary ran into a fault on our side." + _ref(answer)


def _delete() -> Script:
    answer = yield ToolCall("delete_calendar", {"name": "team"})
    return "I may not delete a calendar; please ask an administrator." + _ref(answer)


def _create_event() -> Script:
    answer = yield ToolCall("create_event", {"title": "Review"})
    return "I have no tool for that." + _ref(answer)


TURNS = (
    Turn("c-booking", "Book next Tuesday at ten.", _book),
    Turn("c-booking", "Try again.", _book_again),
    Turn("c-changes", "Cancel the meeting that is running.", _cancel),
    Turn("c-changes", "Invite Ana.", _invite),
    Turn("c-changes", "Sum up week 41.", _summarise),
    Turn("c-tidying", "Delete the team calendar.", _delete),
    Turn("c-tidying", "Create an event for the review.", _create_event),
)
