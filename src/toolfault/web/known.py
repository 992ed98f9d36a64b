"""Everything the store knows about the calls behind a reference, in two round trips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolfault.store.queries import groups as group_queries
from toolfault.store.queries import references as queries
from toolfault.store.queries.base import together
from toolfault.taxonomy import ERROR_OUTCOMES
from toolfault.web import grouping
from toolfault.web.incidents import Incidents, incident_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection

    from toolfault.store.queries.base import Later
    from toolfault.store.queries.groups import Brief, Hour
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


def gather(conn: Connection, rows: Sequence[Reference], asked: Asked) -> list[Known]:
    """What is known about each of the calls that carry a reference."""
    with together(conn):
        incidents = Incidents(conn, [row.at for row in rows if row.outcome in ERROR_OUTCOMES])
        hinted = [_OfOutline.ask(conn, row, asked) for row in rows]
    calls = [one.call.first() for one in hinted]
    with together(conn):
        deeper = [
            _OfCall.ask(conn, row, call, asked) for row, call in zip(rows, calls, strict=True)
        ]
    return [
        Known(
            row=row,
            call=call,
            tool=outline.tool.first(),
            group=outline.summary(asked),
            incident=incident_for(row, incidents),
            logs=more.logs.rows() if more.logs else (),
            conversation=more.steps.rows() if more.steps else (),
        )
        for row, call, outline, more in zip(rows, calls, hinted, deeper, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _OfOutline:
    """What can be asked for once the outline is known."""

    call: Later[Call]
    tool: Later[Tool]
    group: Later[Brief] | None
    hours: Later[Hour] | None

    @classmethod
    def ask(cls, conn: Connection, row: Reference, asked: Asked) -> _OfOutline:
        call, tool = queries.call_of(conn, row), queries.tool(conn, row)
        if row.fingerprint is None:
            return cls(call, tool, None, None)
        group = group_queries.brief(conn, row.fingerprint, asked.now, asked.viewer.scope)
        since = grouping.begin_of_trend(asked.now)
        return cls(call, tool, group, group_queries.hours(conn, row.fingerprint, since))

    def summary(self, asked: Asked) -> GroupSummary | None:
        group = self.group.first() if self.group else None
        if group is None or self.hours is None:
            return None
        return grouping.summarise(group, grouping.trend(self.hours.rows(), asked.now))


@dataclass(frozen=True, slots=True)
class _OfCall:
    """What can be asked for once the call is known."""

    logs: Later[Log] | None
    steps: Later[Step] | None

    @classmethod
    def ask(cls, conn: Connection, row: Reference, call: Call | None, asked: Asked) -> _OfCall:
        duration = call.duration_us if call else 0
        logs = queries.logs(conn, row, duration) if asked.viewer.detail else None
        if call is None or call.conversation_id is None:
            return cls(logs, None)
        return cls(logs, queries.conversation(conn, call, asked.viewer.scope))
