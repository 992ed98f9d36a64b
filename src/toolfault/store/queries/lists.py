"""Lists: dead letters, incidents, the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault.store.queries.base import (
    Later,
    Scope,
    ask,
    columns,
    fetch,
    in_scope,
    scope_value,
    statement,
)

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection


class DeadLetter(NamedTuple):
    """A call somebody has to replay or write off."""

    occurred_at: datetime
    acked_at: datetime | None
    acked_by: str | None
    id: bytes
    trace_id: bytes
    service: str
    environment: str
    tool: str | None
    reference_id: str | None
    attributes: dict[str, Any] | None


class Incident(NamedTuple):
    """An alert that fired."""

    started_at: datetime
    ended_at: datetime | None
    alert_id: str
    name: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Audit(NamedTuple):
    """A look-up somebody made."""

    at: datetime
    token_id: UUID | None
    token: str | None
    asked: str
    state: str


_DEAD_LETTERS = (
    "SELECT",
    columns(DeadLetter),
    "FROM dead_letter WHERE",
    in_scope(),
)
_INCIDENTS = statement(
    "SELECT",
    columns(Incident),
    "FROM incident WHERE started_at <= %(until)s AND (ended_at IS NULL OR ended_at >= %(since)s)",
    "ORDER BY started_at DESC LIMIT %(most)s",
)
_AUDIT = statement(
    "SELECT looked_at, token_id, api_token.name, asked, state FROM lookup_audit",
    "LEFT JOIN api_token ON api_token.id = token_id ORDER BY looked_at DESC LIMIT %(most)s",
)


def dead_letters(
    conn: Connection,
    *,
    waiting: bool = True,
    service: str | None = None,
    tool: str | None = None,
    before: tuple[datetime, bytes] | None = None,
    scope: Scope = None,
    most: int = 50,
) -> list[DeadLetter]:
    """Dead letters, newest first."""
    stmt = statement(
        *_DEAD_LETTERS,
        "AND acked_at IS NULL" if waiting else "",
        "AND service = %(service)s" if service is not None else "",
        "AND tool = %(tool)s" if tool is not None else "",
        "AND (occurred_at, id) < (%(at)s, %(id)s)" if before else "",
        "ORDER BY occurred_at DESC, id DESC LIMIT %(most)s",
    )
    at, id_ = before or (None, None)
    bound = {"service": service, "tool": tool, "at": at, "id": id_}
    return fetch(conn, DeadLetter, stmt, scope=scope_value(scope), most=most, **bound)


def dead_letter(conn: Connection, id_: bytes, scope: Scope = None) -> DeadLetter | None:
    """One dead letter, acknowledged or not; None where there is none in scope."""
    stmt = statement(*_DEAD_LETTERS, "AND id = %(id)s")
    return next(iter(fetch(conn, DeadLetter, stmt, scope=scope_value(scope), id=id_)), None)


def incidents(
    conn: Connection, since: datetime, until: datetime, most: int = 200
) -> Later[Incident]:
    """Incidents that were open at some time between `since` and `until`, newest first."""
    return ask(conn, Incident, _INCIDENTS, since=since, until=until, most=most)


def audit(conn: Connection, most: int = 50) -> list[Audit]:
    """The newest look-ups."""
    return fetch(conn, Audit, _AUDIT, most=most)
