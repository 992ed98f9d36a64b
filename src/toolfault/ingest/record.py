"""Our own record, on a span or on a run event, to the row of its call.

Both carry the same record, so both give the same row, whichever arrives first: nothing here reads
what only one of them has (a span's parent, what frameworks write on spans after us).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from toolfault import conventions as c
from toolfault import taxonomy
from toolfault.ingest import scrubbing, wire
from toolfault.ingest.attempts import attempt_list
from toolfault.ingest.place import Place
from toolfault.ingest.scrubbing import as_json, identifier, label, message, name
from toolfault.store.rows import Call
from toolfault.taxonomy import Action, Code, Effect, Outcome

UNNAMED_TOOL = "unnamed_tool"
#: Kept small enough that sums of them stay far from the end of bigint.
MAX_DURATION_US = 30 * 86_400 * 1_000_000
MAX_ATTEMPTS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NS = 2**64 - 1  # year 2554: what OTLP can say, and far inside what Postgres takes

# By the undecoded value: the closed sets are read a million times a minute.
_OUTCOMES: dict[bytes | None, Outcome] = {wire.value(outcome): outcome for outcome in Outcome}
_CODES: dict[bytes | None, Code] = {wire.value(code): code for code in Code}
_EFFECTS: dict[bytes | None, Effect] = {wire.value(effect): effect for effect in Effect}
_ACTIONS: dict[bytes | None, Action] = {wire.value(action): action for action in Action}
_OK, _NO_ACTION = Outcome.OK.value, Action.NONE.value
_CALL_ID_JSON = f'{{"{c.TOOL_CALL_ID}": %s}}'


class Source(NamedTuple):
    """What a record is found on."""

    trace_id: bytes
    span_id: bytes
    start_ns: int  # where the record does not say
    end_ns: int
    tool: str | None = None  # where `gen_ai.tool.name` is missing
    span_events: Iterable[Any] = ()


def at(ns: int) -> datetime:
    """Unix nanoseconds as a row's time; the only place where they are cut to microseconds."""
    return _EPOCH + timedelta(microseconds=min(max(ns, 0), _MAX_NS) // 1000)


def duration_us(seconds: float | None, start_ns: int, end_ns: int) -> int:
    """The told duration; where there is none that makes sense, from the span's times."""
    if seconds is not None and math.isfinite(seconds):
        return round(min(max(seconds * 1_000_000, 0), MAX_DURATION_US))
    return min(max((end_ns - start_ns) // 1000, 0), MAX_DURATION_US)


def call_of(
    attributes: Mapping[str, bytes], place: Place, received_at: datetime, source: Source
) -> Call:
    """The row of a call from the record among the attributes of its span or run event."""
    get = attributes.get
    outcome = _OUTCOMES.get(get(c.OUTCOME), Outcome.FAILED)  # one we do not know is no success
    code = code_of(outcome, get(c.CODE))
    effect = _EFFECTS.get(get(c.EFFECT)) or taxonomy.effect_of(outcome, code, writes=True)
    attempts = wire.integer(get(c.ATTEMPTS))
    attempts = 1 if attempts is None else min(max(attempts, 0), MAX_ATTEMPTS)
    told_start = wire.integer(get(c.START))
    start_ns = source.start_ns if told_start is None else told_start
    timing = (
        at(start_ns), None, received_at,
        duration_us(wire.number(get(c.DURATION)), start_ns, source.end_ns),
        attempts, wire.flag(get(c.POSSIBLY_TWICE)),
    )  # fmt: skip
    tool = label(get(c.TOOL_NAME)) or source.tool or UNNAMED_TOOL
    who = identifier(get(c.RUN_ID)), identifier(get(c.CONVERSATION_ID)), label(get(c.AGENT_NAME))
    if outcome is not Outcome.OK:
        return _not_ok(attributes, place, source, timing, tool, outcome, code, effect, who)
    return Call(
        *timing, False, source.trace_id, source.span_id, None, place.service, place.environment,
        tool, _OK, None, None, _NO_ACTION, effect.value, None, *who, place.version,
        None, None, None, None, _rest_of_ok(attributes, attempts, source),
    )  # fmt: skip


def _rest_of_ok(attributes: Mapping[str, bytes], attempts: int, source: Source) -> str | None:
    call_id = identifier(attributes.get(c.TOOL_CALL_ID))
    if attempts == 1:  # the list would say nothing that the row does not
        return _CALL_ID_JSON % encode_basestring(call_id) if call_id else None
    return as_json(_identity(call_id, attributes, source))


def _identity(
    call_id: str | None, attributes: Mapping[str, bytes], source: Source
) -> dict[str, object]:
    rest: dict[str, object] = {c.TOOL_CALL_ID: call_id} if call_id else {}
    if listed := attempt_list(attributes.get(c.ATTEMPT_LIST), source.span_events):
        rest[c.ATTEMPT_LIST] = listed
    return rest


def _not_ok(  # noqa: PLR0917 - the second half of `call_of`
    attributes: Mapping[str, bytes],
    place: Place,
    source: Source,
    timing: tuple[datetime, None, datetime, int, int, bool],
    tool: str,
    outcome: Outcome,
    code: Code | None,
    effect: Effect,
    who: tuple[str | None, str | None, str | None],
) -> Call:
    get = attributes.get
    transient = wire.flag(get(c.TRANSIENT))
    action = _ACTIONS.get(get(c.ACTION)) or taxonomy.action_for(
        outcome, code, effect, transient=transient
    )
    reason, raised, frame = name(get(c.REASON)), name(get(c.EXCEPTION_TYPE)), name(get(c.FRAME))
    rest = _identity(identifier(get(c.TOOL_CALL_ID)), attributes, source)
    rest |= kept(_REST, attributes)
    return Call(
        *timing, transient, source.trace_id, source.span_id, None, place.service,
        place.environment, tool, outcome.value, code and code.value, reason, action.value,
        effect.value, scrubbing.reference(get(c.REFERENCE_ID)), *who, place.version, raised, frame,
        fingerprint(outcome, place.service, tool, code, reason, raised, frame),
        message(get(c.MESSAGE)), as_json(rest),
    )  # fmt: skip


def code_of(outcome: Outcome, told: bytes | None) -> Code | None:
    """The code that goes with an outcome: an unknown or impossible one is repaired."""
    if outcome in taxonomy.QUIET_OUTCOMES:
        return None
    if outcome in taxonomy.FIXED_CODE:
        return taxonomy.FIXED_CODE[outcome]
    return _CODES.get(told) or (Code.CONFLICT if outcome is Outcome.DECLINED else Code.INTERNAL)


def fingerprint(outcome: Outcome, *parts: str | None) -> bytes | None:
    """What errors of one group share; only errors have one."""
    return _fingerprint(parts) if outcome in taxonomy.ERROR_OUTCOMES else None


@lru_cache(4096)
def _fingerprint(parts: tuple[str | None, ...]) -> bytes:
    return blake2b("\x1f".join(part or "" for part in parts).encode(), digest_size=16).digest()


# --- what of the attributes is kept beside the columns --------------------------------------------

Reader = Callable[[bytes], object]


def kept(readers: Mapping[str, Reader], attributes: Mapping[str, bytes]) -> dict[str, object]:
    """The attributes of an allow-list, each read, scrubbed and cut in its way."""
    return {
        key: told
        for key, read in readers.items()
        if (value := attributes.get(key)) is not None and (told := read(value)) is not None
    }


def seconds(value: bytes | None) -> float | None:
    """A finite number, not negative."""
    told = wire.number(value)
    return float(told) if told is not None and math.isfinite(told) and told >= 0 else None


_REST: dict[str, Reader] = {
    c.FIELD: name,
    c.RETRY_AFTER: seconds,
    c.RETRYABLE: wire.flag,
    c.EVIDENCE: scrubbing.free_text,
    c.USER_MESSAGE: scrubbing.free_text,
    c.BUDGET_FAILURES: wire.integer,
    c.BUDGET_LIMIT: wire.integer,
}
