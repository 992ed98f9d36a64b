"""Which failure of a tool the model reads, and which ends the run: decided error by error.

@toolfault.guard("get_order", on_error=handlers.fail_invocation_unless_visible_to_llm())

A handler returns the text for the model, or None for the next one to decide; None from all of
them escalates: the typed error is raised to the caller. So does a blank text, and whatever a
handler raises. Every text is scrubbed and cut like any message.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from toolfault import carried, safe_log
from toolfault import conventions as c
from toolfault.attempts import tool_named
from toolfault.call import Call, Decide
from toolfault.envelope import Envelope
from toolfault.errors import ToolError
from toolfault.telemetry import report
from toolfault.transport import TRANSPORT

_log = logging.getLogger(__name__)


@runtime_checkable
class ToolErrorVisibleToLlm(Protocol):
    """An exception that says itself what the model may read of it.

    A typed error of toolfault with a `message` is one as well: that text is meant for the model.
    """

    def message_for_llm(self) -> str:
        """The text for the model."""


class ToolErrorContext(NamedTuple):
    """Where an error occurred."""

    tool: str
    raw_error: BaseException  # as the tool raised it, before a group of one was unwrapped
    typed: ToolError  # the same in the words of the taxonomy
    attempts: int
    reference_id: str
    call_id: str | None


#: What a handler is: the text for the model, or None to leave it to the next one.
Handler = Callable[[BaseException, ToolErrorContext], str | None]


class SensitiveMessageWarning(UserWarning):
    """Exception messages are sent to the model; filter it once all of them are written for that."""


def fail_invocation() -> Handler:
    """A handler that raises every failure to the caller; nothing of it reaches the model.

    For tools without which no answer can be right.
    """

    def handler(error: BaseException, _: ToolErrorContext) -> str | None:
        raise error

    return handler


def send_exception_message_to_llm() -> Handler:
    """A handler that sends the exception's own message to the model.

    WARNING: this can expose sensitive data. An exception's message is usually written for
    developers: it can hold file paths, SQL, credentials, answers of other services, personal data.
    Everything sent reaches the model's provider, stays in the conversation and can end in the
    answer the user reads, in logs and in telemetry. It is scrubbed, which is the second line of
    defence and not the first. Use it only where the messages of all exceptions of the tool are
    written with that in mind; else use `send_generic_message_to_llm_unless_visible_to_llm`.

    What an error that is visible to the model says goes before its message.
    """
    warnings.warn(
        "send_exception_message_to_llm() sends exception messages to the model: they can hold "
        "secrets, SQL and personal data, and the user may read them. Prefer "
        "send_generic_message_to_llm_unless_visible_to_llm().",
        SensitiveMessageWarning,
        stacklevel=2,
    )

    def handler(error: BaseException, _: ToolErrorContext) -> str | None:
        visible = _visible_text(error)
        return carried.text(error) if visible is None else visible

    return handler


def fail_invocation_unless_visible_to_llm() -> Handler:
    """A handler that sends what a visible error says, and raises every other failure.

    What the model can do something about is told in your words; a bug or a database that is down
    ends the run instead of being hidden from you.
    """

    def handler(error: BaseException, _: ToolErrorContext) -> str | None:
        visible = _visible_text(error)
        if visible is None:
            raise error
        return visible

    return handler


def send_generic_message_to_llm_unless_visible_to_llm(message: str) -> Handler:
    """A handler that sends what a visible error says, and `message` for every other failure.

    The run goes on, so an unexpected failure does not reach the caller: it is logged as a warning
    with its stack.

    Raises:
        ValueError: the message is blank.
    """
    if not message.strip():
        raise ValueError("the generic message is blank; write what the model may know")

    def handler(error: BaseException, context: ToolErrorContext) -> str | None:
        visible = _visible_text(error)
        if visible is not None:
            return visible
        safe_log.log(
            _log,
            logging.WARNING,
            "tool %s failed, ref %s; the model was told a generic message",
            context.tool,
            context.reference_id,
            exc_info=context.raw_error,
        )
        return message

    return handler


def _visible_text(error: BaseException) -> str | None:
    """What the outermost visible error among the error and its causes says; None without one."""
    for link in carried.links(error, set()):
        if isinstance(link, ToolErrorVisibleToLlm):
            return link.message_for_llm()
        if isinstance(link, ToolError) and link.message is not None:
            return link.message
    return None


def deciding(handlers: Sequence[Handler]) -> Decide:
    """The handlers as what a call asks: the first result wins."""

    def decide(error: ToolError, call: Call) -> str | None:
        raw = error.raw_error or error
        context = ToolErrorContext(
            tool=call.tool.name,
            raw_error=raw,
            typed=error,
            attempts=len(call.attempts),
            reference_id=call.reference_id,
            call_id=call.call_id,
        )
        return _first_text(handlers, _unwrapped(raw), context)

    return decide


def _first_text(
    handlers: Sequence[Handler], error: BaseException, context: ToolErrorContext
) -> str | None:
    for handler in handlers:
        try:
            text = handler(error, context)
        except Exception as raised:  # noqa: BLE001 - a handler may raise what it likes to escalate
            if raised is not error:
                safe_log.log(
                    _log,
                    logging.WARNING,
                    "a handler of tool %s raised",
                    context.tool,
                    exc_info=True,
                )
            return None
        if text is not None:
            return text if isinstance(text, str) and text.strip() else None
    return None


def _unwrapped(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def backstop(tool: str, error: Exception, *, call_id: str | None = None) -> Envelope:
    """The last resort of an agent loop: an error that no guard has mapped; what the model reads.

    It is logged as an error with its stack, reported as a failed call, and counted as
    `backstop_reached`: reaching it means that the tool is not guarded.

    Args:
        tool: name of the tool.
        error: what it raised. One that a guard has raised is told as the guard would have.
        call_id: the model's id of the call.
    """
    if isinstance(error, ToolError) and error.answer is not None:
        return error.answer
    call = Call(tool_named(tool), TRANSPORT, call_id=call_id)
    call.start()
    try:
        call.failed(error)
    finally:
        call.stop()
    reference_id, tool = call.reference_id, call.tool.name
    safe_log.log(
        _log, logging.ERROR,
        "tool %s is not guarded and raised, ref %s: put @toolfault.guard(%r) on it",
        tool, reference_id, tool, exc_info=error,
    )  # fmt: skip
    report.send(c.BACKSTOP_REACHED, {c.TOOL_NAME: tool, c.REFERENCE_ID: reference_id}, call.span)
    assert call.answer is not None  # noqa: S101 - a failed call has its answer
    return call.answer
