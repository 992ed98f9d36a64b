"""What /metrics and /metrics/tools show."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolfault.store.queries.base import fetch, statement

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from sqlalchemy import Connection


class CallTotal(NamedTuple):
    """Calls of one tool that ended one way, over all writers."""

    service: str
    environment: str
    tool: str
    outcome: str
    code: str
    calls: int
    duration_us: int
    attempts: int
    exemplar_at: datetime | None
    exemplar_reference: str | None
    exemplar_trace: bytes | None


class Buckets(NamedTuple):
    """Both histograms of one tool, each bucket by itself, the last one without an upper bound."""

    service: str
    environment: str
    tool: str
    duration_us: int
    attempts: int
    duration_buckets: list[int]
    attempts_buckets: list[int]


class EventTotal(NamedTuple):
    """One of the other totals, over all writers."""

    metric: str
    service: str
    environment: str
    label: str
    amount: int


class Waiting(NamedTuple):
    """Dead letters nobody has taken yet."""

    service: str
    environment: str
    tool: str
    letters: int


class Totals(NamedTuple):
    """Everything /metrics/tools is made of, read in one transaction."""

    calls: list[CallTotal]
    buckets: list[Buckets]
    events: list[EventTotal]
    waiting: list[Waiting]


class Size(NamedTuple):
    """How full the store is, and for how many days it has room prepared."""

    database_bytes: int
    last_partition: date | None


_CALLS = statement(
    "SELECT service, environment, tool, outcome, code, sum(calls)::bigint, sum(duration_us)::bigint,",
    "sum(attempts)::bigint, max(exemplar_at),",
    "(array_agg(exemplar_reference ORDER BY exemplar_at DESC NULLS LAST))[1],",
    "(array_agg(exemplar_trace ORDER BY exemplar_at DESC NULLS LAST))[1]",
    "FROM call_total GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5",
)
_BUCKETS = statement(
    "SELECT service, environment, tool, duration_us, attempts, duration_buckets, attempts_buckets",
    "FROM call_total ORDER BY 1, 2, 3",
)
_EVENTS = statement(
    "SELECT metric, service, environment, label, sum(amount)::bigint",
    "FROM event_total GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4",
)
_WAITING = statement(
    "SELECT service, environment, coalesce(tool, ''), count(*) FILTER (WHERE acked_at IS NULL)",
    "FROM dead_letter GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
)
_SIZE = statement(
    "SELECT pg_database_size(current_database()),",
    "(SELECT max(to_date(substring(relname FROM '_([0-9]{8})$'), 'YYYYMMDD'))",
    "FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid",
    "WHERE inhparent = 'tool_call'::regclass)",
)


def totals(conn: Connection) -> Totals:
    """The totals; the caller's transaction makes them one snapshot."""
    return Totals(
        fetch(conn, CallTotal, _CALLS),
        _summed(fetch(conn, Buckets, _BUCKETS)),
        events(conn),
        fetch(conn, Waiting, _WAITING),
    )


def events(conn: Connection) -> list[EventTotal]:
    """The totals that are not of calls."""
    return fetch(conn, EventTotal, _EVENTS)


def _summed(rows: Sequence[Buckets]) -> list[Buckets]:
    """Rows of one tool added up; rows come in the order of the tool."""
    summed: list[Buckets] = []
    for row in rows:
        if not summed or summed[-1][:3] != row[:3]:
            summed.append(row)
            continue
        last = summed[-1]
        summed[-1] = Buckets(
            *row[:3],
            last.duration_us + row.duration_us,
            last.attempts + row.attempts,
            _added(last.duration_buckets, row.duration_buckets),
            _added(last.attempts_buckets, row.attempts_buckets),
        )
    return summed


def _added(left: list[int], right: list[int]) -> list[int]:
    return [a + b for a, b in zip(left, right, strict=True)]


def size(conn: Connection) -> Size:
    """How full the store is."""
    return fetch(conn, Size, _SIZE)[0]
