"""Erasing and dropping partitions beside a service under load: nobody waits, nothing else goes."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from tests.chaos.conftest import REPEAT
from tests.chaos.ledger import TAKEN, Http, Ledger, check_complete, counted, spans
from tests.chaos.replica import Replica

from toolfault.store import partitions
from toolfault.store.erase import erase_conversation

pytestmark = pytest.mark.timeout(120 + 60 * REPEAT)
ROUNDS = 5 * REPEAT


class _Database:
    """One that no other test's rows are in."""

    def __init__(self, url):
        self.url = url

    def rows(self, statement, *values):
        with psycopg.connect(self.url) as conn:
            return conn.execute(statement, values).fetchall()


@pytest.fixture
def own(database_url):
    return _Database(database_url)


@pytest.fixture
def busy(own):
    """A service before it."""
    replica = Replica(own.url)
    yield replica.running()
    replica.close()


def _deadlocks(database):
    asked = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    return database.rows(asked)


def test_conversations_are_erased_under_load_and_nothing_else_goes(busy, own):
    ledger, guests, before = Ledger(), Ledger(), _deadlocks(own)
    guests.take(10**6)  # numbers that the other senders never reach
    way = Http(busy)
    with ledger.load(busy), psycopg.connect(own.url, autocommit=True) as conn:
        for number in range(ROUNDS):
            told = {"gen_ai.conversation.id": f"gone-{number}"}
            assert guests.send(spans(guests.take(20), **told), way) == TAKEN
            assert erase_conversation(conn, f"gone-{number}").calls == 20
    way.close()
    rows = own.rows("SELECT trace_id FROM tool_call_all")
    assert {int.from_bytes(row[0]) for row in rows} == ledger.acknowledged == ledger.sent
    assert not +ledger.refusals
    assert _deadlocks(own) == before
    # What was counted stays counted.
    assert counted(own)[1][:2] == (len(rows) + 20 * ROUNDS,) * 2


def test_partitions_are_dropped_and_made_under_load_without_a_refusal(busy, own):
    ledger, before = Ledger(), _deadlocks(own)
    dropped = []
    with ledger.load(busy), psycopg.connect(own.url, autocommit=True) as conn:
        for _ in range(ROUNDS):
            now = datetime.now(UTC)
            partitions.maintain(conn, now, partitions.Retention(ok_days=9, days=9))
            shorter = partitions.maintain(conn, now, partitions.Retention(ok_days=6, days=6))
            dropped += shorter.dropped
    oldest = datetime.now(UTC).date() - timedelta(days=9)
    assert {f"{table}_{oldest:%Y%m%d}" for table in ("tool_call", "tool_call_ok")} <= set(dropped)
    assert not +ledger.refusals
    assert _deadlocks(own) == before
    check_complete(own, ledger)
