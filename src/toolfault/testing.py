"""For the tests of agents and tools: what was reported, and whether an answer keeps the contract.

with capture_tool_errors() as reported:
    book_meeting("next Tuesday", "10:00")
assert reported.only().code == "INVALID_ARGUMENT"
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolfault import taxonomy
from toolfault.conventions import MAX_MESSAGE
from toolfault.taxonomy import Action, Code
from toolfault.telemetry import report
from toolfault.telemetry.record import Attempt, ToolCall

__all__ = ["Attempt", "Reported", "ToolCall", "assert_envelope", "capture_tool_errors"]


class Reported:
    """The calls that ended while it was listening, in the order they ended."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    @property
    def errors(self) -> list[ToolCall]:
        """The calls that were neither ok nor cancelled; a declined one is among them."""
        return [call for call in self.calls if call.outcome not in taxonomy.QUIET_OUTCOMES]

    def only(self) -> ToolCall:
        """The one error reported.

        Raises:
            AssertionError: there was none, or more than one; the message lists them.
        """
        if len(self.errors) != 1:
            told = ", ".join(f"{e.tool} {e.outcome} {e.reason}" for e in self.errors) or "none"
            raise AssertionError(f"expected one tool error, reported: {told}")
        return self.errors[0]


@contextmanager
def capture_tool_errors() -> Iterator[Reported]:
    """Listen to every call that ends inside the `with` block, in any thread.

    Needs no SDK, and changes nothing about what is exported.
    """
    reported = Reported()
    listen = reported.calls.append
    report.listeners.append(listen)
    try:
        yield reported
    finally:
        report.listeners.remove(listen)


def assert_envelope(
    answer: Any,
    *,
    status: str | None = None,
    code: Code | str | None = None,
    action: Action | str | None = None,
    **expected: Any,
) -> None:
    """Check that an answer is an envelope that keeps the contract, and says what is expected.

    Args:
        answer: what a guarded tool returned.
        status: expected status, "ok", "error" or "declined".
        code: expected code of an error.
        action: expected action of an error.
        **expected: other keys of the error, such as `field="date"`.

    Raises:
        AssertionError: the first thing that is wrong.
    """
    _check(isinstance(answer, dict), f"an envelope is a dict, not {type(answer).__name__}")
    told = answer.get("status")
    _check(told in ("ok", "error", "declined"), f"status is {told!r}, not ok, error or declined")
    _check(status in (None, told), f"status is {told!r}, expected {status!r}")
    if told != "error":
        _check("output" in answer, f"status is {told!r} and there is no output")
        _check(
            code is None and action is None and not expected, f"status is {told!r}, not an error"
        )
        return
    error = answer.get("error")
    _check(isinstance(error, dict), f"status is 'error' and `error` is {error!r}, not a dict")
    _check_error(error)
    wanted = expected | {k: v for k, v in (("code", code), ("action", action)) if v is not None}
    for key, value in wanted.items():
        _check(error.get(key) == value, f"{key} is {error.get(key)!r}, expected {value!r}")


def _check_error(error: dict[str, Any]) -> None:
    _check(error.get("code") in list(Code), f"code {error.get('code')!r} is not in the closed set")
    action: Any = error.get("action")
    _check(
        action in list(Action) and action != Action.NONE,
        f"action {action!r} is not in the closed set",
    )
    message: Any = error.get("message")
    _check(
        isinstance(message, str) and message != "",
        f"message is {message!r}, not text for the model",
    )
    _check(len(message) <= MAX_MESSAGE, f"message has {len(message)} characters, at most 300")
    retryable = taxonomy.is_retryable(Action(action))
    told = error.get("retryable")
    _check(told is retryable, f"retryable is {told!r}, with action {action!r} it is {retryable}")
    _check(
        action not in taxonomy.ACTIONS_WITH_REFERENCE or f"(ref {error.get('ref')})" in message,
        f"action is {action!r} and the message does not say the reference, {error.get('ref')!r}",
    )


def _check(holds: Any, problem: str) -> None:
    if not holds:
        raise AssertionError(problem)
