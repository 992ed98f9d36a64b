"""Lists: errors, dead letters, incidents, the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from sqlalchemy import Connection


class Error(NamedTuple):
    """A call that was not ok, as the list shows it."""

    received_at: datetime
    started_at: datetime
    told_at: datetime | None
    duration_us: int
    attempts: int
    trace_id: bytes
    span_id: bytes
    service: str
    environment: str
    tool: str
    outcome: str
    code: str | None
    reason: str | None
    action: str
    effect: str
    reference_id: str | None
    conversation_id: str | None
    agent: str | None
    version: str | None
    fingerprint: bytes | None


class Filters(NamedTuple):
    """What a list is narrowed to; an empty filter lets everything through."""

    tool: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    service: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    conversation: str | None = None
    trace: bytes | None = None
    fingerprint: bytes | None = None
    since: datetime | None = None
    until: datetime | None = None


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


_SETS = ("tool", "code", "outcome", "reason", "service", "environment")
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
_NEWEST = statement(
    "SELECT received_at FROM tool_call WHERE",
    in_scope(),
    "ORDER BY received_at DESC LIMIT 1",
)
_AUDIT = statement(
    "SELECT looked_at, token_id, api_token.name, asked, state FROM lookup_audit",
    "LEFT JOIN api_token ON api_token.id = token_id ORDER BY looked_at DESC LIMIT %(most)s",
)


def errors(
    conn: Connection,
    filters: Filters,
    *,
    before: tuple[datetime, bytes, bytes] | None = None,
    scope: Scope = None,
    most: int = 50,
) -> list[Error]:
    """Calls that were not ok, newest arrival first; `before` is the last row of the page before."""
    wanted = filters._asdict()
    conditions = [in_scope(), *(chosen(name, name, wanted[name]) for name in _SETS)]
    if filters.conversation is not None:
        conditions.append("conversation_id = %(conversation)s")
    if filters.trace is not None:
        conditions.append("trace_id = %(trace)s")
    if filters.fingerprint is not None:
        conditions.append("fingerprint = %(fingerprint)s")
    if filters.since is not None:
        conditions.append("received_at >= %(since)s")
    if filters.until is not None:
        conditions.append("received_at < %(until)s")
    if before is not None:
        conditions.append(
            "(received_at, trace_id, span_id) < (%(at)s, %(trace_before)s, %(span_before)s)"
        )
    stmt = statement(
        "SELECT",
        columns(Error),
        "FROM tool_call WHERE",
        " AND ".join(conditions),
        "ORDER BY received_at DESC, trace_id DESC, span_id DESC LIMIT %(most)s",
    )
    at, trace, span = before or (None, None, None)
    values = {name: list(value) if name in _SETS else value for name, value in wanted.items()}
    return fetch(
        conn,
        Error,
        stmt,
        **values,
        scope=scope_value(scope),
        most=most,
        at=at,
        trace_before=trace,
        span_before=span,
    )


def dead_letters(
    conn: Connection,
    *,
    waiting: bool = True,
    before: tuple[datetime, bytes] | None = None,
    scope: Scope = None,
    most: int = 50,
) -> list[DeadLetter]:
    """Dead letters, newest first."""
    stmt = statement(
        *_DEAD_LETTERS,
        "AND acked_at IS NULL" if waiting else "",
        "AND (occurred_at, id) < (%(at)s, %(id)s)" if before else "",
        "ORDER BY occurred_at DESC, id DESC LIMIT %(most)s",
    )
    at, id_ = before or (None, None)
    return fetch(conn, DeadLetter, stmt, scope=scope_value(scope), most=most, at=at, id=id_)


def incidents(
    conn: Connection, since: datetime, until: datetime, most: int = 200
) -> list[Incident]:
    """Incidents that were open at some time between `since` and `until`, newest first."""
    return fetch(conn, Incident, _INCIDENTS, since=since, until=until, most=most)


def audit(conn: Connection, most: int = 50) -> list[Audit]:
    """The newest look-ups."""
    return fetch(conn, Audit, _AUDIT, most=most)


def newest(conn: Connection, scope: Scope = None) -> datetime | None:
    """When the newest call that was not ok arrived."""
    found: datetime | None = scalar(conn, _NEWEST, scope=scope_value(scope))
    return found
