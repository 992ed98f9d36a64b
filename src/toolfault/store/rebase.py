"""Restarting the totals at 0, after a restore or a failover that lost rows.

The totals then fell a little, which Prometheus reads as a reset: it would add all that is left once
more. From 0 nothing is added. Series stay, so that the next first error of a tool is still a rise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg import Connection

# Writers come to these tables in this order too, and wait for us in front of the first.
_LOCK = "LOCK TABLE call_total, event_total IN EXCLUSIVE MODE"
_CALLS = """UPDATE call_total SET calls = 0, duration_us = 0, attempts = 0,
    exemplar_at = NULL, exemplar_reference = NULL, exemplar_trace = NULL,
    duration_buckets = array_fill(0::bigint, ARRAY[cardinality(duration_buckets)]),
    attempts_buckets = array_fill(0::bigint, ARRAY[cardinality(attempts_buckets)])"""
_EVENTS = "UPDATE event_total SET amount = 0"


def rebase(conn: Connection) -> int:
    """Sets every total to 0 and returns how many there are."""
    with conn.transaction():
        conn.execute(_LOCK)
        return conn.execute(_CALLS).rowcount + conn.execute(_EVENTS).rowcount
