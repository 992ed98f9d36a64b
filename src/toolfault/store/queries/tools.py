"""Tools: the catalog, how often they end how, the reasons they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolfault.store.queries.base import (
    Scope,
    chosen,
    columns,
    fetch,
    in_scope,
    scope_value,
    statement,
)
from toolfault.store.queries.references import Tool

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from sqlalchemy import Connection


class Ended(NamedTuple):
    """How often a tool's calls ended one way: lately, and before."""

    service: str
    environment: str
    tool: str
    outcome: str
    lately: int
    before: int
    first_hour: datetime


class ToolHour(NamedTuple):
    """How a tool's calls ended in one hour."""

    hour: datetime
    tool: str
    outcome: str
    calls: int


class Outcomes(NamedTuple):
    """How many calls ended one way."""

    outcome: str
    calls: int


class Reason(NamedTuple):
    """How often a tool gave a reason."""

    reason: str | None
    outcome: str
    code: str | None
    calls: int
    last_seen: datetime


class WrongField(NamedTuple):
    """An argument that models get wrong."""

    field: str
    calls: int
    conversations: int
    last_seen: datetime


_TOOLS = statement(
    "SELECT",
    columns(Tool),
    "FROM tool_catalog WHERE",
    in_scope(),
    "AND (service, environment, tool) > (%(service)s, %(environment)s, %(tool)s)",
    "ORDER BY service, environment, tool LIMIT %(most)s",
)
_NAMED = statement(
    "SELECT",
    columns(Tool),
    "FROM tool_catalog WHERE tool = %(tool)s AND",
    in_scope(),
    "ORDER BY last_seen DESC LIMIT 20",
)
_ENDED = statement(
    "SELECT service, environment, tool, outcome,",
    "coalesce(sum(calls) FILTER (WHERE hour >= %(lately)s), 0)::bigint,",
    "coalesce(sum(calls) FILTER (WHERE hour < %(lately)s), 0)::bigint, min(hour)",
    "FROM call_tally WHERE hour >= %(since)s AND (CAST(%(tool)s AS text) IS NULL OR tool = %(tool)s) AND",
    in_scope(),
    "GROUP BY 1, 2, 3, 4",
)
_HOURS = statement(
    "SELECT hour, tool, outcome, sum(calls)::bigint FROM call_tally",
    "WHERE hour >= %(since)s AND tool = %(tool)s AND",
    in_scope(),
    "GROUP BY 1, 2, 3 ORDER BY 1",
)
_TALLIED = ("tool", "code", "service", "environment")
_OUTCOMES = ("SELECT outcome, sum(calls)::bigint FROM call_tally WHERE hour >= %(since)s AND",)
_NEWEST = (
    "FROM tool_call WHERE tool = %(tool)s AND code IS NOT NULL AND received_at >= %(since)s AND",
    in_scope(),
    "ORDER BY received_at DESC LIMIT 10000) AS newest",
)
_REASONS = statement(
    "SELECT reason, outcome, code, count(*), max(received_at)",
    "FROM (SELECT reason, outcome, code, received_at",
    *_NEWEST,
    "GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT %(most)s",
)
_FIELDS = statement(
    "SELECT field, count(*), count(DISTINCT conversation_id), max(received_at)",
    "FROM (SELECT attributes ->> %(key)s AS field, conversation_id, received_at",
    *_NEWEST,
    "WHERE field IS NOT NULL GROUP BY 1 ORDER BY 2 DESC LIMIT %(most)s",
)


def tools(
    conn: Connection,
    *,
    after: tuple[str, str, str] = ("", "", ""),
    scope: Scope = None,
    most: int = 200,
) -> list[Tool]:
    """The catalog in the order of its key."""
    service, environment, name = after
    values = {"service": service, "environment": environment, "tool": name, "most": most}
    return fetch(conn, Tool, _TOOLS, scope=scope_value(scope), **values)


def named(conn: Connection, tool: str, scope: Scope = None) -> list[Tool]:
    """What services declared under one name."""
    return fetch(conn, Tool, _NAMED, tool=tool, scope=scope_value(scope))


def ended(
    conn: Connection,
    since: datetime,
    lately: datetime,
    *,
    tool: str | None = None,
    scope: Scope = None,
) -> list[Ended]:
    """How calls ended, from `lately` on and before it."""
    values = {"since": since, "lately": lately, "tool": tool}
    return fetch(conn, Ended, _ENDED, scope=scope_value(scope), **values)


def hours(conn: Connection, tool: str, since: datetime, scope: Scope = None) -> list[ToolHour]:
    """How a tool's calls ended, per hour; hours without any are left out."""
    return fetch(conn, ToolHour, _HOURS, since=since, tool=tool, scope=scope_value(scope))


def outcomes(
    conn: Connection,
    since: datetime,
    *,
    narrowed: Mapping[str, Collection[str]],
    scope: Scope = None,
) -> dict[str, int]:
    """How many calls ended how since the hour of `since`, by whole hours.

    `narrowed` may hold tool, code, service and environment.
    """
    conditions = [chosen(name, name, narrowed.get(name, ())) for name in _TALLIED]
    stmt = statement(*_OUTCOMES, " AND ".join([*conditions, in_scope()]), "GROUP BY outcome")
    values = {name: list(narrowed.get(name, ())) for name in _TALLIED}
    found = fetch(conn, Outcomes, stmt, **values, since=since, scope=scope_value(scope))
    return {row.outcome: row.calls for row in found}


def reasons(
    conn: Connection, tool: str, since: datetime, scope: Scope = None, most: int = 50
) -> list[Reason]:
    """The reasons a tool gave, most frequent first, over its newest 10,000 errors."""
    values = {"tool": tool, "since": since, "most": most}
    return fetch(conn, Reason, _REASONS, scope=scope_value(scope), **values)


def wrong_fields(
    conn: Connection, tool: str, key: str, since: datetime, *, scope: Scope = None, most: int = 20
) -> list[WrongField]:
    """Arguments that models get wrong, by the attribute `key`, over the same errors."""
    values = {"tool": tool, "key": key, "since": since, "most": most}
    return fetch(conn, WrongField, _FIELDS, scope=scope_value(scope), **values)
