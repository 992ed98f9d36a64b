"""The list of errors: calls that were not ok."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault.conventions import FIELD, OTHER, UNDECLARED
from toolfault.store.queries.base import (
    Later,
    Scope,
    ask,
    chosen,
    columns,
    execute,
    in_scope,
    scope_value,
    statement,
)
from toolfault.taxonomy import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection

#: When it arrived, trace and span: the order of the list.
Key = tuple["datetime", bytes, bytes]


class Error(NamedTuple):
    """A call that was not ok, as the list shows it."""

    received_at: datetime
    started_at: datetime
    told_at: datetime | None
    duration_us: int
    attempts: int
    trace_id: bytes
    span_id: bytes
    service: str
    environment: str
    tool: str
    outcome: str
    code: str | None
    reason: str | None
    action: str
    effect: str
    reference_id: str | None
    conversation_id: str | None
    agent: str | None
    version: str | None
    fingerprint: bytes | None
    field: str | None


class Arrival(NamedTuple):
    """When a call arrived."""

    received_at: datetime


class Filters(NamedTuple):
    """What a list is narrowed to; an empty filter lets everything through."""

    tool: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    service: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    conversation: str | None = None
    trace: bytes | None = None
    fingerprint: bytes | None = None
    since: datetime | None = None
    until: datetime | None = None


class Found(NamedTuple):
    """Some errors, and how far back the search went where it stopped before the end."""

    rows: list[Error]
    searched_to: Key | None


_SETS = ("tool", "code", "outcome", "reason", "service", "environment")
#: Filters with an index of their own, and what each compares.
_INDEXED = {"conversation": "conversation_id", "trace": "trace_id", "fingerprint": "fingerprint"}
#: Filters without one: of the calls that the others leave, so many are looked through for a page.
_UNINDEXED = ("outcome", "reason", "service", "environment")
_SEARCHED = 20_000
_COLUMNS = columns(Error, field=f"attributes ->> '{FIELD}'")
_KEY = "(received_at, trace_id, span_id)"
_ORDER = "ORDER BY received_at DESC, trace_id DESC, span_id DESC"
# What a metric counts under this name: tools without a label of their own.
_UNDECLARED_TOOL = (
    "NOT EXISTS (SELECT 1 FROM label WHERE label.kind = 'tool' AND label.value = tool_call.tool"
    " AND label.service = tool_call.service AND label.environment = tool_call.environment)"
)
_NEWEST = "SELECT received_at FROM tool_call ORDER BY received_at DESC LIMIT 1"


def errors(
    conn: Connection,
    filters: Filters,
    *,
    before: Key | None = None,
    scope: Scope = None,
    most: int = 50,
    searched: int = _SEARCHED,
) -> Found:
    """Calls that were not ok, newest arrival first; cancelled ones only where asked for.

    Args:
        conn: a connection of an engine of `open_engine`.
        filters: what the list is narrowed to.
        before: the key of the last row, or `searched_to`, of the page before.
        scope: services that may be seen.
        most: rows at most.
        searched: how many calls are looked through where no index finds them.
    """
    at, trace, span = before or (None, None, None)
    values: dict[str, Any] = {
        **{name: list(v) if name in _SETS else v for name, v in filters._asdict().items()},
        "scope": scope_value(scope),
        "at": at,
        "before_trace": trace,
        "before_span": span,
    }
    window = _window(filters, is_later=before is not None)
    narrowed = [_chosen(name, values[name]) for name in _SETS]
    narrowed += [f"{column} = %({name})s" for name, column in _INDEXED.items() if values[name]]
    last = _end_of_search(conn, window, searched, values) if _is_search(filters) else None
    if last is not None:
        narrowed.append(f"{_KEY} >= (%(to)s, %(to_trace)s, %(to_span)s)")
        values.update(zip(("to", "to_trace", "to_span"), last, strict=True))
    select = ("SELECT", _COLUMNS, "FROM tool_call WHERE", " AND ".join([*window, *narrowed]))
    stmt = statement(*select, _ORDER, "LIMIT %(most)s")
    # Planned anew each time: which index is right depends on how rare the values are.
    rows = execute(conn, stmt, {**values, "most": most}, prepare=False)
    return Found([Error(*row) for row in rows], last)


def _window(filters: Filters, *, is_later: bool) -> list[str]:
    """The calls the list is about.

    The scope belongs here: where a search stops must say nothing about what is out of it.
    """
    conditions = [in_scope()]
    if Outcome.CANCELLED not in filters.outcome:  # no error, and the index of tools leaves it out
        conditions.append("code IS NOT NULL")
    if filters.since is not None:
        conditions.append("received_at >= %(since)s")
    if filters.until is not None:
        conditions.append("received_at < %(until)s")
    if is_later:
        conditions.append(f"{_KEY} < (%(at)s, %(before_trace)s, %(before_span)s)")
    return conditions


def _is_search(filters: Filters) -> bool:
    """Whether a rare value could make the whole table be read for one page."""
    if any(getattr(filters, name) for name in _INDEXED):
        return False
    if any(getattr(filters, name) for name in _UNINDEXED):
        return True
    return UNDECLARED in filters.tool or bool(filters.code and not filters.tool)


def _chosen(name: str, values: Collection[str]) -> str:
    """The condition of a filter; names that stand for many in metrics find those they stand for."""
    if OTHER in values:
        return "TRUE"
    if name == "tool" and UNDECLARED in values:
        return f"({chosen(name, name, values)} OR {_UNDECLARED_TOOL})"
    return chosen(name, name, values)


def _end_of_search(
    conn: Connection, window: list[str], searched: int, values: dict[str, Any]
) -> Key | None:
    """The last call to be looked at, or None when there are fewer."""
    stmt = statement(
        "SELECT received_at, trace_id, span_id FROM tool_call WHERE",
        " AND ".join(window),
        _ORDER,
        "OFFSET %(searched)s LIMIT 1",
    )
    return execute(conn, stmt, {**values, "searched": searched}, prepare=False).fetchone()


def newest(conn: Connection) -> Later[Arrival]:
    """When the newest call that was not ok arrived, of any service."""
    return ask(conn, Arrival, _NEWEST)
