"""Error groups: calls that failed in the same way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from toolfault.conventions import EXCEPTION, REQUEST_MODEL
from toolfault.store.queries.base import (
    Later,
    Scope,
    ask,
    chosen,
    fetch,
    in_scope,
    scope_value,
    statement,
)
from toolfault.store.queries.days import ANY_DAY, Days

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from sqlalchemy import Connection


class Group(NamedTuple):
    """One error group with its totals over all hours kept.

    Its environment is that of its first call; the last hour counts to 10,000.
    """

    fingerprint: bytes
    first_seen: datetime
    last_seen: datetime
    calls: int
    calls_last_hour: int
    status: str
    status_at: datetime | None
    service: str
    environment: str
    tool: str
    code: str
    reason: str | None
    exception_type: str | None
    frame: str | None
    sample_reference_id: str | None
    versions: list[str]


class Brief(NamedTuple):
    """A group as the card of one of its calls shows it; without totals over all hours."""

    fingerprint: bytes
    first_seen: datetime
    last_seen: datetime
    calls_last_hour: int
    status: str
    code: str
    reason: str | None
    exception_type: str | None
    frame: str | None
    versions: list[str]
    trend: list[int]  # calls in each hour, oldest first


class Hour(NamedTuple):
    """How often something happened in one hour."""

    hour: datetime
    calls: int


class GroupCall(NamedTuple):
    """A call of a group, with what tells it from the others."""

    received_at: datetime
    started_at: datetime
    trace_id: bytes
    reference_id: str | None
    conversation_id: str | None
    environment: str
    outcome: str
    action: str
    effect: str
    attempts: int
    possibly_twice: bool
    agent: str | None
    version: str | None
    model: str | None


class Next(NamedTuple):
    """A call that came after a moment of a conversation."""

    conversation_id: str
    environment: str
    tool: str
    outcome: str
    effect: str


class Detail(NamedTuple):
    """What the exception of a call said, scrubbed."""

    reference_id: str
    type: str | None
    message: str | None
    stacktrace: str | None


class Trend(NamedTuple):
    """How often calls of a group happened in one hour."""

    fingerprint: bytes
    hour: datetime
    calls: int


# When a group was last seen stands in its newest hour; the hours before are not read for it.
_GROUP = (
    "SELECT g.*, coalesce(t.last_seen, g.first_seen) AS last_seen",
    "FROM error_group AS g LEFT JOIN LATERAL (",
    "SELECT max(last_seen) AS last_seen FROM error_group_tally",
    "WHERE fingerprint = g.fingerprint AND hour = (",
    "SELECT hour FROM error_group_tally AS t WHERE t.fingerprint = g.fingerprint",
    "ORDER BY hour DESC LIMIT 1)) AS t ON true WHERE",
    in_scope("g.service"),
)
# Counted only for the groups of one page; the last hour in the rows, for the tally knows whole hours.
_LAST_HOUR = (
    "WHERE tool_call.fingerprint = found.fingerprint",
    "AND started_at > %(hour_ago)s AND started_at < %(soon)s AND received_at > %(hour_ago)s",
    "LIMIT 10000) AS recent),",
)
_WITH_TOTALS = (
    "SELECT fingerprint, first_seen, last_seen, (SELECT coalesce(sum(calls), 0)::bigint",
    "FROM error_group_tally AS t WHERE t.fingerprint = found.fingerprint) AS calls,",
    "(SELECT count(*) FROM (SELECT 1 FROM tool_call",
    *_LAST_HOUR,
    "status, status_at, service, environment, tool, code, reason, exception_type, frame, sample_reference_id,",
    "versions FROM (",
)
_TREND = (
    "ARRAY(SELECT coalesce(sum(calls), 0)::bigint",
    "FROM generate_series(%(since)s, %(now)s, interval '1 hour') AS each_hour LEFT JOIN error_group_tally AS t",
    "ON t.fingerprint = found.fingerprint AND t.hour >= %(since)s AND t.hour = each_hour",
    "GROUP BY each_hour ORDER BY each_hour)",
)
_THIS = (*_GROUP, "AND g.fingerprint = %(fingerprint)s) AS found")
_ONE = statement(*_WITH_TOTALS, *_THIS)
_HOURS = statement(
    "SELECT hour, sum(calls)::bigint FROM error_group_tally",
    "WHERE fingerprint = %(fingerprint)s AND hour >= %(since)s GROUP BY hour ORDER BY hour",
)
_CALLS = (
    "SELECT received_at, started_at, trace_id, reference_id, conversation_id, environment, outcome,",
    "action, effect, attempts, possibly_twice, agent, version, attributes ->> %(model)s",
    "FROM tool_call WHERE fingerprint = %(fingerprint)s",
)
_NEWEST = statement(*_CALLS, "ORDER BY received_at DESC LIMIT %(most)s")
_FIRST = statement(*_CALLS, "ORDER BY received_at LIMIT 1")
_AFTER = statement(
    "SELECT asked.conversation_id, asked.environment, step.tool, step.outcome, step.effect",
    "FROM unnest(%(conversations)s::text[], %(environments)s::text[], %(times)s::timestamptz[])",
    "AS asked (conversation_id, environment, at) CROSS JOIN LATERAL (",
    "SELECT tool, outcome, effect, started_at FROM tool_call_all",
    "WHERE conversation_id = asked.conversation_id AND environment = asked.environment",
    "AND started_at > asked.at AND started_at > %(since)s AND started_at <= %(now)s AND",
    in_scope(),
    "ORDER BY started_at LIMIT 5) AS step ORDER BY step.started_at",
)
_DETAIL = statement(
    "SELECT reference_id, exception_type, body, stacktrace FROM log_record",
    "WHERE event_name = %(event)s AND trace_id = ANY(%(traces)s::bytea[])",
    "AND reference_id = ANY(%(references)s::text[])",
    "AND occurred_at BETWEEN %(since)s AND %(until)s ORDER BY occurred_at DESC LIMIT 1",
)
_TRENDS = statement(
    "SELECT fingerprint, hour, sum(calls)::bigint FROM error_group_tally",
    "WHERE fingerprint = ANY(%(fingerprints)s::bytea[]) AND hour >= %(since)s GROUP BY 1, 2",
)
#: How far before a call's start, by its own clock, its exception detail may lie, and how far after it.
_SLACK, _LONGEST = timedelta(minutes=5), timedelta(hours=1)


def group(conn: Connection, fingerprint: bytes, now: datetime, scope: Scope = None) -> Later[Group]:
    """One group by its fingerprint."""
    values = {"fingerprint": fingerprint, "scope": scope_value(scope)}
    return ask(conn, Group, _ONE, **values, **_last_hour(now))


def brief(
    conn: Connection,
    fingerprint: bytes,
    now: datetime,
    scope: Scope = None,
    *,
    since: datetime,
    days: Days = ANY_DAY,
) -> Later[Brief]:
    """One group, without its totals; its trend from the hour that begins at `since`."""
    # A group of months has thousands of hours, and a look-up is to be quick: they are not summed for it.
    last_hour = _last_hour(now)
    stmt = statement(
        "SELECT fingerprint, first_seen, last_seen, (SELECT count(*) FROM (SELECT 1 FROM",
        days.table("tool_call", last_hour["hour_ago"], last_hour["soon"]),
        *_LAST_HOUR,
        "status, code, reason, exception_type, frame, versions,",
        *_TREND,
        "FROM (",
        *_THIS,
    )
    values = {"fingerprint": fingerprint, "scope": scope_value(scope)}
    return ask(conn, Brief, stmt, **values, **last_hour, since=since, now=now)


def groups(
    conn: Connection,
    now: datetime,
    *,
    status: Sequence[str] = (),
    tool: Sequence[str] = (),
    code: Sequence[str] = (),
    service: Sequence[str] = (),
    before: tuple[datetime, bytes] | None = None,
    scope: Scope = None,
    most: int = 50,
) -> list[Group]:
    """Groups by when they were last seen, newest first; `before` is the last row of the page before."""
    stmt = statement(
        *_WITH_TOTALS,
        "SELECT * FROM (",
        *_GROUP,
        "AND",
        " AND ".join(
            [
                chosen("g.status", "status", status),
                chosen("g.tool", "tool", tool),
                chosen("g.code", "code", code),
                chosen("g.service", "service", service),
            ]
        ),
        ") AS listed",
        "WHERE (last_seen, fingerprint) < (%(at)s, %(id)s)" if before else "",
        "ORDER BY last_seen DESC, fingerprint DESC LIMIT %(most)s) AS found",
        "ORDER BY last_seen DESC, fingerprint DESC",
    )
    at, id_ = before or (None, None)
    values = {"status": [*status], "tool": [*tool], "code": [*code], "service": [*service]}
    return fetch(
        conn,
        Group,
        stmt,
        **values,
        **_last_hour(now),
        scope=scope_value(scope),
        most=most,
        at=at,
        id=id_,
    )


def _last_hour(now: datetime) -> dict[str, datetime]:
    """Both ends of it, so that the planner needs no partition but today's."""
    return {"hour_ago": now - timedelta(hours=1), "soon": now + timedelta(minutes=1)}


def hours(conn: Connection, fingerprint: bytes, since: datetime) -> list[Hour]:
    """Calls of a group per hour; hours without any are left out."""
    return fetch(conn, Hour, _HOURS, fingerprint=fingerprint, since=since)


def newest(conn: Connection, fingerprint: bytes, most: int) -> list[GroupCall]:
    """The newest calls of a group that are kept."""
    values = {"fingerprint": fingerprint, "most": most, "model": REQUEST_MODEL}
    return fetch(conn, GroupCall, _NEWEST, **values)


def first(conn: Connection, fingerprint: bytes) -> GroupCall | None:
    """The oldest call of a group that is kept."""
    return ask(conn, GroupCall, _FIRST, fingerprint=fingerprint, model=REQUEST_MODEL).first()


def after(
    conn: Connection,
    moments: Collection[tuple[str, str, datetime]],
    since: datetime,
    now: datetime,
    scope: Scope = None,
) -> list[Next]:
    """Up to five calls after each of these moments of conversations in environments, in order."""
    conversations, environments, times = zip(*moments, strict=True) if moments else ((), (), ())
    values = {"conversations": [*conversations], "environments": [*environments]}
    bounds = {"times": [*times], "since": since, "now": now, "scope": scope_value(scope)}
    return fetch(conn, Next, _AFTER, **values, **bounds)


def detail(conn: Connection, calls: Collection[tuple[str, bytes, datetime]]) -> Detail | None:
    """The newest exception detail of some calls, each by its reference, trace and time."""
    references, traces, times = zip(*calls, strict=True)
    return ask(
        conn,
        Detail,
        _DETAIL,
        event=EXCEPTION,
        references=[*references],
        traces=[*traces],
        since=min(times) - _SLACK,
        until=max(times) + _LONGEST,
    ).first()


def trends(conn: Connection, fingerprints: Collection[bytes], since: datetime) -> list[Trend]:
    """Calls of several groups per hour; hours without any are left out."""
    return fetch(conn, Trend, _TRENDS, fingerprints=[*fingerprints], since=since)
