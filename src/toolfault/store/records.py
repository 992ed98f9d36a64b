"""Writing rows of the daily tables: which are new, and what to do with a time that has no partition."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from toolfault.store.models import DAILY, UNDATED
from toolfault.store.stage import COLUMNS, KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import Connection

    from toolfault.store.rows import Call, Event, Log
    from toolfault.store.stage import Stage

DAY = timedelta(days=1)
_REFRESH = timedelta(hours=1)  # partitions are made a week ahead
_KEY_OF = {
    table: itemgetter(*map(COLUMNS[table].index, KEYS[table]))
    for table in DAILY
    if table != "tool_call_ok"
}
_KEY_OF["tool_call_ok"] = _KEY_OF["tool_call"]  # both take rows of `Call`
OK_COLUMNS = itemgetter(*map(COLUMNS["tool_call"].index, COLUMNS["tool_call_ok"]))
_DAYS_OF_PARTITIONS = """SELECT inhparent::regclass::text, substring(relname FROM '_([0-9]{8})$')
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = ANY(%s::regclass[]) AND relname ~ '_[0-9]{8}$'"""
_UNDATED_KEYS = {
    table: f"SELECT told_at, {', '.join(rest)} FROM {table} "  # noqa: S608  # names of ours
    f"WHERE {time} = %s AND told_at BETWEEN %s AND %s"
    for table, (time, *rest) in ((table, KEYS[table]) for table in DAILY)
}


class Bounds:
    """From when to when each table has a partition for every day."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._ranges: dict[str, tuple[datetime, datetime]] = {}
        self._read_at = UNDATED

    def refresh(self, now: datetime) -> None:
        """Looks again once an hour: a writer runs for weeks."""
        if now - self._read_at > _REFRESH:
            self.read(now)

    def read(self, now: datetime) -> None:
        """Looks which partitions there are."""
        days: dict[str, set[date]] = {table: set() for table in DAILY}
        with self._conn.transaction():
            for table, text in self._conn.execute(_DAYS_OF_PARTITIONS, (list(DAILY),)):
                days[table].add(datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).date())
        self._ranges = {table: _unbroken(there, now.date()) for table, there in days.items()}
        self._read_at = now

    def of(self, table: str, now: datetime) -> tuple[datetime, datetime]:
        """A time from the future is undated even where a partition is there already."""
        low, high = self._ranges[table]
        return low, min(high, now + DAY)


def _unbroken(days: set[date], today: date) -> tuple[datetime, datetime]:
    """The range of days around today without a gap; nothing where today is missing."""
    if today not in days:
        return UNDATED, UNDATED
    low = high = today
    while low - DAY in days:
        low -= DAY
    while high in days:
        high += DAY
    return _midnight(low), _midnight(high)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


Row = TypeVar("Row", "Call", "Event", "Log")


def write_new(
    stage: Stage, table: str, rows: Sequence[Row], bounds: tuple[datetime, datetime]
) -> list[Row]:
    """Writes the rows that are not there yet and returns them, in the order of their time."""
    if not rows:
        return []
    key_of = _KEY_OF[table]
    keyed: dict[Any, Row] = {
        key_of(row): row for row in reversed(rows)
    }  # of two signals the first counts
    _move_undated(stage, table, keyed, bounds)
    keys = sorted(keyed)
    given: Iterable[Sequence[object]] = [keyed[key] for key in keys]
    new = (
        stage.put(table, map(OK_COLUMNS, given) if table == "tool_call_ok" else given)
        if keys
        else 0
    )
    if new < len(keys):
        keys = sorted(stage.cursor.fetchall())
    return [keyed[key] for key in keys]


def _move_undated(
    stage: Stage, table: str, keyed: dict[Any, Row], bounds: tuple[datetime, datetime]
) -> None:
    """Takes out what is stored as undated already, and gives the undated key to what no partition has room for."""
    low, high = bounds
    outside = [key for key in keyed if not low <= key[0] < high]
    moved = [keyed.pop(key) for key in outside]
    if keyed:
        times = [key[0] for key in keyed]
        stage.cursor.execute(_UNDATED_KEYS[table], (UNDATED, min(times), max(times)))
        for known in stage.cursor.fetchall():
            keyed.pop(known, None)
    for row in moved:
        make: Any = type(row)
        undated = make(UNDATED, row[0], *row[2:])  # the columns begin with the time and told_at
        keyed[_KEY_OF[table](undated)] = undated
