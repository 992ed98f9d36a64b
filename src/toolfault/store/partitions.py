"""Partitions: made ahead, dropped by age. Safe to run twice, from several replicas, or to be killed.

Making or dropping a partition locks its parent for an instant. Writers queue behind that wait, so
it is given up quickly and tried again: a week of partitions ahead leaves time for that.
"""

from __future__ import annotations

import re
import time
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import errors, sql

from toolfault.store import locks
from toolfault.store.models import DAILY, METADATA, MONTHLY, PARTITION_NAME, UNDATED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from psycopg import Connection

_DAY = timedelta(days=1)
_LOCK_TIMEOUT = "500ms"
_TRIES, _PAUSE_SECONDS = 5, 0.2
_RECEIVED = ("tool_call_ok", "tool_call", "run_event", "log_record", "reference")
# Not partitioned, because they are distributed or small; pruned at the age of what is kept longest.
_PRUNED = {"error_group_tally": "hour", "lookup_audit": "looked_at"}


class Retention(NamedTuple):
    """Full days that are kept."""

    ok_days: int = 3
    days: int = 30
    outline_days: int = 400
    ahead_days: int = 7

    def of(self, table: str) -> int:
        """Days of one table."""
        if table in DAILY:
            return self.ok_days if table == "tool_call_ok" else self.days
        return self.outline_days


class Maintained(NamedTuple):
    """What one run did; names of partitions."""

    made: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    postponed: tuple[str, ...] = ()  # their table was busy; the next run tries again


class Range(NamedTuple):
    """A partition and the days it holds, `high` excluded."""

    name: str
    low: date
    high: date


@lru_cache(maxsize=4096)
def daily(table: str, day: date) -> str:
    """The name of a daily table's partition."""
    return f"{table}_{day:%Y%m%d}"


def maintain(conn: Connection, now: datetime, retention: Retention = Retention()) -> Maintained:  # noqa: B008
    """Makes partitions ahead and drops those older than `retention`; does nothing in a second replica.

    Nothing is dropped unless the database's clock agrees with `now` that it is old: one clock that
    was stepped forward must not empty the store.
    """
    with conn.transaction():
        held = _value(conn, "SELECT pg_try_advisory_lock(%s)", locks.MAINTENANCE)
    if not held:
        return Maintained()
    try:
        with conn.transaction():
            its_now = _value(conn, "SELECT clock_timestamp()")
        return _maintain(conn, now, min(now, its_now), retention)
    finally:
        if not conn.closed:
            with conn.transaction():
                conn.execute("SELECT pg_advisory_unlock(%s)", [locks.MAINTENANCE])


def ahead(conn: Connection, today: date) -> int:
    """For how many days from tomorrow on every daily table has a partition."""
    days = [{span.low for span in existing(conn, table)} for table in DAILY]
    count = 0
    while all(today + _DAY * (count + 1) in of_table for of_table in days):
        count += 1
    return count


def _maintain(
    conn: Connection, now: datetime, oldest_now: datetime, retention: Retention
) -> Maintained:
    made: list[str] = []
    dropped: list[str] = []
    postponed: list[str] = []
    for table in (*DAILY, *MONTHLY):
        there = {span.name: span for span in existing(conn, table)}
        wanted = [span for span in _wanted(table, now.date(), retention) if span.name not in there]
        ahead_first = [span.name for span in wanted]
        done = not wanted or _locked_briefly(conn, lambda: _make(conn, table, wanted))  # noqa: B023
        (made if done else postponed).extend(ahead_first)
        oldest = oldest_now.date() - _DAY * retention.of(table)
        for span in there.values():
            if UNDATED.date() < span.low and span.high <= oldest:
                done = _locked_briefly(conn, lambda: _drop(conn, span.name))  # noqa: B023
                (dropped if done else postponed).append(span.name)
    _prune(conn, oldest_now, retention)
    return Maintained(tuple(made), tuple(dropped), tuple(postponed))


def _wanted(table: str, today: date, retention: Retention) -> Iterator[Range]:
    yield Range(f"{table}_undated", UNDATED.date(), UNDATED.date() + _DAY)
    low, last = today - _DAY * retention.of(table), today + _DAY * retention.ahead_days
    if table in MONTHLY:
        low = low.replace(day=1)
    while low <= last:
        high = (low + _DAY * 31).replace(day=1) if table in MONTHLY else low + _DAY
        yield Range(f"{table}_{low:%Y%m}" if table in MONTHLY else daily(table, low), low, high)
        low = high


def existing(conn: Connection, table: str) -> list[Range]:
    """The partitions of a table, the oldest first and `undated` last."""
    with conn.transaction():
        rows = conn.execute(
            "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
            "WHERE inhparent = %s::regclass ORDER BY relname",
            [table],
        ).fetchall()
    return [span for (name,) in rows if (span := _range_of(name)) is not None]


def _range_of(name: str) -> Range | None:
    found = re.search(PARTITION_NAME, name)
    if found is None:
        return None
    suffix = found.group(1)
    if suffix == "undated":
        return Range(name, UNDATED.date(), UNDATED.date() + _DAY)
    if len(suffix) == 6:
        low = date(int(suffix[:4]), int(suffix[4:]), 1)
        return Range(name, low, (low + _DAY * 31).replace(day=1))
    low = date(int(suffix[:4]), int(suffix[4:6]), int(suffix[6:]))
    return Range(name, low, low + _DAY)


def _locked_briefly(conn: Connection, change: Callable[[], None]) -> bool:
    """Runs a change of the schema; False if its locks could not be had without a long wait."""
    for _ in range(_TRIES):
        try:
            with conn.transaction():
                conn.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(_LOCK_TIMEOUT))
                change()
        except errors.LockNotAvailable:
            time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False


def _make(conn: Connection, table: str, spans: list[Range]) -> None:
    zone = "" if table == "reference" else " 00:00+00"
    for span in spans:
        conn.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})"
            ).format(
                sql.Identifier(span.name),
                sql.Identifier(table),
                f"{span.low}{zone}",
                f"{span.high}{zone}",
            )
        )


def _drop(conn: Connection, name: str) -> None:
    conn.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))


def _prune(conn: Connection, now: datetime, retention: Retention) -> None:
    """Empties what has no partition to drop, by the time of arrival where a record's own is unknown."""
    for table in _RECEIVED:
        with conn.transaction():
            conn.execute(
                sql.SQL("DELETE FROM {} WHERE {} = %s AND received_at < %s").format(
                    sql.Identifier(table), sql.Identifier(_partition_column(table))
                ),
                [_undated_key(table), now - _DAY * retention.of(table)],
            )
    for table, column in _PRUNED.items():
        with conn.transaction():
            conn.execute(
                sql.SQL("DELETE FROM {} WHERE {} < %s").format(
                    sql.Identifier(table), sql.Identifier(column)
                ),
                [now - _DAY * retention.outline_days],
            )


def _partition_column(table: str) -> str:
    rule: str = METADATA.tables[table].dialect_options["postgresql"]["partition_by"]
    return rule.removeprefix("RANGE (").removesuffix(")")


def _undated_key(table: str) -> date | datetime:
    return UNDATED.date() if table == "reference" else UNDATED


def _value(conn: Connection, query: str, *params: object) -> Any:
    row = conn.execute(query, params).fetchone()
    return None if row is None else row[0]
