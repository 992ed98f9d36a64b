"""Calls that never ran: unknown tool, denied, arguments rejected before the body."""

from __future__ import annotations

from toolfault import conventions as c
from toolfault.attempts import tool_named
from toolfault.call import Call
from toolfault.envelope import Envelope
from toolfault.errors import ToolError
from toolfault.taxonomy import Outcome
from toolfault.telemetry import report
from toolfault.telemetry.record import Attributes
from toolfault.transport import TRANSPORT


def never_ran(error: ToolError, *, call_id: str | None = None) -> Envelope:
    """Report a call that was turned away before anything ran; what the model is to read.

    Args:
        error: `ToolNotFoundError`, `ToolNotPermittedError` or `ToolArgumentValidationError`.
        call_id: the model's id of the call.

    Raises:
        TypeError: it is no typed error.
    """
    if not isinstance(error, ToolError):
        raise TypeError(f"{error!r} is no typed error; give a ToolNotFoundError or the like")
    call = Call(tool_named(error.tool), TRANSPORT, call_id=call_id)
    call.start()
    try:
        answer = call.never_ran(error)
        if error.outcome is Outcome.NOT_FOUND:
            report_unregistered(call)
    finally:
        call.stop()
    return answer


def report_unregistered(call: Call) -> None:
    """Report that the model named a tool that does not exist."""
    told: Attributes = {
        c.TOOL_NAME: call.tool.name,
        c.REFERENCE_ID: call.reference_id,
    }
    report.send(c.UNREGISTERED_TOOL, told, call.span)
