"""Rows go by binary COPY: straight into their table while none of them is known, else by way of a temporary one.

A bare COPY takes the server two thirds of the time, but one row that is there already ends it. By way
of the temporary table known rows are left out: 1.9 times as fast as `INSERT .. SELECT unnest(..)`, 3
times as fast as pipelined `executemany`. Sums are few rows whatever the size of a batch: they go as
one JSON parameter, which costs no temporary table (0.25 ms a commit each).
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from psycopg.types.string import BytesBinaryDumper
from sqlalchemy import BigInteger, Boolean, Date, DateTime, LargeBinary, SmallInteger, Text
from sqlalchemy.dialects.postgresql import JSONB

from toolfault.store.models import DAILY, METADATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import Connection, Cursor
    from sqlalchemy.types import TypeEngine

#: Bounds of the histograms, the last bucket is above them: microseconds, and attempts.
DURATION_BOUNDS = tuple(10_000 << doubling for doubling in range(14))  # 10 ms to 82 s
ATTEMPT_BOUNDS = (0, 1, 2, 3, 5, 8, 12)

_STAGED = (*DAILY, "reference")
_SUMS = ("error_group", "error_group_tally", "call_total", "call_tally", "event_total")
_WRITTEN = (*_STAGED, *_SUMS)
_RETURNING = (*DAILY, "error_group")  # where it matters which rows were new
_LEFT_TO_DEFAULTS = {"status", "status_at"}  # people's, not ours
# JSON comes as text and the server reads it: psycopg has no fast way to send it as jsonb. In its binary
# form jsonb is its text behind the number of the form's version.
_JSONB_VERSION = "\x01"
_TYPES: dict[type[TypeEngine[Any]], str] = {
    BigInteger: "int8", Boolean: "bool", Date: "date", DateTime: "timestamptz", JSONB: "text",
    LargeBinary: "bytea", SmallInteger: "int2", Text: "text",
}  # fmt: skip

#: Columns of each table in the order in which rows are given.
COLUMNS = {
    table: tuple(c.name for c in METADATA.tables[table].columns if c.name not in _LEFT_TO_DEFAULTS)
    for table in _WRITTEN
}
#: The primary key, for the daily tables with the time first: rows sorted by it fill one partition after another.
KEYS = {
    table: tuple(
        sorted((c.name for c in METADATA.tables[table].primary_key), key=COLUMNS[table].index)
    )
    if table in DAILY
    else tuple(c.name for c in METADATA.tables[table].primary_key)
    for table in _WRITTEN
}


_COPY_TYPES = {
    table: [_TYPES[type(METADATA.tables[table].columns[name].type)] for name in COLUMNS[table]]
    for table in _STAGED
}
_JSON = "attributes"


def _added(table: str, *columns: str) -> list[str]:
    return [f"{c} = {table}.{c} + excluded.{c}" for c in columns]


def _added_buckets(column: str, bounds: Sequence[int]) -> str:
    sums = (f"call_total.{column}[{i}] + excluded.{column}[{i}]" for i in range(1, len(bounds) + 2))
    return f"{column} = ARRAY[{', '.join(sums)}]"


def _newest(*columns: str) -> list[str]:
    older = "call_total.exemplar_at > excluded.exemplar_at OR excluded.exemplar_at IS NULL"
    return [f"{c} = CASE WHEN {older} THEN call_total.{c} ELSE excluded.{c} END" for c in columns]


_ON_CONFLICT = {
    # An outline is filled once; what was here before it was only a part of the call.
    "reference": ", ".join(
        f"{c} = excluded.{c}" for c in COLUMNS["reference"] if c not in KEYS["reference"]
    )
    + " WHERE reference.outcome IS NULL AND excluded.outcome IS NOT NULL",
    "error_group_tally": ", ".join(
        [
            *_added("error_group_tally", "calls"),
            "last_seen = greatest(error_group_tally.last_seen, excluded.last_seen)",
        ]
    ),
    "call_total": ", ".join(
        [
            *_added("call_total", "calls", "duration_us", "attempts"),
            *_newest("exemplar_reference", "exemplar_trace", "exemplar_at"),
            _added_buckets("duration_buckets", DURATION_BOUNDS),
            _added_buckets("attempts_buckets", ATTEMPT_BOUNDS),
        ]
    ),
    "call_tally": ", ".join(_added("call_tally", "calls")),
    "event_total": ", ".join(_added("event_total", "amount")),
}


def _insert(table: str) -> str:
    columns, key = ", ".join(COLUMNS[table]), ", ".join(KEYS[table])
    action = f"UPDATE SET {_ON_CONFLICT[table]}" if table in _ON_CONFLICT else "NOTHING"
    returning = f" RETURNING {key}" if table in _RETURNING else ""
    read = columns.replace(_JSON, f"{_JSON}::jsonb")
    given = f"stage_{table}" if table in _STAGED else f"json_populate_recordset(NULL::{table}, %s)"
    return (
        f"INSERT INTO {table} ({columns}) SELECT {read} FROM {given} "  # noqa: S608  # names of ours
        f"ON CONFLICT ({key}) DO {action}{returning}"
    )


_INSERT = {table: _insert(table) for table in _WRITTEN}
_COPY = {
    into: f"COPY {into} ({', '.join(COLUMNS[table])}) FROM STDIN (FORMAT binary)"
    for table in _STAGED
    for into in (table, f"stage_{table}")
}
_MAKE = "; ".join(
    f"CREATE TEMP TABLE IF NOT EXISTS stage_{table} ON COMMIT DELETE ROWS AS "  # noqa: S608
    f"SELECT {', '.join(COLUMNS[table]).replace(_JSON, f'{_JSON}::text')} FROM {table} LIMIT 0"
    for table in _STAGED
)


class Stage:
    """The temporary tables of one connection."""

    def __init__(self, conn: Connection) -> None:
        # For bytes psycopg would choose the dumper of its class Binary, which is Python and slow.
        conn.adapters.register_dumper(bytes, BytesBinaryDumper)
        with conn.transaction():
            conn.execute(_MAKE)
        self.cursor: Cursor[Any] = conn.cursor(binary=True)

    def put(self, table: str, rows: Iterable[Sequence[object]]) -> int:
        """Writes the rows and returns how many are new; the cursor then holds the keys of those."""
        self._copy(table, f"stage_{table}", rows)
        self.cursor.execute(_INSERT[table])
        return self.cursor.rowcount

    def append(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Writes rows of a daily table that are all new.

        Raises:
            UniqueViolation: one of them is there already, or given twice.
        """
        self._copy(table, table, map(_with_jsonb, rows))

    def _copy(self, table: str, into: str, rows: Iterable[Sequence[object]]) -> None:
        with self.cursor.copy(_COPY[into]) as copy:
            copy.set_types(_COPY_TYPES[table])
            write = copy.write_row
            for row in rows:
                write(row)

    def add(self, table: str, rows: Iterable[Sequence[object]]) -> None:
        """Adds the rows, each a sum of many; the cursor may hold the keys of the new ones."""
        names = COLUMNS[table]
        told = [dict(zip(names, row, strict=True)) for row in rows]
        self.cursor.execute(_INSERT[table], (json.dumps(told, default=_as_text),))


def _with_jsonb(row: Sequence[Any]) -> Sequence[object]:
    told = row[-1]  # `attributes` is the last column of every daily table
    return (*row[:-1], _JSONB_VERSION + told) if told else row


def _as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else f"\\x{value.hex()}"
