"""Rows to store, made by name; what a second delivery must not change; sums that must always hold."""

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from random import Random

import psycopg
import pytest

from toolfault import conventions, reference
from toolfault.store.queries.base import open_engine
from toolfault.store.rows import Call, Event, Log
from toolfault.store.stage import COLUMNS
from toolfault.store.write import Writer

UNAVAILABLE = {"outcome": "failed", "code": "UNAVAILABLE", "effect": "unknown"}


class Samples:
    """Rows around `now`; every call has ids of its own."""

    def __init__(self, seed):
        self.random = Random(seed)  # noqa: S311
        self.now = datetime.now(UTC).replace(microsecond=0)

    def ago(self, **delta):
        return self.now - timedelta(**delta)

    def ok(self, **changes):
        row = {
            "started_at": self.ago(minutes=2), "told_at": None, "received_at": self.now,
            "duration_us": 25_000, "attempts": 1, "possibly_twice": False, "transient": False,
            "trace_id": self.random.randbytes(16), "span_id": self.random.randbytes(8), "parent_span_id": None,
            "service": "desk", "environment": "prod", "tool": "book_meeting", "outcome": "ok", "code": None,
            "reason": None, "action": "none", "effect": "applied", "reference_id": None, "run_id": None,
            "conversation_id": "c-1", "agent": "planner", "version": "1.4.2", "exception_type": None, "frame": None,
            "fingerprint": None, "message": None, "attributes": json.dumps({"host.name": "worker-7"}),
        }  # fmt: skip
        return Call(**row | changes)

    def failed(self, **changes):
        """A failed call with everything a failure has."""
        row = UNAVAILABLE | {
            "reason": "upstream_unavailable", "action": "retry_later", "reference_id": reference.new(),
            "exception_type": "HTTPStatusError", "frame": "tools.calendar:book", "message": "Try once more.",
        }  # fmt: skip
        call = self.ok(**row | changes)
        parts = call.service, call.tool, call.code, call.reason, call.exception_type, call.frame
        fingerprint = blake2b(repr(parts).encode(), digest_size=16).digest()
        return call._replace(**{"fingerprint": fingerprint} | changes)

    def again(self, call, **changes):
        """The same failure in another call."""
        ids = {"trace_id": self.random.randbytes(16), "span_id": self.random.randbytes(8)}
        return call._replace(**ids | {"reference_id": reference.new()} | changes)

    def event(self, call, name, **changes):
        row = {
            "occurred_at": call.started_at, "told_at": None, "received_at": call.received_at, "amount": None,
            "severity": 13, "trace_id": call.trace_id, "span_id": call.span_id, "digest": _digest(name, call),
            "event_name": name, "service": call.service, "environment": call.environment, "label": call.tool,
            "outcome": None, "reference_id": call.reference_id, "run_id": None, "conversation_id": None,
            "version": call.version, "attributes": "{}",
        }  # fmt: skip
        return Event(**row | changes)

    def log(self, call, name=conventions.EXCEPTION, **changes):
        row = {
            "occurred_at": call.started_at, "told_at": None, "received_at": call.received_at, "severity": 17,
            "trace_id": call.trace_id, "span_id": call.span_id, "digest": _digest(name, call), "event_name": name,
            "service": call.service, "environment": call.environment, "reference_id": call.reference_id,
            "exception_type": "HTTPStatusError", "body": "503 from upstream", "stacktrace": "Traceback", "attributes": "{}",
        }  # fmt: skip
        return Log(**row | changes)

    def batch(self, calls=200):
        """Calls of several tools in the last nine minutes, every fourth failed, its event and its detail with it."""
        made = [
            (self.failed if i % 4 == 0 else self.ok)(
                started_at=self.ago(seconds=540 - i), tool=f"tool_{i % 7}", service=f"svc-{i % 3}"
            )
            for i in range(calls)
        ]
        failed = [call for call in made if call.outcome != "ok"]
        return made + failed, [], [self.log(call) for call in failed]


def _digest(name, call):
    return blake2b(repr((name, call.started_at, call.span_id)).encode(), digest_size=8).digest()


@pytest.fixture
def make(request):
    return Samples(request.node.name)


@pytest.fixture
def open_writer(database_url):
    """Opens writers; they are closed at the end."""
    writers = []

    def _open():
        writers.append(Writer.open(database_url))
        return writers[-1]

    yield _open
    for writer in writers:
        writer.close()


@pytest.fixture
def writer(open_writer):
    return open_writer()


@contextmanager
def connected(url):
    """A connection that reads as look-ups do."""
    engine = open_engine(url)
    with engine.connect() as conn:
        yield conn
    engine.dispose()


@pytest.fixture
def conn(database_url):
    with connected(database_url) as conn:
        yield conn


class Database:
    """What is stored, read over a connection of its own."""

    def __init__(self, conn):
        self.conn = conn

    def all(self, query, *params):
        return self.conn.execute(query, params).fetchall()

    def one(self, query, *params):
        """The first row; its value if it has only one."""
        row = self.conn.execute(query, params).fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def state(self):
        """Every row of every table a delivery may write."""
        tables = (*COLUMNS, "label", "tool_catalog", "dead_letter")
        return {table: sorted(map(repr, self.all(f"SELECT * FROM {table}"))) for table in tables}  # noqa: S608

    def check_sums(self):
        """Totals and late calls are the rows; tallies are the rows; histograms are the totals."""
        rows = self.one("SELECT count(*) FROM tool_call_all")
        late = self.one(
            "SELECT coalesce(sum(amount), 0) FROM event_total WHERE metric = %s",
            conventions.LATE_CALLS,
        )
        total = self.one("SELECT coalesce(sum(calls), 0) FROM call_total")
        assert total + late == rows
        assert self.one("SELECT coalesce(sum(calls), 0) FROM call_tally") == rows
        grouped = self.one("SELECT count(*) FROM tool_call WHERE fingerprint IS NOT NULL")
        assert self.one("SELECT coalesce(sum(calls), 0) FROM error_group_tally") == grouped
        for column in ("duration_buckets", "attempts_buckets"):
            assert (
                self.one(f"SELECT coalesce(sum(b), 0) FROM call_total, unnest({column}) AS b")  # noqa: S608
                == total
            )


@pytest.fixture
def db(database_url):
    """The database; its sums are checked after the test."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        database = Database(conn)
        yield database
        database.check_sums()
