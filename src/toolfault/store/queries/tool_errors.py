"""What stands in a tool's newest errors: reasons, fields, refusals, and what came after them.

Of each code the newest are read, up to a bound: a tool of months has millions.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from toolfault.conventions import FIELD
from toolfault.store.queries.base import Scope, fetch, in_scope, scope_value, statement
from toolfault.taxonomy import Code

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

#: Errors of one code that are read at most.
BOUND = 300
#: Calls of one reason whose next call is looked up, and how long after them it still counts.
_FOLLOWED, _SOON = 20, timedelta(hours=1)


class Reason(NamedTuple):
    """How often a tool gave a reason among its newest errors, and how the next call went."""

    reason: str | None
    outcome: str
    code: str
    action: str
    calls: int
    last_seen: datetime
    followed: int
    followed_ok: int


class WrongField(NamedTuple):
    """An argument that models get wrong; `again` of the calls repeat one of their conversation."""

    field: str
    reason: str | None
    calls: int
    again: int
    last_seen: datetime


class Refused(NamedTuple):
    """Whom permission was refused, and for which reason."""

    reason: str | None
    agent: str | None
    calls: int
    conversations: int
    last_seen: datetime


_NEWEST = (
    "WHERE tool = %(tool)s AND code = asked.kind AND started_at >= %(day_before)s",
    "AND received_at >= %(since)s AND",
    in_scope(),
    "ORDER BY received_at DESC LIMIT %(bound)s) AS newest",
)
_OF_EACH_CODE = "FROM unnest(%(codes)s::text[]) AS asked (kind) CROSS JOIN LATERAL ("
# The next call of the same tool in the same conversation; only where successful ones are still kept.
_REASONS = statement(
    "WITH newest AS MATERIALIZED (SELECT newest.*, row_number() OVER (",
    "PARTITION BY outcome, code, reason, action, may_follow ORDER BY received_at DESC) AS place",
    _OF_EACH_CODE,
    "SELECT reason, outcome, code, action, received_at, started_at, conversation_id, environment,",
    "conversation_id IS NOT NULL AND started_at >= %(ok_kept)s AS may_follow FROM tool_call",
    *_NEWEST,
    ")",
    "SELECT reason, newest.outcome, code, action, count(*), max(received_at), count(follow.outcome),",
    "count(*) FILTER (WHERE follow.outcome = 'ok') FROM newest LEFT JOIN LATERAL (",
    "SELECT outcome FROM tool_call_all AS later WHERE may_follow AND place <= %(followed)s",
    "AND later.conversation_id = newest.conversation_id AND later.tool = %(tool)s",
    "AND later.environment = newest.environment AND later.started_at > newest.started_at",
    "AND later.started_at <= newest.started_at + %(soon)s",
    "AND later.started_at >= %(ok_kept)s AND later.started_at <= %(now)s AND",
    in_scope("later.service"),
    "ORDER BY later.started_at LIMIT 1) AS follow ON true",
    "GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC",
)
_FIELDS = statement(
    "SELECT field, mode() WITHIN GROUP (ORDER BY reason), count(*),",
    "count(conversation_id) - count(DISTINCT conversation_id), max(received_at)",
    _OF_EACH_CODE,
    "SELECT attributes ->> %(key)s AS field, reason, conversation_id, received_at FROM tool_call",
    *_NEWEST,
    "WHERE field IS NOT NULL GROUP BY 1 ORDER BY 3 DESC, 1 LIMIT 20",
)
_REFUSED = statement(
    "SELECT reason, agent, count(*), count(DISTINCT conversation_id), max(received_at)",
    _OF_EACH_CODE,
    "SELECT reason, agent, conversation_id, received_at, outcome FROM tool_call",
    *_NEWEST,
    "WHERE outcome = 'refused' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20",
)


class Errors:
    """The newest errors of one tool since a moment, asked about in several ways."""

    def __init__(
        self, conn: Connection, tool: str, *, since: datetime, now: datetime, scope: Scope = None
    ) -> None:
        self._conn, self._now = conn, now
        self._values = {
            "tool": tool,
            "since": since,
            # A call may be older than its arrival; the bound keeps the planner to few partitions.
            "day_before": since - timedelta(days=1),
            "scope": scope_value(scope),
            "bound": BOUND,
        }

    def reasons(self, ok_kept: timedelta) -> list[Reason]:
        """The reasons given, most frequent first; `ok_kept` is for how long successful calls are."""
        values = {"ok_kept": self._now - ok_kept, "now": self._now, "soon": _SOON}
        return fetch(
            self._conn,
            Reason,
            _REASONS,
            **self._values,
            **values,
            codes=[*Code],
            followed=_FOLLOWED,
        )

    def fields(self) -> list[WrongField]:
        """The arguments that models get wrong, most frequent first."""
        values = {"codes": [Code.INVALID_ARGUMENT], "key": FIELD}
        return fetch(self._conn, WrongField, _FIELDS, **self._values, **values)

    def refused(self) -> list[Refused]:
        """Whom permission was refused, most frequent first."""
        codes = [Code.PERMISSION_DENIED]
        return fetch(self._conn, Refused, _REFUSED, **self._values, codes=codes)
