"""The attempts of a call, in one form whether they come as JSON or as span events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from toolfault import conventions as c
from toolfault.ingest import wire
from toolfault.ingest.json_text import as_member, member_name
from toolfault.ingest.scrubbing import name

MAX_LISTED = 32
_LOOKED_AT = 4 * MAX_LISTED
_LONGEST = 65_536  # bytes of the JSON list
_MAX_NS = 2**64 - 1
_EVENT = c.ATTEMPT_EVENT.encode()

Attempt = tuple[int, str]  # its number and its JSON
_Readers = tuple[tuple[str, str, Callable[[Any], object]], ...]


def attempt_list(told: bytes | None, span_events: Iterable[Any]) -> list[str]:
    """The attempts by number, each as a JSON object.

    Args:
        told: the run event's JSON list.
        span_events: of the call's span.
    """
    attempts = _from_json(told) if told else _from_events(span_events)
    attempts.sort()
    return [text for _, text in attempts[:MAX_LISTED]]


def _from_json(told: bytes) -> list[Attempt]:
    if len(told) > _LONGEST:
        return []
    try:
        listed = json.loads(wire.text(told))
    except (ValueError, RecursionError):
        return []
    if not isinstance(listed, list):
        return []
    return list(
        _attempts((item for item in listed[:_LOOKED_AT] if isinstance(item, dict)), _OF_JSON)
    )


def _from_events(span_events: Iterable[Any]) -> list[Attempt]:
    named = [event.attributes for event in span_events if event.name == _EVENT]
    return list(_attempts(named[:_LOOKED_AT], _OF_EVENTS))


def _attempts(listed: Iterable[Any], readers: _Readers) -> Iterator[Attempt]:
    for fields in listed:
        get = fields.get
        read = [(member, read(get(key))) for key, member, read in readers]
        number = read[0][1]
        if isinstance(number, int):
            told = [member + as_member(value) for member, value in read if value is not None]
            yield number, f"{{{', '.join(told)}}}"


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


def _readers(integer: Any, word: Any, number: Any) -> _Readers:
    return tuple(
        (key, member_name(key), read)
        for key, read in {
            c.ATTEMPT_NUMBER: integer,
            c.ATTEMPT_START: integer,
            c.ATTEMPT_END: integer,
            c.ATTEMPT_CODE: word,
            c.ATTEMPT_REASON: word,
            c.ATTEMPT_EFFECT: word,
            c.ATTEMPT_WAITED: number,
        }.items()
    )


_OF_JSON = _readers(_integer, _word, _seconds)
_OF_EVENTS = _readers(_raw_integer, name, _raw_seconds)
