"""Statements that name the partitions they read.

PostgreSQL plans a statement about a partitioned table anew each time it runs, for its values say which
partitions can be left out; that takes five times as long as to read what a look-up reads. A statement
that names its partitions is planned once by each connection.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from toolfault.store.partitions import daily
from toolfault.store.queries.base import ask, statement

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Later

_DAY = timedelta(days=1)
_TABLES = ("tool_call", "tool_call_ok", "log_record")
#: Of the tables themselves: one that was detached, or is another schema's, has the same name.
_THERE = statement(
    "SELECT ARRAY(SELECT relname::text FROM pg_class JOIN pg_inherits ON inhrelid = oid",
    "WHERE relname = ANY(%(names)s) AND inhparent = ANY(CAST(%(tables)s AS regclass[]))",
    "AND pg_table_is_visible(oid))",
)


class Partitions(NamedTuple):
    """Those that are there."""

    names: list[str]


class Days:
    """Some days, and which of their partitions are there."""

    def __init__(self, days: Collection[date] = (), there: Collection[str] = ()) -> None:
        self._days, self._there = days, there

    def table(self, name: str, since: datetime, until: datetime, *more: str) -> str:
        """What a FROM clause reads: a table's partitions from one day to another, and `more`."""
        first, count = since.date(), (until.date() - since.date()).days + 1
        days = [*takewhile(self._days.__contains__, (first + _DAY * i for i in range(count)))]
        if len(days) < count:
            return name
        names = [part for day in days if (part := daily(name, day)) in self._there]
        parts = " UNION ALL ".join(f"TABLE {part}" for part in (*names, *more))
        return statement(
            "(", parts or statement("SELECT * FROM", name, "WHERE false"), ") AS", name
        )


#: Statements for it name no partition.
ANY_DAY = Days()


def around(*days: date) -> list[date]:
    """These days, and two before and behind each."""
    return sorted({day + _DAY * i for day in days for i in range(-2, 3)})


def there(conn: Connection, days: Collection[date]) -> Later[Partitions]:
    """Which partitions of the tables that a look-up reads there are of these days."""
    names = [daily(table, day) for table in _TABLES for day in days]
    return ask(conn, Partitions, _THERE, names=names, tables=[*_TABLES])
