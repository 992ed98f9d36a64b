"""The engine the statements run on, and how a statement becomes rows."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import psycopg
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DisconnectionError

from toolfault.store.models import UNDATED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from sqlalchemy import URL, Connection, Engine

#: Services a token may see; None is all of them.
Scope = frozenset[str] | None
#: The day of references whose own no partition has room for.
UNDATED_DAY: date = UNDATED.date()
#: Days a reference stays findable.
REFERENCE_DAYS = 400
_STATEMENT_TIMEOUT_MS = 10_000
#: A connection that rested for longer is asked whether it still answers before it is used.
_FRESH_SECONDS = 1.0
#: Where a connection keeps what was asked for inside `together`.
_ASKED = "asked together"
_NAME = re.compile(r"%\((\w+)\)s")

Row = TypeVar("Row", bound=NamedTuple)


def open_engine(url: str | URL, *, connections: int = 8, keeps_plans: bool = False) -> Engine:
    """An engine for reading: each statement is its own transaction, none runs for long.

    Args:
        url: of the database, or of another engine.
        connections: at most.
        keeps_plans: plan a statement once, whatever its values are; only for those that name their partitions.
    """
    options = f"-c statement_timeout={_STATEMENT_TIMEOUT_MS} -c timezone=UTC"
    kept: dict[str, Any] = {}
    if keeps_plans:
        kept = {"prepare_threshold": 0}  # at the first use
        options += " -c plan_cache_mode=force_generic_plan"
    if isinstance(url, str):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",  # saves two round trips a look-up; no statement needs another's snapshot
        pool_size=connections,
        max_overflow=0,
        pool_timeout=5,
        pool_use_lifo=True,  # the connection whose plans are made already
        connect_args={"connect_timeout": 5, "options": options, **kept},
    )
    if keeps_plans:
        event.listen(engine, "connect", _keeps_few)
    event.listen(engine, "checkin", _rests)
    event.listen(engine, "checkout", _still_answers)
    return engine


def _keeps_few(driver: psycopg.Connection[Any], _: Any) -> None:
    """The plans of a month of days, which take the database some 30 MiB for each connection."""
    driver.prepared_max = 40


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


def scalar(conn: Connection, stmt: str, **values: Any) -> Any:
    """The one value a statement gives, or None without a row."""
    row = execute(conn, stmt, values).fetchone()
    return row[0] if row else None


def columns(row: type[NamedTuple], alias: str = "", **computed: str) -> str:
    """The column list that fills a row type; what is computed is no column of that name."""
    return ", ".join(computed.get(field, f"{alias}{field}") for field in row._fields)


class Later(Generic[Row]):
    """Rows that were asked for; they are there at once, or at the end of `together`."""

    def __init__(self, row: type[Row]) -> None:
        self._row = row
        self.records: Iterable[tuple[Any, ...]] = ()

    def rows(self) -> list[Row]:
        """All rows, frozen; once."""
        return [self._row(*record) for record in self.records]

    def first(self) -> Row | None:
        """The first row, or None without one; once."""
        return next((self._row(*record) for record in self.records), None)


def ask(conn: Connection, row: type[Row], stmt: str, **values: Any) -> Later[Row]:
    """Asks for the rows of a statement; see `together`."""
    later = Later(row)
    if (asked := conn.info.get(_ASKED)) is None:
        later.records = execute(conn, stmt, values)
    else:
        asked.append((later, stmt, values))
    return later


@contextmanager
def together(conn: Connection) -> Iterator[None]:
    """What is asked inside travels as one statement, and is there afterwards.

    Each statement costs both sides more time than most of them take to run.
    """
    asked: list[tuple[Later[Any], str, dict[str, Any]]] = []
    conn.info[_ASKED] = asked
    try:
        yield
    finally:
        del conn.info[_ASKED]
    if not asked:
        return
    values = {f"{name}_{i}": v for i, (*_, kept) in enumerate(asked) for name, v in kept.items()}
    stmt = _joined(tuple(stmt for _, stmt, _ in asked))
    answers = _driver(conn).execute(cast("Any", stmt), values, binary=True).fetchone()
    for (later, *_), records in zip(asked, answers or (), strict=True):
        later.records = records


@lru_cache(maxsize=256)
def _joined(stmts: tuple[str, ...]) -> str:
    """One statement that gives the rows of each of some as an array."""
    numbered = (_NAME.sub(rf"%(\g<1>_{i})s", stmt) for i, stmt in enumerate(stmts))
    arrays = (statement("ARRAY(SELECT q FROM (", one, ") AS q)") for one in numbered)
    return statement("SELECT", ", ".join(arrays))


def fetch(conn: Connection, row: type[Row], stmt: str, **values: Any) -> list[Row]:
    """All rows of a statement, frozen."""
    return ask(conn, row, stmt, **values).rows()


def in_scope(column: str = "service") -> str:
    """The condition that hides what a token may not see."""
    return f"(CAST(%(scope)s AS text[]) IS NULL OR {column} = ANY(%(scope)s))"


def scope_value(scope: Scope) -> list[str] | None:
    """A scope as the value of `scope`."""
    return None if scope is None else sorted(scope)


def ping(conn: Connection) -> None:
    """Raises if the store does not answer."""
    execute(conn, "SELECT 1", {})


def chosen(column: str, name: str, values: Collection[str]) -> str:
    """The condition for a filter with any number of values; no values, no condition."""
    return f"{column} = ANY(CAST(%({name})s AS text[]))" if values else "TRUE"
