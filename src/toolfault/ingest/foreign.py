"""Tool spans of processes without the library: which spans are one, and how the call went.

Read: the `gen_ai` conventions (current, and the names older instrumentations used), MCP servers,
OpenInference, OpenLLMetry (Traceloop). A client's span of a remote tool never counts: the server's
does, and so does the agent's own tool span around it, each under its own service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from toolfault import conventions as c
from toolfault import taxonomy
from toolfault.ingest import returned, wire
from toolfault.ingest.json_text import as_json
from toolfault.ingest.place import Place
from toolfault.ingest.record import UNNAMED_TOOL, at, code_of, duration_us, fingerprint
from toolfault.ingest.scrubbing import identifier, label, name
from toolfault.store.rows import Call
from toolfault.taxonomy import Code, Outcome

_CLIENT = 3  # SpanKind
_ERROR = 2  # StatusCode
_EXECUTE_TOOL = c.EXECUTE_TOOL.encode()
_IS_EXECUTE_TOOL = wire.value(c.EXECUTE_TOOL)
_EXECUTE_TOOL_PREFIX = _EXECUTE_TOOL + b" "
_MCP_PREFIX = b"tools/call "
_OPENINFERENCE_KIND, _TRACELOOP_KIND = "openinference.span.kind", "traceloop.span.kind"
_MCP_METHOD = "mcp.method.name"
_RUNNING_TOOL = b"running tool"  # Pydantic AI before the conventions had an operation for it
#: ADK's span over a step's parallel calls, each of which has a span of its own.
_MERGED = ("(merged tools)", "(merged)")
_TOOL_NAMES = (c.TOOL_NAME, "tool.name", "traceloop.entity.name")
_CONVERSATIONS = (c.CONVERSATION_ID, "session.id", "gcp.vertex.agent.session_id")
_CALL_IDS = (c.TOOL_CALL_ID, "tool_call.id")
_NO_CALL_ID = "<not specified>"  # ADK, when the tool raised
_STATUS_OF_TOOL = "gen_ai.tool.status"  # Strands


def is_tool_span(span: Any, attributes: Mapping[str, bytes]) -> bool:
    """Whether a span without our record is one call of a tool."""
    if span.kind == _CLIENT:
        return False
    operation = attributes.get(c.OPERATION_NAME)
    if operation:
        # A span that says what it is, is that.
        return operation == _IS_EXECUTE_TOOL or wire.text(operation) == c.EXECUTE_TOOL
    named: bytes = span.name
    if named.startswith((_EXECUTE_TOOL_PREFIX, _MCP_PREFIX)):
        return True
    return (
        wire.text(attributes.get(_OPENINFERENCE_KIND)).upper() == "TOOL"
        or wire.text(attributes.get(_TRACELOOP_KIND)) == "tool"
        or wire.text(attributes.get(_MCP_METHOD)) == "tools/call"
        or (named == _RUNNING_TOOL and c.TOOL_NAME in attributes)
    )


def tool_of(span: Any, attributes: Mapping[str, bytes]) -> str | None:
    """The tool's name: an attribute, else what follows the operation in the span's name."""
    for key in _TOOL_NAMES:
        if found := label(attributes.get(key)):
            return found
    named: bytes = span.name
    return label(wire.value((named.partition(b" ")[2] or named)[: 4 * c.MAX_NAME]))


class _Verdict(NamedTuple):
    outcome: Outcome
    code: Code | None = None
    reason: str | None = None
    exception_type: str | None = None


def call_of(
    span: Any, attributes: Mapping[str, bytes], place: Place, received_at: datetime
) -> Call | None:
    """The row of a tool span that has no record of ours; None for a span that stands for several."""
    tool = tool_of(span, attributes) or UNNAMED_TOOL
    if tool.endswith(_MERGED):
        return None
    answer = returned.find(attributes)
    verdict = _verdict(span, attributes, answer)
    outcome, code = verdict.outcome, verdict.code
    effect = (answer and answer.effect) or taxonomy.effect_of(outcome, code, writes=True)
    action = (answer and answer.action) or taxonomy.action_for(outcome, code, effect)
    rest = _rest(attributes, answer)
    start, end = span.start_time_unix_nano, span.end_time_unix_nano
    return Call(
        at(start), None, received_at, duration_us(None, start, end),
        0 if outcome in (Outcome.NOT_FOUND, Outcome.REFUSED) else 1, False, False,
        span.trace_id, span.span_id, span.parent_span_id if len(span.parent_span_id) == 8 else None,
        place.service, place.environment, tool, outcome.value, code and code.value, verdict.reason,
        action.value, effect.value, answer and answer.reference, None,
        identifier(_first(attributes, _CONVERSATIONS)), label(attributes.get(c.AGENT_NAME)),
        place.version, verdict.exception_type, None,
        fingerprint(outcome, place.service, tool, code, verdict.reason, verdict.exception_type, None),
        answer and answer.message, as_json(rest),
    )  # fmt: skip


def _first(attributes: Mapping[str, bytes], keys: tuple[str, ...]) -> bytes | None:
    return next((attributes[key] for key in keys if key in attributes), None)


def _rest(attributes: Mapping[str, bytes], answer: returned.Answer | None) -> dict[str, object]:
    rest = dict(answer.rest) if answer else {}
    call_id = identifier(_first(attributes, _CALL_IDS))
    if call_id and call_id != _NO_CALL_ID:
        rest[c.TOOL_CALL_ID] = call_id
    if told := name(attributes.get(c.ERROR_TYPE)):
        rest[c.ERROR_TYPE] = told
    return rest


# --- how it went ----------------------------------------------------------------------------------


def _verdict(
    span: Any, attributes: Mapping[str, bytes], answer: returned.Answer | None
) -> _Verdict:
    told = name(attributes.get(c.ERROR_TYPE)) or ""
    failed = (
        told
        or span.status.code == _ERROR
        or wire.text(attributes.get(_STATUS_OF_TOOL)) == "error"
        or wire.text(attributes.get("mcp.tool.result.is_error")) == "true"
    )
    if answer is not None and (answer.code or not failed):
        return _Verdict(
            answer.outcome, code_of(answer.outcome, wire.value(answer.code or "")), answer.reason
        )
    if not failed:
        return _Verdict(Outcome.OK)
    raised = _exception_type(span) or (told if _CLASS_NAME.fullmatch(told) else None)
    outcome, code = (
        _classified(told) or _classified(raised or "") or (Outcome.FAILED, Code.INTERNAL)
    )
    return _Verdict(outcome, code, _REASONS.get(outcome, taxonomy.UNMAPPED_FAILURE), raised)


def _exception_type(span: Any) -> str | None:
    for event in span.events:
        if event.name == b"exception":
            return name(event.attributes.get(c.EXCEPTION_TYPE_OTEL))
    return None


#: What looks like a class and not like one of our codes or a word such as `tool_error`.
_CLASS_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*[a-z]\w*")
_REASONS: dict[Outcome, str | None] = {
    Outcome.TIMED_OUT: taxonomy.TIMED_OUT,
    Outcome.INVALID: taxonomy.INVALID_ARGUMENTS,
    Outcome.CANCELLED: None,
}


def _classified(told: str) -> tuple[Outcome, Code | None] | None:
    if told in Code.__members__:
        return Outcome.FAILED, Code(told)
    word = told.rpartition(".")[2]
    if (known := _KNOWN.get(word.lower())) is not None:
        return known
    for ending, known in _ENDINGS:
        if word.lower().endswith(ending):
            return known
    return None


_TIMED_OUT: tuple[Outcome, Code | None] = (Outcome.TIMED_OUT, Code.UNAVAILABLE)
_INVALID: tuple[Outcome, Code | None] = (Outcome.INVALID, Code.INVALID_ARGUMENT)
_CANCELLED: tuple[Outcome, Code | None] = (Outcome.CANCELLED, None)


def _failed(code: Code) -> tuple[Outcome, Code | None]:
    return Outcome.FAILED, code


#: HTTP statuses, gRPC and JSON-RPC codes, exception types; lower case, without their module.
_KNOWN: dict[str, tuple[Outcome, Code | None]] = {
    "400": _failed(Code.INVALID_ARGUMENT),
    "401": _failed(Code.PERMISSION_DENIED),
    "403": _failed(Code.PERMISSION_DENIED),
    "404": _failed(Code.NOT_FOUND),
    "408": _TIMED_OUT,
    "409": _failed(Code.CONFLICT),
    "410": _failed(Code.NOT_FOUND),
    "412": _failed(Code.CONFLICT),
    "422": _failed(Code.INVALID_ARGUMENT),
    "429": _failed(Code.RATE_LIMITED),
    "502": _failed(Code.UNAVAILABLE),
    "503": _failed(Code.UNAVAILABLE),
    "504": _TIMED_OUT,
    "deadline_exceeded": _TIMED_OUT,
    "resource_exhausted": _failed(Code.RATE_LIMITED),
    "unauthenticated": _failed(Code.PERMISSION_DENIED),
    "already_exists": _failed(Code.CONFLICT),
    "aborted": _failed(Code.CONFLICT),
    "failed_precondition": _failed(Code.CONFLICT),
    "cancelled": _CANCELLED,
    "cancellederror": _CANCELLED,
    "-32602": _INVALID,
    "permissionerror": _failed(Code.PERMISSION_DENIED),
    "timeout": _TIMED_OUT,
    "timed_out": _TIMED_OUT,
}
_ENDINGS: tuple[tuple[str, tuple[Outcome, Code | None]], ...] = (
    ("timeouterror", _TIMED_OUT),
    ("timeout", _TIMED_OUT),
    ("timeoutexception", _TIMED_OUT),
    ("validationerror", _INVALID),
    ("ratelimiterror", _failed(Code.RATE_LIMITED)),
    ("connectionerror", _failed(Code.UNAVAILABLE)),
    ("connectionrefusederror", _failed(Code.UNAVAILABLE)),
    ("connecterror", _failed(Code.UNAVAILABLE)),
    ("notfounderror", _failed(Code.NOT_FOUND)),
)
