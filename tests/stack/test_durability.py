"""Agents -> Collector -> toolfault -> PostgreSQL, each of the three taken away under load."""

import os
import time
from contextlib import closing

import pytest
from tests.chaos.database import Database, until
from tests.chaos.ledger import Ledger, check_complete
from tests.chaos.replica import Replica
from tests.stack.collector import Collector

#: `AWAY=300 python -m pytest tests/stack/test_durability.py`: seconds without a database.
AWAY = float(os.environ.get("AWAY", "20"))
pytestmark = pytest.mark.timeout(300 + 4 * AWAY)  # a busy machine starts each in many seconds


@pytest.fixture
def database(tmp_path):
    made = Database(tmp_path / "postgres")
    yield made
    made.close()


def test_nothing_acknowledged_is_lost_or_stored_twice_whatever_is_killed(database, tmp_path):
    ledger, service = Ledger(), Replica(database.url).running()
    with closing(service), closing(Collector(tmp_path, service.http, "visibly-fake")) as collector:
        with ledger.load(collector, senders=2, size=4):
            _take_each_away(database, service, collector)
        # The load has ended; what is in the Collector's queue follows.
        until(lambda: _stored(database) == len(ledger.acknowledged), within=60 + 2 * AWAY)

    assert len(ledger.acknowledged) > 0
    check_complete(database, ledger)


def _take_each_away(database, service, collector):
    time.sleep(0.5)
    database.stop_at_once()
    time.sleep(AWAY)  # several of the Collector's retries
    database.start_again()
    service.wait_until_ready()
    service.kill()
    time.sleep(1)
    service.start()
    for _ in range(3):
        time.sleep(0.7)
        collector.kill()
        collector.start()


def _stored(database):
    return database.rows("SELECT count(*)::int FROM tool_call_all")[0][0]
