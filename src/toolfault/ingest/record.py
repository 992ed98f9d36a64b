"""Our own record, on a span or on a run event, to the row of its call.

Both carry the same record, so both give the same row, whichever arrives first: nothing here reads
what only one of them has (a span's parent, what frameworks write on spans after us).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from toolfault import conventions as c
from toolfault import taxonomy
from toolfault.ingest import scrubbing, wire
from toolfault.ingest.place import Place
from toolfault.ingest.scrubbing import as_json, identifier, label, message, name
from toolfault.store.rows import Call
from toolfault.taxonomy import Action, Code, Effect, Outcome

UNNAMED_TOOL = "unnamed_tool"
#: Kept small enough that sums of them stay far from the end of bigint.
MAX_DURATION_US = 30 * 86_400 * 1_000_000
MAX_ATTEMPTS = 1000
MAX_LISTED_ATTEMPTS = 32
_LONGEST_LIST = 65_536  # bytes of the JSON list
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_NS = 2**64 - 1  # year 2554: what OTLP can say, and far inside what Postgres takes

_OUTCOMES: dict[str, Outcome] = {outcome.value: outcome for outcome in Outcome}
_CODES: dict[str, Code] = {code.value: code for code in Code}
_EFFECTS: dict[str, Effect] = {effect.value: effect for effect in Effect}
_ACTIONS: dict[str, Action] = {action.value: action for action in Action}
_OK = taxonomy.Outcome.OK.value
_NONE = Action.NONE.value


def at(ns: int) -> datetime:
    """Unix nanoseconds as a row's time; the only place where they are cut to microseconds."""
    return _EPOCH + timedelta(microseconds=min(max(ns, 0), _MAX_NS) // 1000)


def duration_us(seconds: float | None, start_ns: int, end_ns: int) -> int:
    """The told duration; where there is none that makes sense, from the span's times."""
    if seconds is not None and math.isfinite(seconds):
        return min(max(round(seconds * 1_000_000), 0), MAX_DURATION_US)
    return min(max((end_ns - start_ns) // 1000, 0), MAX_DURATION_US)


def call_of(
    attributes: Mapping[str, bytes],
    place: Place,
    received_at: datetime,
    trace_id: bytes,
    span_id: bytes,
    tool: str | None,
    start_ns: int,
    end_ns: int,
    span_events: Iterable[Any] = (),
) -> Call:
    """The row of a call from its record.

    Args:
        attributes: of the span or of the run event.
        place: where it comes from.
        received_at: time of the request.
        trace_id: of the call's span.
        span_id: of the call's span.
        tool: its name where `gen_ai.tool.name` is missing.
        start_ns: where the record does not say.
        end_ns: where the record does not say the duration.
        span_events: of the span.
    """
    get = attributes.get
    told_start = wire.integer(get(c.START))
    start_ns = start_ns if told_start is None else told_start
    outcome = _OUTCOMES.get(wire.text(get(c.OUTCOME)), Outcome.FAILED)
    attempts = wire.integer(get(c.ATTEMPTS))
    attempts = 1 if attempts is None else min(max(attempts, 0), MAX_ATTEMPTS)
    code = (
        code_of(outcome, wire.text(get(c.CODE)))
        if get(c.CODE) or outcome is not Outcome.OK
        else None
    )
    effect = _EFFECTS.get(wire.text(get(c.EFFECT))) or taxonomy.effect_of(
        outcome, code, writes=True
    )
    shared = (
        at(start_ns),
        None,
        received_at,
        duration_us(wire.number(get(c.DURATION)), start_ns, end_ns),
        attempts,
        wire.flag(get(c.POSSIBLY_TWICE)),
    )
    named = label(get(c.TOOL_NAME)) or tool or UNNAMED_TOOL
    who = identifier(get(c.RUN_ID)), identifier(get(c.CONVERSATION_ID)), label(get(c.AGENT_NAME))
    rest: dict[str, object] = {}
    if call_id := identifier(get(c.TOOL_CALL_ID)):
        rest[c.TOOL_CALL_ID] = call_id
    if attempts > 1 or outcome is not Outcome.OK:
        if listed := attempt_list(get(c.ATTEMPT_LIST), span_events):
            rest[c.ATTEMPT_LIST] = listed
    if outcome is Outcome.OK:
        return Call(
            *shared, False, trace_id, span_id, None, place.service, place.environment, named,
            _OK, None, None, _NONE, effect.value, None, *who, place.version,
            None, None, None, None, as_json(rest),
        )  # fmt: skip
    transient = wire.flag(get(c.TRANSIENT))
    action = _ACTIONS.get(wire.text(get(c.ACTION))) or taxonomy.action_for(
        outcome, code, effect, transient=transient
    )
    reason, raised, frame = name(get(c.REASON)), name(get(c.EXCEPTION_TYPE)), name(get(c.FRAME))
    _add_rest(rest, attributes)
    return Call(
        *shared, transient, trace_id, span_id, None, place.service, place.environment, named,
        outcome.value, code and code.value, reason, action.value, effect.value,
        scrubbing.reference(get(c.REFERENCE_ID)), *who, place.version, raised, frame,
        fingerprint(outcome, place.service, named, code, reason, raised, frame),
        message(get(c.MESSAGE)), as_json(rest),
    )  # fmt: skip


def code_of(outcome: Outcome, told: str) -> Code | None:
    """The code that goes with an outcome: an unknown or impossible one is repaired."""
    if outcome in taxonomy.QUIET_OUTCOMES:
        return None
    if outcome in taxonomy.FIXED_CODE:
        return taxonomy.FIXED_CODE[outcome]
    default = Code.CONFLICT if outcome is Outcome.DECLINED else Code.INTERNAL
    return _CODES.get(told, default)


def fingerprint(outcome: Outcome, *parts: str | None) -> bytes | None:
    """What errors of one group share; only errors have one."""
    return _fingerprint(parts) if outcome in taxonomy.ERROR_OUTCOMES else None


@lru_cache(4096)
def _fingerprint(parts: tuple[str | None, ...]) -> bytes:
    return blake2b("\x1f".join(part or "" for part in parts).encode(), digest_size=16).digest()


def _add_rest(rest: dict[str, object], attributes: Mapping[str, bytes]) -> None:
    for key, read in _REST.items():
        if (value := attributes.get(key)) is not None and (told := read(value)) is not None:
            rest[key] = told


def seconds(value: bytes | None) -> float | None:
    """A finite number, not negative."""
    told = wire.number(value)
    return told if told is not None and math.isfinite(told) and told >= 0 else None


#: What a row keeps beside its columns; no other attribute is stored.
_REST: dict[str, Any] = {
    c.FIELD: name,
    c.RETRY_AFTER: seconds,
    c.RETRYABLE: wire.flag,
    c.EVIDENCE: scrubbing.free_text,
    c.USER_MESSAGE: scrubbing.free_text,
    c.BUDGET_FAILURES: wire.integer,
    c.BUDGET_LIMIT: wire.integer,
}


# --- attempts ------------------------------------------------------------------------------------


def attempt_list(told: bytes | None, span_events: Iterable[Any]) -> list[dict[str, object]]:
    """The attempts, from the run event's JSON or from the span's events, in one form."""
    attempts = _from_json(told) if told else _from_events(span_events)
    kept = [attempt for attempt in attempts if isinstance(attempt.get(c.ATTEMPT_NUMBER), int)]
    kept.sort(key=lambda attempt: attempt[c.ATTEMPT_NUMBER])
    return kept[:MAX_LISTED_ATTEMPTS]


def _from_json(told: bytes) -> list[dict[str, Any]]:
    if len(told) > _LONGEST_LIST:
        return []
    try:
        listed = json.loads(wire.text(told))
    except (ValueError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    return [
        {key: kept for key, keep in _ATTEMPT.items() if (kept := keep(item.get(key))) is not None}
        for item in listed[: 4 * MAX_LISTED_ATTEMPTS]
        if isinstance(item, dict)
    ]


def _from_events(span_events: Iterable[Any]) -> list[dict[str, Any]]:
    attempts: list[dict[str, Any]] = []
    for event in span_events:
        if event.name == _ATTEMPT_EVENT and len(attempts) < 4 * MAX_LISTED_ATTEMPTS:
            plain = {key: _plain(event.attributes.get(key)) for key in _ATTEMPT}
            attempts.append(
                {
                    key: told
                    for key, keep in _ATTEMPT.items()
                    if (told := keep(plain[key])) is not None
                }
            )
    return attempts


def _plain(value: bytes | None) -> object:
    return wire.number(value) if value and value[0] in (0x18, 0x21) else wire.text(value) or None


def _integer(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_NS else None


def _number(value: object) -> float | None:
    if type(value) not in (int, float) or not 0 <= value < 1e12:  # type: ignore[operator]
        return None
    return float(value)  # type: ignore[arg-type]


def _word(value: object) -> str | None:
    return name(wire.value(value[: 2 * c.MAX_NAME])) if isinstance(value, str) and value else None


_ATTEMPT_EVENT = c.ATTEMPT_EVENT.encode()
_ATTEMPT: dict[str, Any] = {
    c.ATTEMPT_NUMBER: _integer,
    c.ATTEMPT_START: _integer,
    c.ATTEMPT_END: _integer,
    c.ATTEMPT_CODE: _word,
    c.ATTEMPT_REASON: _word,
    c.ATTEMPT_EFFECT: _word,
    c.ATTEMPT_WAITED: _number,
}
