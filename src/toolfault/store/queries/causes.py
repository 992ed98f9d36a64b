"""What may have caused a group: what was released, and what its calls share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from toolfault.conventions import REQUEST_MODEL, TOOL_DECLARED
from toolfault.store.queries.base import Scope, fetch, in_scope, scope_value, statement

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

#: A running process repeats its declarations hourly: what was there before says so within this time.
_REPEATED = timedelta(hours=2)


class Release(NamedTuple):
    """A version of a service that declared a tool for the first time."""

    service: str
    version: str
    at: datetime


class Shared(NamedTuple):
    """How many calls of a group have a value, beside the other errors of its tool."""

    name: str
    value: str
    here: int
    elsewhere: int


_RELEASES = statement(
    "SELECT service, version, min(coalesce(told_at, occurred_at)) AS at FROM run_event",
    "WHERE event_name = %(event)s AND label = %(tool)s AND version IS NOT NULL",
    "AND occurred_at >= %(before)s AND received_at >= %(before)s AND",
    in_scope(),
    "GROUP BY service, version HAVING min(occurred_at) >= %(since)s ORDER BY at DESC LIMIT %(most)s",
)
_NEWEST = "received_at >= %(since)s ORDER BY received_at DESC LIMIT 10000"
_SHARED = statement(
    "SELECT name, value, count(*) FILTER (WHERE is_here), count(*) FILTER (WHERE NOT is_here) FROM (",
    "(SELECT true AS is_here, version, agent, environment, attributes FROM tool_call",
    "WHERE fingerprint = %(fingerprint)s AND",
    _NEWEST,
    ") UNION ALL",
    "(SELECT false, version, agent, environment, attributes FROM tool_call",
    "WHERE fingerprint IS DISTINCT FROM %(fingerprint)s AND service = %(service)s",
    "AND tool = %(tool)s AND code IS NOT NULL AND",
    _NEWEST,
    ")) AS seen CROSS JOIN LATERAL (VALUES ('version', version), ('agent', agent),",
    "('environment', environment), ('model', attributes ->> %(model)s)) AS one (name, value)",
    "WHERE value IS NOT NULL GROUP BY name, value ORDER BY 3 DESC, name, value",
)


def releases(
    conn: Connection, tool: str, since: datetime, *, scope: Scope = None, most: int = 5
) -> list[Release]:
    """Versions that first declared a tool since a moment, newest first."""
    values = {"event": TOOL_DECLARED, "tool": tool, "since": since, "before": since - _REPEATED}
    return fetch(conn, Release, _RELEASES, **values, scope=scope_value(scope), most=most)


def shared(
    conn: Connection, fingerprint: bytes, service: str, tool: str, since: datetime
) -> list[Shared]:
    """Each value that calls of a group have, over its newest 10,000 and as many of the tool's others."""
    values = {"fingerprint": fingerprint, "service": service, "tool": tool, "since": since}
    return fetch(conn, Shared, _SHARED, **values, model=REQUEST_MODEL)
