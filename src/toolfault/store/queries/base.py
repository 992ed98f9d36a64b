"""The engine the statements run on, and how a statement becomes rows."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DisconnectionError

from toolfault.store.models import UNDATED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from sqlalchemy import Connection, Engine

#: Services a token may see; None is all of them.
Scope = frozenset[str] | None
#: The day of references whose own no partition has room for.
UNDATED_DAY: date = UNDATED.date()
#: Days a reference stays findable.
REFERENCE_DAYS = 400
_STATEMENT_TIMEOUT_MS = 10_000
#: A connection that rested for longer is asked whether it still answers before it is used.
_FRESH_SECONDS = 1.0

Row = TypeVar("Row", bound=NamedTuple)


def open_engine(url: str, *, connections: int = 8) -> Engine:
    """An engine for reading: each statement is its own transaction, none runs for long."""
    engine = create_engine(
        url.replace("postgresql://", "postgresql+psycopg://", 1),
        isolation_level="AUTOCOMMIT",  # saves two round trips a look-up; no statement needs another's snapshot
        pool_size=connections,
        max_overflow=0,
        pool_timeout=5,
        connect_args={
            "connect_timeout": 5,
            "options": f"-c statement_timeout={_STATEMENT_TIMEOUT_MS} -c timezone=UTC",
        },
    )
    event.listen(engine, "checkin", _rests)
    event.listen(engine, "checkout", _still_answers)
    return engine


def _rests(_: Any, record: Any) -> None:
    record.info["since"] = time.monotonic()


def _still_answers(driver: psycopg.Connection[Any], record: Any, _: Any) -> None:
    """Not at every use, as the engine's own check would: a look-up takes several connections.

    Raises:
        DisconnectionError: it does not; the engine opens another one.
    """
    rested = time.monotonic() - record.info.get("since", time.monotonic())
    if driver.closed or rested > _FRESH_SECONDS:
        try:
            driver.execute("SELECT 1")
        except psycopg.OperationalError:
            raise DisconnectionError from None


def statement(*parts: str) -> str:
    """A statement put together from constant parts; values are always bound, never pasted."""
    return " ".join(parts)


def execute(
    conn: Connection, stmt: str, values: Mapping[str, Any], *, prepare: bool | None = None
) -> psycopg.Cursor[tuple[Any, ...]]:
    """Runs a statement on the driver's own connection: the engine's results cost twice the time.

    Args:
        conn: a connection of an engine of `open_engine`.
        stmt: as `statement` makes it.
        values: what the statement binds.
        prepare: whether the server keeps its plan; by default after the fifth time.
    """
    return _driver(conn).execute(cast("Any", stmt), values, prepare=prepare)


def _driver(conn: Connection) -> psycopg.Connection[tuple[Any, ...]]:
    return cast("psycopg.Connection[tuple[Any, ...]]", conn.connection.driver_connection)


@contextmanager
def together(conn: Connection) -> Iterator[None]:
    """What is asked inside travels as one, and is there afterwards.

    While other threads work, each round trip may wait for a turn of the interpreter.
    """
    with _driver(conn).pipeline():
        yield


def scalar(conn: Connection, stmt: str, **values: Any) -> Any:
    """The one value a statement gives, or None without a row."""
    row = execute(conn, stmt, values).fetchone()
    return row[0] if row else None


def columns(row: type[NamedTuple], alias: str = "") -> str:
    """The column list that fills a row type."""
    return ", ".join(f"{alias}{field}" for field in row._fields)


class Later(Generic[Row]):
    """Rows that were asked for; the first look waits for them."""

    def __init__(self, row: type[Row], cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
        self._row, self._cursor = row, cursor

    def rows(self) -> list[Row]:
        """All rows, frozen; once."""
        return [self._row(*record) for record in self._cursor]

    def first(self) -> Row | None:
        """The first row, or None without one; once."""
        record = self._cursor.fetchone()
        return None if record is None else self._row(*record)


def ask(conn: Connection, row: type[Row], stmt: str, **values: Any) -> Later[Row]:
    """Asks for the rows of a statement; see `together`."""
    return Later(row, execute(conn, stmt, values))


def fetch(conn: Connection, row: type[Row], stmt: str, **values: Any) -> list[Row]:
    """All rows of a statement, frozen."""
    return ask(conn, row, stmt, **values).rows()


def in_scope(column: str = "service") -> str:
    """The condition that hides what a token may not see."""
    return f"(CAST(%(scope)s AS text[]) IS NULL OR {column} = ANY(CAST(%(scope)s AS text[])))"


def scope_value(scope: Scope) -> list[str] | None:
    """A scope as the value of `scope`."""
    return None if scope is None else sorted(scope)


def ping(conn: Connection) -> None:
    """Raises if the store does not answer."""
    execute(conn, "SELECT 1", {})


def chosen(column: str, name: str, values: Collection[str]) -> str:
    """The condition for a filter with any number of values; no values, no condition."""
    return f"{column} = ANY(CAST(%({name})s AS text[]))" if values else "TRUE"
