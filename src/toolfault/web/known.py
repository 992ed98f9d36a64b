"""Everything the store knows about the calls behind a reference, in one statement each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.errors import UndefinedTable

from toolfault.store.queries import groups
from toolfault.store.queries import references as queries
from toolfault.store.queries.base import together
from toolfault.store.queries.days import ANY_DAY, Days
from toolfault.taxonomy import ERROR_OUTCOMES
from toolfault.web.grouping import begin_of_trend, summarise
from toolfault.web.incidents import Incidents, incident_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Later
    from toolfault.store.queries.groups import Brief
    from toolfault.store.queries.references import Call, Log, Reference, Step, Tool
    from toolfault.web.lookup import Asked
    from toolfault.web.models import GroupSummary, IncidentSummary


@dataclass(frozen=True, slots=True)
class Known:
    """One call and what stands around it; `call` is None when only its outline is here."""

    row: Reference
    call: Call | None
    tool: Tool | None
    group: GroupSummary | None
    incident: IncidentSummary | None
    logs: Sequence[Log]
    conversation: Sequence[Step]

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The rest of the call's record."""
        return (self.call.attributes if self.call else None) or {}

    @property
    def declared(self) -> Mapping[str, Any]:
        """What the tool says about itself."""
        return (self.tool.declared if self.tool else None) or {}


def gather(conn: Connection, rows: Sequence[Reference], days: Days, asked: Asked) -> list[Known]:
    """What is known about each of the calls that carry a reference."""
    try:
        return [_known(conn, row, days, asked) for row in rows]
    except UndefinedTable:  # a partition was dropped this moment
        return [_known(conn, row, ANY_DAY, asked) for row in rows]


def _known(conn: Connection, row: Reference, days: Days, asked: Asked) -> Known:
    with together(conn):
        call, tool = queries.call_of(conn, row, days), queries.tool(conn, row)
        steps = queries.conversation(conn, row, asked.viewer.scope, days=days)
        logs = queries.logs(conn, row, days=days) if asked.viewer.detail else None
        group = _group(conn, row.fingerprint, days, asked) if row.fingerprint else None
        incidents = Incidents(conn, [row.at] if row.outcome in ERROR_OUTCOMES else [])
    return Known(
        row=row,
        call=call.first(),
        tool=tool.first(),
        group=summarise(found) if group and (found := group.first()) else None,
        incident=incident_for(row, incidents),
        logs=logs.rows() if logs else (),
        conversation=steps.rows(),
    )


def _group(conn: Connection, fingerprint: bytes, days: Days, asked: Asked) -> Later[Brief]:
    since = begin_of_trend(asked.now)
    return groups.brief(conn, fingerprint, asked.now, asked.viewer.scope, since=since, days=days)
