"""Where a reference is, and the outline of its call that outlives the details."""

from __future__ import annotations

from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from toolfault import conventions, reference
from toolfault.store.models import UNDATED
from toolfault.store.rows import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolfault.store.rows import Event, Log
    from toolfault.store.stage import Stage

_NO_SPAN = bytes(8)
_NO_OUTLINE = (None,) * 7
Days = tuple[date, date]  # from the first to before the second
_Key = tuple[str, bytes, bytes, date]


def write_references(
    stage: Stage, kept: Days, calls: Sequence[Call], events: Sequence[Event], logs: Sequence[Log]
) -> None:
    """Writes the references of new rows; a row and its reference commit together.

    Of log records only a call's own detail points at it: an application stamps any number of others.
    """
    entries = [
        _entry(call, kept, call.span_id, _outline(call)) for call in calls if call.reference_id
    ]
    entries += [_entry(event, kept, event.span_id) for event in events if event.reference_id]
    entries += [
        _entry(log, kept, _NO_SPAN)
        for log in logs
        if log.reference_id and log.event_name in conventions.DETAIL_RECORDS
    ]
    rows = dict(reversed(entries))  # of several under one key the call's, which has the outline
    if rows:
        stage.put("reference", [rows[key] for key in sorted(rows)])


def _outline(call: Call) -> tuple[object, ...]:
    return (
        call.tool,
        call.outcome,
        call.code,
        call.reason,
        call.action,
        call.effect,
        call.fingerprint,
    )


def _entry(
    row: Call | Event | Log, kept: Days, span_id: bytes, outline: tuple[object, ...] = _NO_OUTLINE
) -> tuple[_Key, tuple[object, ...]]:
    reference_id, key_time = row.reference_id or "", row[0]
    day = _day(reference_id, row.told_at or key_time, kept)
    key = reference_id, row.trace_id, span_id, day
    attempts = row.attempts if isinstance(row, Call) else None
    place = row.service, row.environment
    return key, (key_time, row.received_at, day, attempts, *key[:3], *place, *outline)


# A call and its exception detail name the same reference, mostly in one batch.
_day_of = lru_cache(maxsize=8192)(reference.day_of)


def _day(reference_id: str, at: datetime, kept: Days) -> date:
    """The partition's day: the one inside the reference, else that of the record."""
    day = _day_of(reference_id) or at.date()
    return day if kept[0] <= day < kept[1] else UNDATED.date()
