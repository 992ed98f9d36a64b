"""Log records to rows: run events, exception detail, the black box, stamped application records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from toolfault import conventions as c
from toolfault.ingest import record, scrubbing, wire
from toolfault.ingest.json_text import as_json
from toolfault.ingest.payload import payload
from toolfault.ingest.place import Place
from toolfault.ingest.scrubbing import clean, free_text, identifier, label, name
from toolfault.store.rows import Call, Event, Log

EVENT_NAME_ATTRIBUTE = "event.name"  # where clients wrote it before OTLP had a field for it
_PREFIX = c.EVENT_PREFIX.encode()
NO_TRACE, NO_SPAN = bytes(16), bytes(8)
#: Kept far from the end of bigint, as counts are summed.
MAX_COUNT = 1_000_000_000
_MODEL_EVENTS = frozenset({c.MODEL_CALL, c.MODEL_ERROR, c.MODEL_RETRY})
_RESULTS = frozenset({"ok", "error", "exhausted"})


def event_name(log: Any, attributes: Mapping[str, bytes]) -> str | None:
    """The event's name, cut and scrubbed; None for a record that is no event."""
    named = log.event_name or wire.text(attributes.get(EVENT_NAME_ATTRIBUTE)).encode()
    return _event_name(named) if len(named) <= c.MAX_NAME else None


@lru_cache(1024)
def _event_name(named: bytes) -> str | None:
    prefix = _PREFIX if named.startswith(_PREFIX) else b""
    # Scrubbed without our prefix, which would hide from the scrubber where a secret begins.
    return prefix.decode() + (name(wire.value(named[len(prefix) :])) or "") or None


def ids_of(log: Any) -> tuple[bytes, bytes]:
    """Trace and span id; zeros where there is none, for a log record is kept without a trace."""
    trace_id, span_id = log.trace_id, log.span_id
    return (
        trace_id if len(trace_id) == 16 else NO_TRACE,
        span_id if len(span_id) == 8 else NO_SPAN,
    )


def call_of(log: Any, attributes: Mapping[str, bytes], place: Place, received_at: datetime) -> Call:
    """The row of the call whose record a `tool_error` or `tool_call` event carries."""
    now = time_of(log)
    return record.call_of(attributes, place, received_at, ids_of(log), (now, now))


def time_of(log: Any) -> int:
    """Its time, else when it was observed; never the arrival, for re-delivery must meet one key."""
    return int(log.time_unix_nano or log.observed_time_unix_nano)


def event_of(
    log: Any, named: str, attributes: Mapping[str, bytes], place: Place, received_at: datetime
) -> Event:
    """The row of a run event."""
    get = attributes.get
    count = wire.integer(get(c.COUNT))
    return Event(
        record.at(time_of(log)), None, received_at,
        None if count is None else min(max(count, 0), MAX_COUNT),
        _severity(log), *ids_of(log), digest(log, named, attributes), named,
        place.service, place.environment, label(get(_label_key(named))), _outcome(named, attributes),
        scrubbing.reference(get(c.REFERENCE_ID)), identifier(get(c.RUN_ID)),
        identifier(get(c.CONVERSATION_ID)), place.version, as_json(_kept(_OF_EVENTS, attributes)),
    )  # fmt: skip


def _label_key(named: str) -> str:
    if named in _MODEL_EVENTS:
        return c.REQUEST_MODEL
    return c.AGENT_NAME if named == c.RUN_LIMIT_EXCEEDED else c.TOOL_NAME


def _outcome(named: str, attributes: Mapping[str, bytes]) -> str | None:
    key = c.RESULT if named in _MODEL_EVENTS else c.OUTCOME
    told = name(attributes.get(key))
    # A result the totals do not know would be counted as none of theirs.
    return "error" if named in _MODEL_EVENTS and told and told not in _RESULTS else told


def log_of(
    log: Any,
    named: str | None,
    attributes: Mapping[str, bytes],
    place: Place,
    received_at: datetime,
) -> Log:
    """The row of a log record: exception detail, black box, or one an application stamped."""
    get = attributes.get
    is_detail = named == c.EXCEPTION
    body = free_text(get(c.EXCEPTION_MESSAGE)) if is_detail else _body(log.body)
    stack = get(c.EXCEPTION_STACKTRACE)
    return Log(
        record.at(time_of(log)), None, received_at, _severity(log), *ids_of(log),
        digest(log, named or "", attributes), named, place.service, place.environment,
        scrubbing.reference(get(c.REFERENCE_ID)), name(get(c.EXCEPTION_TYPE_OTEL)), body,
        clean(wire.text(stack), c.MAX_STACK, keeps_frames=True) if stack else None,
        as_json(_kept(_OF_LOGS, attributes)),
    )  # fmt: skip


def _severity(log: Any) -> int:
    number: int = log.severity_number
    return number if 0 <= number <= 24 else 0


def digest(log: Any, named: str, attributes: Mapping[str, bytes]) -> bytes:
    """Tells records of one time and span apart, the same in every encoding and on every delivery."""
    hashed = blake2b(digest_size=8)
    hashed.update(b"%d|%d|%s|%s|" % (time_of(log), log.severity_number, log.trace_id, log.span_id))
    hashed.update(named.encode() + b"|" + log.body)
    for key in sorted(attributes):
        hashed.update(b"|" + key.encode() + b"=" + attributes[key])
    return hashed.digest()


def _body(body: bytes) -> str | None:
    if not body:
        return None
    if body[0] == 0x0A:
        return free_text(body)
    try:
        told = _plain(AnyValue.FromString(body[: 64 * c.MAX_TEXT]))
    except DecodeError:  # also nested deeper than protobuf reads
        return None
    text = json.dumps(told, ensure_ascii=False)
    return clean(text, c.MAX_TEXT)


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    told = getattr(value, kind) if kind else None
    return told.hex() if isinstance(told, bytes) else told


# --- what of the attributes is kept ---------------------------------------------------------------


Reader = Callable[[bytes], object]


def _kept(readers: Mapping[str, Reader], attributes: Mapping[str, bytes]) -> dict[str, object]:
    """The attributes of an allow-list, each read, scrubbed and cut in its way."""
    return {
        key: told
        for key, read in readers.items()
        if (value := attributes.get(key)) is not None and (told := read(value)) is not None
    }


def _reasons(value: bytes) -> dict[str, str] | None:
    """The declared reasons: an object of reason to words for the user."""
    try:
        told = json.loads(wire.text(value)[: 16 * c.MAX_TEXT])
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    return {
        clean(_encodable(reason), c.MAX_NAME): clean(_encodable(words), c.MAX_TEXT)
        for reason, words in list(told.items())[: c.MAX_ATTRIBUTES]
        if isinstance(words, str)
    }


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


_OF_LOGS: dict[str, Reader] = {
    c.LOGGER_NAME: name,
    c.TOOL_NAME: label,
    c.RUN_ID: identifier,
    c.CONVERSATION_ID: identifier,
    c.TOOL_CALL_ID: identifier,
}
_OF_EVENTS: dict[str, Reader] = {
    **_OF_LOGS,
    c.AGENT_NAME: label,
    c.REQUEST_MODEL: label,
    c.ERROR_TYPE: name,
    c.CODE: name,
    c.REASON: name,
    c.ATTEMPTS: wire.integer,
    c.EXCEPTION_TYPE: name,
    c.FRAME: name,
    c.MESSAGE: free_text,
    c.EVIDENCE: free_text,
    c.FIELD: name,
    c.USER_MESSAGE: free_text,
    c.BUDGET_FAILURES: wire.integer,
    c.BUDGET_LIMIT: wire.integer,
    c.RETRY_AFTER: record.seconds,
    c.EFFECT: name,
    c.ACTION: name,
    c.WRITES: wire.flag,
    c.IDEMPOTENT: wire.flag,
    c.OWNER: name,
    c.OWNER_CONTACT: scrubbing.contact,
    c.RUNBOOK: scrubbing.link,
    c.REASONS: _reasons,
    c.COUNT: wire.integer,
    c.RESULT: name,
    c.LIMIT: wire.integer,
    c.PAYLOAD: payload,
}
