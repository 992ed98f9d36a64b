"""The attempts of a call, in one form whether they come as JSON or as span events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from toolfault import conventions as c
from toolfault.ingest import wire
from toolfault.ingest.scrubbing import name

MAX_LISTED = 32
_LOOKED_AT = 4 * MAX_LISTED
_LONGEST = 65_536  # bytes of the JSON list
_MAX_NS = 2**64 - 1
_EVENT = c.ATTEMPT_EVENT.encode()

Attempt = dict[str, Any]


def attempt_list(told: bytes | None, span_events: Iterable[Any]) -> list[Attempt]:
    """The attempts by number.

    Args:
        told: the run event's JSON list.
        span_events: of the call's span.
    """
    attempts = _from_json(told) if told else _from_events(span_events)
    kept = [attempt for attempt in attempts if c.ATTEMPT_NUMBER in attempt]
    kept.sort(key=lambda attempt: attempt[c.ATTEMPT_NUMBER])
    return kept[:MAX_LISTED]


def _from_json(told: bytes) -> list[Attempt]:
    if len(told) > _LONGEST:
        return []
    try:
        listed = json.loads(wire.text(told))
    except (ValueError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    return [_attempt(item, _OF_JSON) for item in listed[:_LOOKED_AT] if isinstance(item, dict)]


def _from_events(span_events: Iterable[Any]) -> list[Attempt]:
    named = [event for event in span_events if event.name == _EVENT]
    return [_attempt(event.attributes, _OF_EVENTS) for event in named[:_LOOKED_AT]]


def _attempt(fields: Any, readers: dict[str, Callable[[Any], object]]) -> Attempt:
    get = fields.get
    return {key: told for key, read in readers.items() if (told := read(get(key))) is not None}


def _raw_integer(value: bytes | None) -> int | None:
    return _integer(wire.integer(value))


def _raw_seconds(value: bytes | None) -> float | None:
    return _seconds(wire.number(value))


def _integer(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_NS else None


def _seconds(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and 0 <= value < 1e12 else None  # type: ignore[operator,arg-type]


def _word(value: object) -> str | None:
    if not isinstance(value, str) or not value:
        return None
    return name(wire.value(value[: 2 * c.MAX_NAME]))


_OF_JSON: dict[str, Callable[[Any], object]] = {
    c.ATTEMPT_NUMBER: _integer,
    c.ATTEMPT_START: _integer,
    c.ATTEMPT_END: _integer,
    c.ATTEMPT_CODE: _word,
    c.ATTEMPT_REASON: _word,
    c.ATTEMPT_EFFECT: _word,
    c.ATTEMPT_WAITED: _seconds,
}
_OF_EVENTS: dict[str, Callable[[Any], object]] = {
    c.ATTEMPT_NUMBER: _raw_integer,
    c.ATTEMPT_START: _raw_integer,
    c.ATTEMPT_END: _raw_integer,
    c.ATTEMPT_CODE: name,
    c.ATTEMPT_REASON: name,
    c.ATTEMPT_EFFECT: name,
    c.ATTEMPT_WAITED: _raw_seconds,
}
