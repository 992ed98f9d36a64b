"""Kinds of columns and indexes, named once."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Index,
    LargeBinary,
    MetaData,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

METADATA = MetaData()
UNDATED = datetime(1900, 1, 1, tzinfo=UTC)
#: Partitions are kept out of the models: they come and go by age.
PARTITION_NAME = r"_(undated|\d{6}|\d{8})$"

#: Tables with a row per record, one partition a day.
DAILY = ("tool_call_ok", "tool_call", "run_event", "log_record")
MONTHLY = ("reference", "call_tally")


def time(name: str, *, null: bool = False) -> Column[datetime]:
    """A point in time, always with its zone."""
    return Column(name, DateTime(timezone=True), nullable=null)


def big(name: str, *, null: bool = False) -> Column[int]:
    """Eight bytes: sums and microseconds."""
    return Column(name, BigInteger, nullable=null)


def small(name: str, *, null: bool = False) -> Column[int]:
    """Two bytes."""
    return Column(name, SmallInteger, nullable=null)


def flag(name: str) -> Column[bool]:
    """Yes or no, always known."""
    return Column(name, Boolean, nullable=False)


def binary(name: str, *, null: bool = False) -> Column[bytes]:
    """Ids and hashes as they are on the wire."""
    return Column(name, LargeBinary, nullable=null)


def name(name: str, *, null: bool = False, default: str | None = None) -> Column[str]:
    """A name, id or code: compared byte by byte."""
    return Column(name, Text(collation="C"), nullable=null, server_default=default)


def prose(name: str, *, null: bool = True) -> Column[str]:
    """Text for people."""
    return Column(name, Text, nullable=null)


def json(name: str, *, null: bool = True) -> Column[object]:
    """What has no column of its own."""
    return Column(name, JSONB, nullable=null)


def told_index(table: str) -> Index:
    """Finds a record that came before its time had a partition."""
    return Index(f"{table}_told_idx", "told_at", postgresql_where=text("told_at IS NOT NULL"))


def partial_index(name: str, *columns: str, where: str) -> Index:
    """An index of only those rows that have `where`."""
    return Index(name, *columns, postgresql_where=text(f"{where} IS NOT NULL"))


def block_index(name: str, column: str) -> Index:
    """24 kB a day where a B-tree takes 3.7 MB; rows arrive in this order."""
    return Index(name, column, postgresql_using="brin", postgresql_with={"pages_per_range": 32})


def ids_check(table: str) -> CheckConstraint:
    """A trace id has 16 bytes and a span id 8, zeros included."""
    return CheckConstraint(
        "octet_length(trace_id) = 16 AND octet_length(span_id) = 8", name=f"{table}_ids_check"
    )
