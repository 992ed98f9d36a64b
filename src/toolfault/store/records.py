"""Writing rows of the daily tables: which are new, and what to do with a time that has no partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from toolfault.store.models import DAILY, UNDATED
from toolfault.store.partitions import existing
from toolfault.store.stage import COLUMNS, KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

    from toolfault.store.partitions import Range
    from toolfault.store.rows import Call, Event, Log
    from toolfault.store.stage import Stage

_DAY = timedelta(days=1)
_FUTURE = timedelta(days=1)  # how far ahead a clock may be
_REFRESH = timedelta(hours=1)  # partitions are made a week ahead
_KEY_OF = {
    table: itemgetter(*map(COLUMNS[table].index, KEYS[table]))
    for table in DAILY
    if table != "tool_call_ok"
}
_KEY_OF["tool_call_ok"] = _KEY_OF["tool_call"]  # both take rows of `Call`
OK_COLUMNS = itemgetter(*map(COLUMNS["tool_call"].index, COLUMNS["tool_call_ok"]))
_UNDATED_KEYS = {
    table: f"SELECT told_at, {', '.join(rest)} FROM {table} "  # noqa: S608  # names of ours
    f"WHERE {time} = %s AND told_at BETWEEN %s AND %s"
    for table, (time, *rest) in ((table, KEYS[table]) for table in DAILY)
}


class Bounds:
    """From when to when tables have partitions without a gap."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._days: dict[str, tuple[date, date]] = {}
        self._read_at = UNDATED

    def refresh(self, now: datetime) -> None:
        """Looks again once an hour: a writer runs for weeks."""
        if now - self._read_at > _REFRESH:
            self.read(now)

    def read(self, now: datetime) -> None:
        """Looks which partitions there are."""
        tables = (*DAILY, "reference")
        self._days = {table: _unbroken(existing(self._conn, table), now.date()) for table in tables}
        self._read_at = now

    def times(self, table: str, now: datetime) -> tuple[datetime, datetime]:
        """A time from the future is undated even where a partition is there already."""
        low, high = map(_midnight, self._days[table])
        return low, min(high, now + _FUTURE)

    def days(self, table: str, now: datetime) -> tuple[date, date]:
        """The same in days, the second of them excluded."""
        low, high = self._days[table]
        return low, min(high, now.date() + 2 * _DAY)


def _unbroken(ranges: Sequence[Range], today: date) -> tuple[date, date]:
    """The days around today without a gap; none where today has no partition."""
    low = high = today
    for span in sorted(ranges, key=lambda span: span.low):
        if span.low <= high < span.high:
            high = span.high
    for span in sorted(ranges, key=lambda span: span.low, reverse=True):
        if span.low < low <= span.high or span.low <= low < span.high:
            low = span.low
    return (low, high) if high > today else (today, today)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


Row = TypeVar("Row", "Call", "Event", "Log")


def write_new(
    stage: Stage,
    table: str,
    rows: Sequence[Row],
    bounds: tuple[datetime, datetime],
    *,
    unknown: bool,
) -> list[Row]:
    """Writes the rows that are not there yet and returns them, in the order of their time.

    Args:
        stage: of this connection.
        table: a daily one.
        rows: of two under one key the first counts.
        bounds: times that have a partition, the second excluded.
        unknown: whether none of them is expected to be there.

    Raises:
        UniqueViolation: one of them is there although `unknown`.
    """
    if not rows:
        return []
    key_of = _KEY_OF[table]
    given = _with_undated(stage, table, sorted(rows, key=key_of), bounds)
    if not given:
        return []
    columns = map(OK_COLUMNS, given) if table == "tool_call_ok" else given
    if unknown:
        stage.append(table, columns)
        return given
    if stage.put(table, columns) == len(given):
        return given
    first = {key_of(row): row for row in reversed(given)}
    return [first[key] for key in sorted(stage.cursor.fetchall())]


def _with_undated(
    stage: Stage, table: str, rows: list[Row], bounds: tuple[datetime, datetime]
) -> list[Row]:
    """Without what is stored as undated already; what no partition has room for gets the undated key.

    Takes and gives rows in the order of their keys.
    """
    low, high = bounds
    if low <= rows[0][0] and rows[-1][0] < high:
        return _without_known(stage, table, rows)
    inside = [row for row in rows if low <= row[0] < high]
    make: Any = type(rows[0])
    # The columns begin with the time and told_at.
    moved = [make(UNDATED, row[0], *row[2:]) for row in rows if not low <= row[0] < high]
    return sorted(
        moved + (_without_known(stage, table, inside) if inside else []), key=_KEY_OF[table]
    )


def _without_known(stage: Stage, table: str, rows: list[Row]) -> list[Row]:
    """A time that was ahead may have a partition by now: its row is looked for among the undated."""
    stage.cursor.execute(_UNDATED_KEYS[table], (UNDATED, rows[0][0], rows[-1][0]))
    if not (known := set(stage.cursor.fetchall())):
        return rows
    key_of = _KEY_OF[table]
    return [row for row in rows if key_of(row) not in known]
