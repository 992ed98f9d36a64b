"""Error groups: calls that failed in the same way."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

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

if TYPE_CHECKING:
    from collections.abc import Sequence
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


class Hour(NamedTuple):
    """How often something happened in one hour."""

    hour: datetime
    calls: int


class Sample(NamedTuple):
    """A call of a group, with why it was picked."""

    why: str
    started_at: datetime
    reference_id: str
    attempts: int
    effect: str
    version: str | None
    conversation_id: str | None
    trace_id: bytes


class Affected(NamedTuple):
    """A conversation that met a group."""

    conversation_id: str
    agent: str | None
    calls: int
    unsure: int
    last_seen: datetime


class Impact(NamedTuple):
    """What a group did to the people who met it, over the details still kept."""

    calls: int
    conversations: int
    unsure: int
    nothing: int
    outcome: str | None
    environments: list[str]
    first_version: str | None


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
    "(SELECT count(*) FROM (",
    "SELECT 1 FROM tool_call WHERE tool_call.fingerprint = found.fingerprint",
    "AND started_at > %(hour_ago)s AND started_at < %(soon)s AND received_at > %(hour_ago)s",
    "LIMIT 10000) AS recent),",
)
_WITH_TOTALS = (
    "SELECT fingerprint, first_seen, last_seen, (SELECT coalesce(sum(calls), 0)::bigint",
    "FROM error_group_tally AS t WHERE t.fingerprint = found.fingerprint) AS calls,",
    *_LAST_HOUR,
    "status, status_at, service, environment, tool, code, reason, exception_type, frame, sample_reference_id,",
    "versions FROM (",
)
_THIS = (*_GROUP, "AND g.fingerprint = %(fingerprint)s) AS found")
_ONE = statement(*_WITH_TOTALS, *_THIS)
# A group of months has thousands of hours, and a look-up is to be quick: they are not summed for it.
_BRIEF = statement(
    "SELECT fingerprint, first_seen, last_seen,",
    *_LAST_HOUR,
    "status, code, reason, exception_type, frame, versions FROM (",
    *_THIS,
)
_HOURS = statement(
    "SELECT hour, sum(calls)::bigint FROM error_group_tally",
    "WHERE fingerprint = %(fingerprint)s AND hour >= %(since)s GROUP BY hour ORDER BY hour",
)
_SAMPLE = (
    "SELECT %(why)s AS why, started_at, reference_id, attempts, effect, version, conversation_id, trace_id",
    "FROM tool_call WHERE fingerprint = %(fingerprint)s AND reference_id IS NOT NULL",
)
_SAMPLES = {
    "newest": statement(*_SAMPLE, "ORDER BY received_at DESC LIMIT 1"),
    "first that is kept": statement(*_SAMPLE, "ORDER BY received_at LIMIT 1"),
    "may have taken effect": statement(
        *_SAMPLE, "AND effect <> 'none' ORDER BY received_at DESC LIMIT 1"
    ),
    "changed nothing": statement(*_SAMPLE, "AND effect = 'none' ORDER BY received_at DESC LIMIT 1"),
    "after more than one attempt": statement(
        *_SAMPLE, "AND attempts > 1 ORDER BY received_at DESC LIMIT 1"
    ),
}
_AFFECTED = statement(
    "SELECT conversation_id, max(agent), count(*),",
    "count(*) FILTER (WHERE effect <> 'none'), max(started_at) FROM (",
    "SELECT conversation_id, agent, effect, started_at FROM tool_call",
    "WHERE fingerprint = %(fingerprint)s AND conversation_id IS NOT NULL",
    "ORDER BY received_at DESC LIMIT 10000) AS newest",
    "GROUP BY conversation_id ORDER BY 4 DESC, 5 DESC LIMIT %(most)s",
)
_IMPACT = statement(
    "SELECT count(*), count(DISTINCT conversation_id), count(*) FILTER (WHERE effect <> 'none'),",
    "count(*) FILTER (WHERE effect = 'none'), min(outcome),",
    "coalesce(array_agg(DISTINCT environment), '{}'), (array_agg(version ORDER BY started_at))[1] FROM (",
    "SELECT conversation_id, effect, outcome, environment, version, started_at FROM tool_call",
    "WHERE fingerprint = %(fingerprint)s ORDER BY received_at DESC LIMIT 10000) AS newest",
)


def group(conn: Connection, fingerprint: bytes, now: datetime, scope: Scope = None) -> Later[Group]:
    """One group by its fingerprint."""
    values = {"fingerprint": fingerprint, "scope": scope_value(scope)}
    return ask(conn, Group, _ONE, **values, **_last_hour(now))


def brief(conn: Connection, fingerprint: bytes, now: datetime, scope: Scope = None) -> Later[Brief]:
    """One group, without its totals."""
    values = {"fingerprint": fingerprint, "scope": scope_value(scope)}
    return ask(conn, Brief, _BRIEF, **values, **_last_hour(now))


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


def hours(conn: Connection, fingerprint: bytes, since: datetime) -> Later[Hour]:
    """Calls of a group per hour; hours without any are left out."""
    return ask(conn, Hour, _HOURS, fingerprint=fingerprint, since=since)


def samples(conn: Connection, fingerprint: bytes) -> list[Sample]:
    """Calls chosen for difference, each once, under the first reason that picked it."""
    picked: dict[str, Sample] = {}
    for why, stmt in _SAMPLES.items():
        for sample in fetch(conn, Sample, stmt, fingerprint=fingerprint, why=why):
            picked.setdefault(sample.reference_id, sample)
    return [*picked.values()]


def affected(conn: Connection, fingerprint: bytes, most: int = 20) -> list[Affected]:
    """Conversations that met a group; those with a possible effect first."""
    return fetch(conn, Affected, _AFFECTED, fingerprint=fingerprint, most=most)


def impact(conn: Connection, fingerprint: bytes) -> Impact:
    """What a group did, counted over its newest 10,000 calls."""
    return fetch(conn, Impact, _IMPACT, fingerprint=fingerprint)[0]
