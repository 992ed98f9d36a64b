"""Sends a finished call: its span, its run event and, for bugs, the exception detail."""

from __future__ import annotations

import logging
from collections.abc import Callable

from toolfault import conventions as c
from toolfault import safe_log
from toolfault.taxonomy import ERROR_OUTCOMES, QUIET_OUTCOMES, Code
from toolfault.telemetry import detail, events, spans
from toolfault.telemetry.black_box import Box
from toolfault.telemetry.record import Attributes, ToolCall

_log = logging.getLogger(__name__)

#: Called with every finished call; the testing kit listens here.
listeners: list[Callable[[ToolCall], None]] = []


_BELIEVED = 10_000_000  # ns; an SDK that somebody sets up later is noticed after that


class _Faults:
    count = 0


def faults() -> int:
    """How often the library's own telemetry failed in this process; logged the first time."""
    return _Faults.count


def note_fault() -> None:
    """Count a fault of our own. Telemetry never changes the program: the agent goes on."""
    _Faults.count += 1
    if _Faults.count == 1:
        safe_log.log(
            _log,
            logging.WARNING,
            "toolfault could not report a tool call; the call itself is not affected",
            exc_info=True,
        )


def is_off(now: int) -> bool:
    """Whether nobody listens: no SDK for spans, none for events, no test.

    Args:
        now: by `time.perf_counter_ns`.
    """
    if listeners:
        return False
    if now < events.Unheard.until:
        return True
    if not spans.is_off() or events.is_on():
        return False
    events.Unheard.until = now + _BELIEVED
    return True


def finished(
    call_span: spans.CallSpan,
    call: ToolCall,
    *,
    end: int,
    error: BaseException | None,
    box: Box | None = None,
) -> None:
    """Report a call; never raises.

    Args:
        call_span: the call's span.
        call: the record.
        end: unix ns.
        error: the original exception, if there was one.
        box: what the application logged during the call.
    """
    try:
        for listen in listeners:
            listen(call)
        sampled = spans.is_sampled(call_span.span)
        told = call.attributes()
        spans.record(call_span, call, told, end=end)
        if sampled and call_span.reachable and call.outcome in QUIET_OUTCOMES:
            return  # the span says it all
        if events.is_on():
            _emit(call_span, call, told, end=end, error=error, box=box)
    except Exception:  # noqa: BLE001 - telemetry guard
        note_fault()


def _emit(
    call_span: spans.CallSpan,
    call: ToolCall,
    told: Attributes,
    *,
    end: int,
    error: BaseException | None,
    box: Box | None,
) -> None:
    place = place_of(call_span)
    events.emit(
        c.TOOL_CALL if call.outcome in QUIET_OUTCOMES else c.TOOL_ERROR,
        _event_attributes(call, told),
        place=place,
        severity=events.severity_of(call),
        at=end,
    )
    if error is not None and call.code is Code.INTERNAL and call.reference_id is not None:
        detail.emit(error, call.reference_id, place)
    if box is not None and call.reference_id and call.outcome in ERROR_OUTCOMES:
        box.send(call.reference_id, place)


def budget_exhausted(call_span: spans.CallSpan, call: ToolCall) -> None:
    """Report that a call reached the limit of its failure budget; never raises."""
    send(c.BUDGET_EXHAUSTED, _event_attributes(call, call.attributes()), call_span)


def send(name: str, attributes: Attributes, call_span: spans.CallSpan) -> None:
    """Emit a warning about a call; never raises."""
    try:
        events.emit(name, attributes, place=place_of(call_span), severity=events.WARN)
    except Exception:  # noqa: BLE001 - telemetry guard
        note_fault()


def place_of(call_span: spans.CallSpan) -> events.Place:
    """The span's context, or a minted one where the span cannot carry the call."""
    if call_span.reachable:
        return events.Place.of(call_span.span.get_span_context())
    return events.Place.minted()


def _event_attributes(call: ToolCall, told: Attributes) -> Attributes:
    """The whole record as the attributes of a run event."""
    told = call.identity() | told
    if call.attempts:
        told[c.ATTEMPT_LIST] = call.attempt_list()
    if call.code is not None and call.outcome in ERROR_OUTCOMES:
        told[c.ERROR_TYPE] = call.code.value
    return told
