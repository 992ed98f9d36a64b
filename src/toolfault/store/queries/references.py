"""The two hops of a look-up, and what stands around the call they lead to."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from toolfault.conventions import TELEMETRY_DROPPED
from toolfault.store.models import UNDATED
from toolfault.store.queries.base import (
    UNDATED_DAY,
    Later,
    Scope,
    ask,
    columns,
    fetch,
    in_scope,
    scalar,
    scope_value,
    statement,
)
from toolfault.store.queries.days import ANY_DAY, Days

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

#: How far a call's log records may lie outside the call by their own clock.
_SLACK = timedelta(minutes=5)
_AROUND = timedelta(days=1)


class Reference(NamedTuple):
    """Where a reference is, and the outline that outlives the details."""

    reference_id: str
    day: date
    trace_id: bytes
    span_id: bytes
    started_at: datetime | None
    received_at: datetime
    service: str | None
    environment: str | None
    tool: str | None
    outcome: str | None
    code: str | None
    reason: str | None
    action: str | None
    attempts: int | None
    effect: str | None
    fingerprint: bytes | None

    @property
    def at(self) -> datetime:
        """When its call began, or else when it arrived."""
        if self.started_at is None or self.started_at == UNDATED:
            return self.received_at
        return self.started_at


class Call(NamedTuple):
    """One tool call, whole."""

    started_at: datetime
    told_at: datetime | None
    received_at: datetime
    duration_us: int
    attempts: int
    possibly_twice: bool
    transient: bool
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
    run_id: str | None
    conversation_id: str | None
    agent: str | None
    version: str | None
    exception_type: str | None
    frame: str | None
    fingerprint: bytes | None
    message: str | None
    attributes: dict[str, Any] | None

    @property
    def at(self) -> datetime:
        """When it began by its own word, also where no partition had room for that time."""
        return self.told_at or self.started_at


class Step(NamedTuple):
    """A call as its conversation shows it."""

    started_at: datetime
    duration_us: int
    trace_id: bytes
    span_id: bytes
    service: str
    tool: str
    outcome: str
    code: str | None
    reason: str | None
    action: str
    effect: str
    reference_id: str | None


class Log(NamedTuple):
    """Exception detail, a black-box record or a record the application stamped."""

    occurred_at: datetime
    severity: int
    event_name: str | None
    service: str
    reference_id: str | None
    exception_type: str | None
    body: str | None
    stacktrace: str | None
    attributes: dict[str, Any] | None


class Tool(NamedTuple):
    """What the catalog knows of a tool."""

    service: str
    environment: str
    tool: str
    first_seen: datetime
    last_seen: datetime
    versions: list[str]
    declared: dict[str, Any] | None


_SELECT = ("SELECT", columns(Reference), "FROM reference WHERE", in_scope())
_NEWEST = "ORDER BY coalesce(started_at, received_at) DESC LIMIT %(most)s"
_OF_ANY_DAY = statement(*_SELECT, "AND reference_id = %(id)s", _NEWEST)
_OF_DAY = statement(
    *_SELECT, "AND reference_id = %(id)s AND day IN (%(day)s, %(undated)s)", _NEWEST
)
_AMONG = statement(
    *_SELECT,
    "AND reference_id = ANY(CAST(%(ids)s AS text[])) AND day = ANY(CAST(%(days)s AS date[]))",
    _NEWEST,
)
_THIS = "WHERE trace_id = %(trace_id)s AND span_id = %(span_id)s AND started_at = %(at)s"
_OF_ALL = "started_at, duration_us, trace_id, span_id, service, environment, tool, effect, conversation_id"
_BAD_STEPS = ("SELECT", _OF_ALL, ", outcome, code, reason, action, reference_id FROM")
# What the view `tool_call_all` says of them; it reads whole tables.
_OK_STEPS = (
    "SELECT",
    _OF_ALL,
    ", 'ok' COLLATE \"C\", NULL, NULL, 'none' COLLATE \"C\", NULL FROM",
)
_STEPS = (
    "SELECT",
    columns(Step),
    "FROM step WHERE environment = %(environment)s AND conversation_id = (SELECT conversation_id FROM own) AND",
    in_scope(),
)
_BEFORE_AND_AFTER = statement(
    "SELECT * FROM ((",
    *_STEPS,
    "AND started_at <= %(at)s AND started_at > %(since)s ORDER BY started_at DESC LIMIT %(most)s",
    ") UNION ALL (",
    *_STEPS,
    "AND started_at > %(at)s AND started_at < %(until)s ORDER BY started_at LIMIT %(most)s",
    ")) AS around ORDER BY started_at",
)
_LOGS = statement(
    "WHERE trace_id = %(trace_id)s AND reference_id = %(reference_id)s",
    "AND (occurred_at BETWEEN %(since)s AND %(until)s OR occurred_at = %(undated)s)",
    "ORDER BY coalesce(told_at, occurred_at), digest LIMIT %(most)s",
)
_TOOL = statement(
    "SELECT",
    columns(Tool),
    "FROM tool_catalog WHERE service = %(service)s AND environment = %(environment)s AND tool = %(tool)s",
)
_DROPPED = statement(
    "SELECT coalesce(sum(amount), 0)::bigint FROM run_event WHERE event_name = %(event)s",
    "AND received_at >= %(since)s AND received_at < %(until)s AND",
    in_scope(),
)


def references(
    conn: Connection, id_: str, day: date | None, *, scope: Scope = None, most: int = 50
) -> Later[Reference]:
    """Hop 1: a reference's rows, newest first; its day, where it is known, names the partition."""
    values = {"id": id_, "scope": scope_value(scope), "most": most}
    if day is None:
        return ask(conn, Reference, _OF_ANY_DAY, **values)
    return ask(conn, Reference, _OF_DAY, day=day, undated=UNDATED_DAY, **values)


def among(
    conn: Connection, ids: Sequence[str], days: Sequence[date], scope: Scope = None
) -> list[Reference]:
    """The rows of any of these references, each of one of these days, newest first."""
    values = {"ids": list(ids), "days": [*days, UNDATED_DAY], "scope": scope_value(scope)}
    return fetch(conn, Reference, _AMONG, most=50, **values)


def call_of(conn: Connection, reference: Reference, days: Days = ANY_DAY) -> Later[Call]:
    """Hop 2: the call a reference names; no row when its details are gone."""
    stmt = statement("SELECT", columns(Call), "FROM", _own(reference, days), _THIS)
    return ask(conn, Call, stmt, **_key(reference))


def conversation(
    conn: Connection,
    reference: Reference,
    scope: Scope = None,
    *,
    days: Days = ANY_DAY,
    most: int = 10,
) -> Later[Step]:
    """The calls of the same conversation around a reference's own, in order, itself among them."""
    key = _key(reference)
    since, until = key["at"] - _AROUND, key["at"] + _AROUND
    stmt = statement(
        "WITH own AS MATERIALIZED (SELECT conversation_id FROM",
        _own(reference, days),
        _THIS,
        "), step AS NOT MATERIALIZED (",
        *_BAD_STEPS,
        days.table("tool_call", since, until),
        "UNION ALL",
        *_OK_STEPS,
        days.table("tool_call_ok", since, until),
        ")",
        _BEFORE_AND_AFTER,
    )
    return ask(
        conn,
        Step,
        stmt,
        **key,
        environment=reference.environment,
        scope=scope_value(scope),
        since=since,
        until=until,
        most=most,
    )


def logs(
    conn: Connection, reference: Reference, *, days: Days = ANY_DAY, most: int = 200
) -> Later[Log]:
    """Exception detail, black box and stamped records of one reference, oldest first."""
    began = reference.started_at or reference.received_at
    since = began - _SLACK
    until = max(began + _AROUND, reference.received_at) + _SLACK
    table = days.table("log_record", since, until, "log_record_undated")
    return ask(
        conn,
        Log,
        statement("SELECT", columns(Log), "FROM", table, _LOGS),
        trace_id=reference.trace_id,
        reference_id=reference.reference_id,
        since=since,
        until=until,
        undated=UNDATED,
        most=most,
    )


def _own(reference: Reference, days: Days) -> str:
    at = _key(reference)["at"]
    return days.table("tool_call", at, at)


def _key(reference: Reference) -> dict[str, Any]:
    at = reference.started_at or reference.received_at
    return {"trace_id": reference.trace_id, "span_id": reference.span_id, "at": at}


def tool(conn: Connection, reference: Reference) -> Later[Tool]:
    """What the catalog knows of the tool that a reference is about."""
    row = reference
    return ask(conn, Tool, _TOOL, service=row.service, environment=row.environment, tool=row.tool)


def dropped(conn: Connection, since: datetime, until: datetime, scope: Scope = None) -> int:
    """Telemetry records that services say they had to drop, by when they said it."""
    values = {"event": TELEMETRY_DROPPED, "since": since, "until": until}
    return int(scalar(conn, _DROPPED, **values, scope=scope_value(scope)))
