"""Tools: the catalog, how often their calls end how, how long they take."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from toolfault.conventions import BUDGET_EXHAUSTED
from toolfault.store.queries.base import (
    Scope,
    chosen,
    columns,
    fetch,
    in_scope,
    scalar,
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


class Hour(NamedTuple):
    """How many calls ended one way in one hour."""

    hour: datetime
    outcome: str
    calls: int


class Code(NamedTuple):
    """How many calls ended with one code."""

    code: str
    calls: int


class Share(NamedTuple):
    """Calls of one tool in one hour, and how many of them were errors."""

    service: str
    environment: str
    tool: str
    hour: datetime
    calls: int
    errors: int


class Spread(NamedTuple):
    """How long calls that ended one way took and how many attempts they made, since counting began."""

    outcome: str
    attempts: int
    duration_buckets: list[int]
    attempts_buckets: list[int]


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
_TALLIED = ("tool", "code", "service", "environment")
_HOURS = ("SELECT hour, outcome, sum(calls)::bigint FROM call_tally WHERE hour >= %(since)s AND",)
_CODES = statement(
    "SELECT code, sum(calls)::bigint FROM call_tally WHERE hour >= %(since)s AND tool = %(tool)s AND",
    in_scope(),
    "GROUP BY code",
)
_SHARES = statement(
    "SELECT t.service, t.environment, t.tool, hour, sum(calls)::bigint,",
    "coalesce(sum(calls) FILTER (WHERE outcome IN ('failed', 'timed_out')), 0)::bigint",
    "FROM unnest(%(services)s::text[], %(environments)s::text[], %(tools)s::text[])",
    "AS asked (service, environment, tool) JOIN call_tally AS t ON t.service = asked.service",
    "AND t.environment = asked.environment AND t.tool = asked.tool AND t.hour >= %(since)s",
    "GROUP BY 1, 2, 3, 4",
)
_SPREAD = statement(
    "SELECT outcome, attempts, duration_buckets, attempts_buckets FROM call_total WHERE tool = %(tool)s AND",
    in_scope(),
)
_STOPPED = statement(
    "SELECT count(*) FROM (SELECT FROM run_event WHERE event_name = %(event)s AND label = %(tool)s",
    "AND received_at >= %(since)s AND occurred_at >= %(day_before)s AND",
    in_scope(),
    "LIMIT 10000) AS stopped",
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


def hours(
    conn: Connection,
    since: datetime,
    *,
    narrowed: Mapping[str, Collection[str]],
    scope: Scope = None,
) -> list[Hour]:
    """How many calls ended how in each hour since the one of `since`; empty hours are left out.

    `narrowed` may hold tool, code, service and environment.
    """
    narrow = {name: list(narrowed.get(name, ())) for name in _TALLIED}
    conditions = [_is(name, values) for name, values in narrow.items()]
    stmt = statement(*_HOURS, " AND ".join([*conditions, in_scope()]), "GROUP BY 1, 2")
    values = {name: one[0] if len(one) == 1 else one for name, one in narrow.items()}
    return fetch(conn, Hour, stmt, **values, since=since, scope=scope_value(scope))


def _is(name: str, values: Collection[str]) -> str:
    """The condition of a filter; for one value so that the planner skips through the index."""
    return f"{name} = %({name})s" if len(values) == 1 else chosen(name, name, values)


def codes(conn: Connection, tool: str, since: datetime, scope: Scope = None) -> list[Code]:
    """How many of a tool's calls ended with which code, by whole hours."""
    return fetch(conn, Code, _CODES, tool=tool, since=since, scope=scope_value(scope))


def shares(
    conn: Connection, places: Collection[tuple[str, str, str]], since: datetime
) -> list[Share]:
    """How many calls of these tools were errors in each hour, by service, environment and tool."""
    services, environments, names = zip(*places, strict=True) if places else ((), (), ())
    values = {"services": [*services], "environments": [*environments], "tools": [*names]}
    return fetch(conn, Share, _SHARES, **values, since=since)


def spread(conn: Connection, tool: str, scope: Scope = None) -> list[Spread]:
    """How long a tool's calls took and how many attempts they made; several rows an outcome."""
    return fetch(conn, Spread, _SPREAD, tool=tool, scope=scope_value(scope))


def stopped(conn: Connection, tool: str, since: datetime, scope: Scope = None) -> int:
    """How often a conversation's failure budget for a tool was spent."""
    values = {"event": BUDGET_EXHAUSTED, "tool": tool, "since": since}
    day_before = since - timedelta(days=1)  # by its own clock; keeps the planner to few partitions
    return int(scalar(conn, _STOPPED, **values, day_before=day_before, scope=scope_value(scope)))
