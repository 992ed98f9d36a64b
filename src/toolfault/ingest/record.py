"""Our own record, on a span or on a run event, to the row of its call.

Both carry the same record, so both give the same row, whichever arrives first: nothing here reads
what only one of them has (a span's parent, what frameworks write on spans after us).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any

from toolfault import conventions as c
from toolfault import taxonomy
from toolfault.ingest import scrubbing, wire
from toolfault.ingest.attempts import attempt_list
from toolfault.ingest.json_text import as_member, as_object, member_name
from toolfault.ingest.place import Place
from toolfault.ingest.scrubbing import identifier, label, message, name, new_identifier
from toolfault.store.rows import Call
from toolfault.taxonomy import Action, Code, Effect, Outcome

UNNAMED_TOOL = "unnamed_tool"
#: Kept small enough that sums of them stay far from the end of bigint.
_MAX_SECONDS = 30 * 86_400
MAX_DURATION_US = _MAX_SECONDS * 1_000_000
MAX_ATTEMPTS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NS = 2**64 - 1  # year 2554: what OTLP can say, and far inside what Postgres takes

# By the undecoded value: the closed sets are read a million times a minute.
_OUTCOMES: dict[bytes | None, Outcome] = {wire.value(outcome): outcome for outcome in Outcome}
_CODES: dict[bytes | None, Code] = {wire.value(code): code for code in Code}
_EFFECTS: dict[bytes | None, Effect] = {wire.value(effect): effect for effect in Effect}
_ACTIONS: dict[bytes | None, Action] = {wire.value(action): action for action in Action}
_IS_OK = wire.value(Outcome.OK)
_EFFECTS_OF_OK = {told: effect.value for told, effect in _EFFECTS.items()}
_OK, _NO_ACTION = Outcome.OK.value, Action.NONE.value
_APPLIED = taxonomy.effect_of(Outcome.OK, None, writes=True).value
_CALL_ID, _ATTEMPT_LIST = member_name(c.TOOL_CALL_ID), member_name(c.ATTEMPT_LIST)


def at(ns: int) -> datetime:
    """Unix nanoseconds as a row's time; the only place where they are cut to microseconds."""
    if not 0 <= ns <= _MAX_NS:
        ns = 0 if ns < 0 else _MAX_NS
    return _EPOCH + timedelta(0, 0, ns // 1000)


def duration_us(seconds: float | None, start_ns: int, end_ns: int) -> int:
    """The told duration; where there is none that makes sense, from the span's times."""
    if seconds is not None and 0 <= seconds < _MAX_SECONDS:
        return round(seconds * 1_000_000)
    if seconds is not None and math.isfinite(seconds):
        return MAX_DURATION_US if seconds > 0 else 0
    return min(max((end_ns - start_ns) // 1000, 0), MAX_DURATION_US)


def call_of(
    attributes: Mapping[str, bytes],
    place: Place,
    received_at: datetime,
    ids: tuple[bytes, bytes],
    times: tuple[int, int],
    *,
    tool: str | None = None,
    span: Any = None,
) -> Call:
    """The row of a call from the record among the attributes of its span or run event.

    Args:
        attributes: of the span or run event.
        place: where it comes from.
        received_at: time of the request.
        ids: trace id and span id.
        times: start and end in unix ns, where the record does not say.
        tool: its name where `gen_ai.tool.name` is missing.
        span: if it is on one.
    """
    get = attributes.get
    if (attempts := wire.integer(get(c.ATTEMPTS))) is None:
        attempts = 1
    elif not 0 <= attempts <= MAX_ATTEMPTS:
        attempts = 0 if attempts < 0 else MAX_ATTEMPTS
    if (start_ns := wire.integer(get(c.START))) is None:
        start_ns = times[0]
    first = (
        at(start_ns), None, received_at,
        duration_us(wire.number(get(c.DURATION)), start_ns, times[1]),
        attempts, get(c.POSSIBLY_TWICE) == wire.TRUE,
    )  # fmt: skip
    named = label(get(c.TOOL_NAME)) or tool or UNNAMED_TOOL
    who = identifier(get(c.RUN_ID)), identifier(get(c.CONVERSATION_ID)), label(get(c.AGENT_NAME))
    call_id = new_identifier(get(c.TOOL_CALL_ID))
    rest = [_CALL_ID + encode_basestring(call_id)] if call_id else []
    if get(c.OUTCOME) != _IS_OK:
        rest += _attempts(attributes, span)
        return _not_ok(attributes, place, ids, first, named, who, rest)
    if attempts != 1:  # of one the list would say nothing that the row does not
        rest += _attempts(attributes, span)
    return Call._make((
        *first, False, *ids, None, place.service, place.environment, named, _OK, None, None,
        _NO_ACTION, _EFFECTS_OF_OK.get(get(c.EFFECT), _APPLIED), None, *who, place.version,
        None, None, None, None, as_object(rest),
    ))  # fmt: skip


def _attempts(attributes: Mapping[str, bytes], span: Any) -> list[str]:
    events = () if span is None else span.events
    listed = attempt_list(attributes.get(c.ATTEMPT_LIST), events)
    return [f"{_ATTEMPT_LIST}[{', '.join(listed)}]"] if listed else []


def _not_ok(  # noqa: PLR0917 - the second half of `call_of`
    attributes: Mapping[str, bytes],
    place: Place,
    ids: tuple[bytes, bytes],
    first: tuple[object, ...],
    tool: str,
    who: tuple[str | None, str | None, str | None],
    rest: list[str],
) -> Call:
    get = attributes.get
    outcome = _OUTCOMES.get(get(c.OUTCOME), Outcome.FAILED)  # one we do not know is no success
    code = code_of(outcome, get(c.CODE))
    effect = _EFFECTS.get(get(c.EFFECT)) or taxonomy.effect_of(outcome, code, writes=True)
    transient = wire.flag(get(c.TRANSIENT))
    action = _ACTIONS.get(get(c.ACTION)) or taxonomy.action_for(
        outcome, code, effect, transient=transient
    )
    reason, raised, frame = name(get(c.REASON)), name(get(c.EXCEPTION_TYPE)), name(get(c.FRAME))
    for key, member, read in _REST:
        if (value := get(key)) is not None and (told := read(value)) is not None:
            rest.append(member + as_member(told))
    return Call._make((
        *first, transient, *ids, None, place.service, place.environment, tool, outcome.value,
        code and code.value, reason, action.value, effect.value,
        scrubbing.reference(get(c.REFERENCE_ID)), *who, place.version, raised, frame,
        fingerprint(outcome, place.service, tool, code, reason, raised, frame),
        message(get(c.MESSAGE)), as_object(rest),
    ))  # fmt: skip


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


def seconds(value: bytes | None) -> float | None:
    """A finite number, not negative."""
    told = wire.number(value)
    return float(told) if told is not None and math.isfinite(told) and told >= 0 else None


#: What a row keeps beside its columns; no other attribute is stored. Key, its JSON, its reader.
_REST: tuple[tuple[str, str, Callable[[bytes], object]], ...] = tuple(
    (key, member_name(key), read)
    for key, read in {
        c.FIELD: name,
        c.RETRY_AFTER: seconds,
        c.RETRYABLE: wire.flag,
        c.EVIDENCE: scrubbing.free_text,
        c.USER_MESSAGE: scrubbing.free_text,
        c.BUDGET_FAILURES: wire.integer,
        c.BUDGET_LIMIT: wire.integer,
    }.items()
)
