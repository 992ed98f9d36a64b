"""What may have caused a group: what was released, and what its calls share."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from toolfault.conventions import REQUEST_MODEL, TOOL_DECLARED
from toolfault.store.queries.base import Scope, fetch, in_scope, scope_value, statement
from toolfault.taxonomy import Code

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


class Value(NamedTuple):
    """How many of a tool's other errors have a value."""

    name: str
    value: str
    calls: int


_RELEASES = statement(
    "SELECT service, version, min(coalesce(told_at, occurred_at)) AS at FROM run_event",
    "WHERE event_name = %(event)s AND label = %(tool)s AND version IS NOT NULL",
    "AND occurred_at >= %(before)s AND received_at >= %(before)s AND",
    in_scope(),
    "GROUP BY service, version HAVING min(occurred_at) >= %(since)s ORDER BY at DESC LIMIT %(most)s",
)
# Of each code the newest: a tool of months has millions of errors. Other services and the group
# itself are left out only then, or a rare service would have them all read.
_OTHERS = statement(
    "SELECT name, value, count(*) FROM unnest(%(codes)s::text[]) AS asked (kind) CROSS JOIN LATERAL (",
    "SELECT service, fingerprint, version, agent, environment, attributes ->> %(model)s AS model",
    "FROM tool_call WHERE tool = %(tool)s AND code = asked.kind",
    "AND received_at >= %(since)s AND started_at >= %(day_before)s",
    "ORDER BY received_at DESC LIMIT 200) AS seen CROSS JOIN LATERAL (VALUES ('version', version),",
    "('agent', agent), ('environment', environment), ('model', model)) AS one (name, value)",
    "WHERE value IS NOT NULL AND service = %(service)s",
    "AND fingerprint IS DISTINCT FROM %(fingerprint)s GROUP BY name, value",
)


def releases(
    conn: Connection, tool: str, since: datetime, *, scope: Scope = None, most: int = 5
) -> list[Release]:
    """Versions that first declared a tool since a moment, newest first."""
    values = {"event": TOOL_DECLARED, "tool": tool, "since": since, "before": since - _REPEATED}
    return fetch(conn, Release, _RELEASES, **values, scope=scope_value(scope), most=most)


def others(
    conn: Connection, fingerprint: bytes, service: str, tool: str, since: datetime
) -> list[Value]:
    """The values of a tool's errors outside a group: among the newest 200 of each code."""
    values = {"fingerprint": fingerprint, "service": service, "tool": tool, "model": REQUEST_MODEL}
    bounds = {"since": since, "day_before": since - timedelta(days=1), "codes": [*Code]}
    return fetch(conn, Value, _OTHERS, **values, **bounds)
