"""The ToolCallSpan: one span per logical call, ours or the one a framework has opened."""

from __future__ import annotations

from typing import NamedTuple

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from toolfault import conventions as c
from toolfault import taxonomy
from toolfault.telemetry import declared
from toolfault.telemetry.events import SCOPE, Unheard
from toolfault.telemetry.record import Attributes, ToolCall, clean, cleaned

_NAME_PREFIXES = (f"{c.EXECUTE_TOOL} ", "tools/call ")
_KIND_ATTRIBUTES = {
    c.OPERATION_NAME: c.EXECUTE_TOOL,
    "openinference.span.kind": "TOOL",
    "traceloop.span.kind": "tool",
}
_NAME_ATTRIBUTES = (c.TOOL_NAME, "tool.name", "traceloop.entity.name")


_SILENT = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)


class _Provider:
    given: TracerProvider | None = None  # set by tests; else the global one
    made: tuple[TracerProvider, Tracer] | None = None


def use_provider(provider: TracerProvider | None) -> None:
    """Open spans with `provider` instead of the global one; None undoes it."""
    _Provider.given = provider
    Unheard.until = 0


def is_off() -> bool:
    """Whether no SDK takes spans."""
    provider = _Provider.given or trace.get_tracer_provider()
    return type(provider) in _SILENT


def tracer() -> Tracer:
    """The library's tracer of the provider in use now."""
    provider = _Provider.given or trace.get_tracer_provider()
    if _Provider.made is None or _Provider.made[0] is not provider:
        _Provider.made = provider, provider.get_tracer(SCOPE)
    return _Provider.made[1]


class CallSpan(NamedTuple):
    """The span of a call and whether we opened it."""

    span: Span
    owned: bool
    reachable: bool  # its context is the call's own: neither invalid nor its parent's


#: For calls of a process in which nobody listens.
NOWHERE = CallSpan(trace.INVALID_SPAN, owned=False, reachable=False)


def open_or_adopt(tool: str, identity: Attributes, start: int, claimed: Span | None) -> CallSpan:
    """The tool span that is current and not yet claimed by another call, else a new one.

    Args:
        tool: name of the tool.
        identity: attributes given at creation, for samplers.
        start: unix ns.
        claimed: span of the call around this one.
    """
    return adopt(tool, claimed) or open_own(tool, identity, start)


def adopt(tool: str, claimed: Span | None) -> CallSpan | None:
    """The tool span that is current and not yet claimed by another call."""
    current = trace.get_current_span()
    if current is claimed or not is_tool_span(current, tool):
        return None
    return CallSpan(current, owned=False, reachable=True)


def open_own(tool: str, identity: Attributes, start: int) -> CallSpan:
    """A new span, child of the current one."""
    current = trace.get_current_span()
    span = tracer().start_span(
        f"{c.EXECUTE_TOOL} {clean(tool)}",
        kind=SpanKind.INTERNAL,
        attributes=cleaned(identity),
        start_time=start,
        record_exception=False,
        set_status_on_exception=False,
    )
    own, parent = span.get_span_context(), current.get_span_context()
    return CallSpan(span, owned=True, reachable=own.is_valid and own.span_id != parent.span_id)


def is_tool_span(span: Span, tool: str) -> bool:
    """Whether a recording span is a framework's own span of a call of this tool.

    Frameworks differ in when they set attributes (ADK: at the end), so the span's name counts too.
    """
    if not span.is_recording():
        return False
    name = getattr(span, "name", "")
    if name.startswith(_NAME_PREFIXES):
        return bool(name.split(" ", 1)[1] == tool)
    attributes = getattr(span, "attributes", None) or {}
    if any(attributes.get(key) == value for key, value in _KIND_ATTRIBUTES.items()):
        named = next((attributes[key] for key in _NAME_ATTRIBUTES if key in attributes), tool)
    else:
        return False
    return bool(named == tool)


def start_of(span: Span, default: int) -> int:
    """The span's own start in unix ns where it can be read."""
    started = getattr(span, "start_time", None)
    return started if isinstance(started, int) else default


def record(call_span: CallSpan, call: ToolCall, told: Attributes, *, end: int) -> None:
    """Write the record on the span, and end it if it is ours.

    Args:
        call_span: the call's span.
        call: the record.
        told: its attributes.
        end: unix ns.
    """
    span = call_span.span
    if span.is_recording():
        attributes = told.copy()
        if not call_span.owned:
            attributes |= call.identity()
            if c.TOOL_TYPE not in (getattr(span, "attributes", None) or {}):
                known = declared.known(call.tool)
                attributes[c.TOOL_TYPE] = known.type if known is not None else c.FUNCTION
        if call.outcome in taxonomy.ERROR_OUTCOMES and call.code is not None:
            attributes[c.ERROR_TYPE] = call.code.value
            span.set_status(Status(StatusCode.ERROR, taxonomy.MESSAGES[call.code]))
        span.set_attributes(cleaned(attributes))
        for attempt in call.attempts if call.code or len(call.attempts) > 1 else ():
            span.add_event(c.ATTEMPT_EVENT, attempt.attributes(), timestamp=attempt.end)
    if call_span.owned:
        span.end(end_time=end)


def is_sampled(span: Span) -> bool:
    """Whether the span will be exported."""
    try:
        return span.is_recording() and span.get_span_context().trace_flags.sampled
    except AttributeError:  # a span of somebody else
        return False
