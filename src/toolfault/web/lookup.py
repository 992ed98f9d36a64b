"""From a pasted text to an answer. Never a dead end: each state says what to do next."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from toolfault import reference as ref
from toolfault.conventions import MAX_REFERENCE
from toolfault.store.queries import days as of_days
from toolfault.store.queries import references as queries
from toolfault.store.queries.base import REFERENCE_DAYS, Scope, together
from toolfault.web import missing
from toolfault.web.cards import Links, make_match
from toolfault.web.known import gather
from toolfault.web.models import Answer, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from toolfault.store.queries.days import Days
    from toolfault.store.queries.references import Reference
    from toolfault.web.known import Known

#: How long the details of a call that was not ok are kept.
RETENTION_DAYS = 30
#: A signal may be on its way this long after the end of its day or its other half's arrival.
_ON_ITS_WAY = timedelta(hours=1)
_MOST_MATCHES = 20
_NO_TRACE = bytes(16)
_MOST_CANDIDATES = 20


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who asks: which services they may see, and whether they may read exception detail."""

    scope: Scope = None
    detail: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """One look-up's surroundings."""

    now: datetime
    viewer: Viewer = field(default_factory=Viewer)
    retention_days: int = RETENTION_DAYS
    links: Links = field(default_factory=Links)

    @property
    def today(self) -> date:
        """The UTC day of asking."""
        return self.now.date()

    def is_kept(self, day: date) -> bool:
        """Whether calls of that day still have their details."""
        return day > self.today - timedelta(days=self.retention_days)


def lookup(
    conn: Connection,
    text: str,
    *,
    viewer: Viewer | None = None,
    now: datetime | None = None,
    retention_days: int = RETENTION_DAYS,
    links: Links | None = None,
) -> Answer:
    """What is known about the reference somewhere in `text`.

    Args:
        conn: a connection of an engine of `store.queries.base`.
        text: a reference as typed, or the whole sentence or envelope it stands in.
        viewer: whose eyes; by default they see everything.
        now: the present moment, for tests.
        retention_days: how many days the details of calls are kept.
        links: templates of links to traces and logs.
    """
    asked = Asked(now or datetime.now(UTC), viewer or Viewer(), retention_days, links or Links())
    answer = _answered(conn, text, asked)
    others = tuple(other for other in ref.all_in(text) if other != answer.reference)
    return answer.model_copy(update={"others": others[:_MOST_CANDIDATES]}) if others else answer


def _answered(conn: Connection, text: str, asked: Asked) -> Answer:
    """The first reference in the text that is stored, or else why the likeliest one is not."""
    candidates = ref.candidates(text)[:_MOST_CANDIDATES]
    for candidate in candidates:
        rows, days = _stored(conn, candidate, asked)
        if found := _visible(rows):
            return _of_stored(candidate, gather(conn, found, days, asked), asked)
    reading = _best_reading(text, candidates)
    answer = _of_nothing(conn, reading, asked)
    return missing.example(answer) if reading == missing.EXAMPLE else answer


def _stored(conn: Connection, candidate: str, asked: Asked) -> tuple[list[Reference], Days]:
    """Its rows, and the days around them."""
    day = ref.day_of(candidate)
    if day is not None and not _may_be_stored(day, asked):
        day = None
    around = of_days.around(day, asked.today) if day is not None else []
    with together(conn):
        rows = queries.references(
            conn, candidate, day, scope=asked.viewer.scope, most=_MOST_MATCHES
        )
        there = of_days.there(conn, around)
    [partitions] = there.rows()
    return rows.rows(), of_days.Days(around, partitions.names)


def _may_be_stored(day: date, asked: Asked) -> bool:
    oldest = asked.today - timedelta(days=REFERENCE_DAYS)
    return oldest <= day <= asked.today + timedelta(days=1)


def _visible(rows: Sequence[Reference]) -> list[Reference]:
    """Rows without an outcome are left out where the same trace, or any for one that has no trace,
    has one with an outcome.
    """
    told = {(row.reference_id, row.trace_id) for row in rows if row.outcome is not None}
    told |= {(reference, _NO_TRACE) for reference, _ in told}
    seen: set[tuple[str, bytes]] = set()
    kept = []
    for row in rows:
        key = row.reference_id, row.trace_id
        if row.outcome is None and (key in told or key in seen):
            continue
        seen.add(key)
        kept.append(row)
    return sorted(kept, key=lambda row: row.at, reverse=True)


def _best_reading(text: str, candidates: Sequence[str]) -> str:
    """The candidate that most looks like a reference of ours; else what was typed."""
    for is_likely in (ref.is_valid, lambda form: ref.canonical(form) is not None):
        for candidate in candidates:
            if is_likely(candidate):
                return ref.canonical(candidate) or candidate
    shortest = min(candidates, key=len, default=" ".join(text.split()))
    return shortest[:MAX_REFERENCE]


def _of_stored(candidate: str, known: Sequence[Known], asked: Asked) -> Answer:
    rows = [one.row for one in known]
    matches = tuple(make_match(one, asked) for one in known)
    if all(row.outcome is None for row in rows):
        until = max(row.received_at for row in rows) + _ON_ITS_WAY
        if asked.now < until:
            return missing.pending(candidate, until, ref.day_of(candidate), matches)
    is_gone = all(one.call is None for one in known)
    if is_gone and not any(asked.is_kept(row.at.date()) for row in rows):
        return missing.expired(candidate, ref.day_of(candidate), asked, matches)
    return missing.found(candidate, ref.day_of(candidate), matches)


def _of_nothing(conn: Connection, reading: str, asked: Asked) -> Answer:
    day = ref.day_of(reading)
    if day is None:
        return _of_no_reference(conn, reading, asked)
    until = datetime.combine(day, time(), UTC) + timedelta(days=1) + _ON_ITS_WAY
    if day > asked.today + timedelta(days=1):
        return missing.unknown(reading, day)
    if not asked.is_kept(day):
        return missing.expired(reading, day, asked, ())
    if asked.now < until:
        return missing.pending(reading, until, day, ())
    morning = datetime.combine(day, time(), UTC)
    count = queries.dropped(conn, morning, morning + timedelta(days=2), asked.viewer.scope)
    return missing.not_received(reading, day, count)


def _of_no_reference(conn: Connection, reading: str, asked: Asked) -> Answer:
    wanted = missing.near(reading)
    days = {day for day in map(ref.day_of, wanted) if day and _may_be_stored(day, asked)}
    near_by = queries.among(conn, wanted, [*days], asked.viewer.scope) if wanted else []
    rows = [row for row in _visible(near_by) if row.outcome is not None]
    suggestions = missing.suggestions(reading, rows)
    if ref.canonical(reading) is not None or suggestions:
        return missing.mistyped(reading, suggestions)
    return missing.unknown(reading, None)


__all__ = ["RETENTION_DAYS", "Answer", "Asked", "Links", "State", "Viewer", "lookup"]
