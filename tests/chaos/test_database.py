"""The database goes away, hangs or is killed; the service says so and recovers by itself."""

import contextlib
import os
import signal
import time
from pathlib import Path

import httpx
import pytest
from tests.chaos.conftest import REPEAT
from tests.chaos.database import until
from tests.chaos.ledger import AGAIN, TAKEN, Grpc, Http, Ledger, check_complete, spans
from tests.end_to_end.harness import running

pytestmark = pytest.mark.timeout(120 + 60 * REPEAT)


@pytest.fixture
def answers(replica, ledger, record_property):
    """Sends an export by both transports; shows beside the test's result when each was answered."""

    def send(export, when):
        for way in (Http(replica), Grpc(replica)):
            with contextlib.closing(way):
                began = time.monotonic()
                # The client itself would wait for 30 s.
                yield ledger.send(export, way)
                record_property(f"{when}, {type(way).__name__}", time.monotonic() - began)

    return lambda export, when: list(send(export, when))


def test_a_database_stopped_at_once_and_started_again_loses_nothing(
    replica, database, ledger, answers
):
    with ledger.load(replica):
        for _ in range(REPEAT):
            time.sleep(0.5)
            database.stop_at_once()
            until(lambda: ledger.refusals[503] and ledger.refusals["UNAVAILABLE"])
            export = spans(ledger.take(50))
            assert answers(export, "away") == [AGAIN, AGAIN]
            database.start_again()
            replica.wait_until_ready()
            _deliver(ledger, export, replica)
    check_complete(database, ledger)


def _deliver(ledger, export, replica):
    with contextlib.closing(Http(replica)) as way:
        ledger.deliver(export, [way])


def test_a_frozen_database_is_answered_for_in_time_and_taken_up_again(
    replica, database, ledger, answers
):
    export = spans(ledger.take(50))
    with database.frozen():
        # The first ones wait as long as a transaction may take, those after them not at all.
        assert answers(export, "frozen, first") == [AGAIN, AGAIN]
        assert answers(export, "frozen, next") == [AGAIN, AGAIN]
        assert set(ledger.refusals) == {503, "UNAVAILABLE"}
        red = replica.readiness()
        assert red.status_code == 503
        assert "database" in red.text
    replica.wait_until_ready()
    _deliver(ledger, export, replica)
    check_complete(database, ledger)


def test_a_database_that_became_read_only_is_told_and_taken_up_again(
    replica, database, ledger, answers
):
    export = spans(ledger.take(50))
    with database.read_only():
        assert answers(export, "read-only, first") == [AGAIN, AGAIN]
        until(lambda: "read-only" in replica.readiness().text)
        assert answers(export, "read-only, next") == [AGAIN, AGAIN]
    replica.wait_until_ready()
    _deliver(ledger, export, replica)
    check_complete(database, ledger)


def test_a_killed_embedded_database_is_started_again_under_the_running_service(tmp_path):
    ledger = Ledger()  # another database, another ledger
    noted = tmp_path / "postgres" / "postmaster.pid"
    with running("--data-dir", tmp_path) as addresses:
        first = _pid(noted)
        os.kill(first, signal.SIGKILL)
        until(lambda: _pid(noted) not in (None, first))
        with contextlib.closing(Http(_At(addresses["http"]))) as way:
            export = spans(ledger.take(10))
            ledger.deliver(export, [way])
            assert ledger.send(export, way) == TAKEN
        until(lambda: httpx.get(f"{addresses['web']}/readyz").status_code == 200)
        listed = httpx.get(f"{addresses['web']}/api/v1/errors").json()
        assert "chaos-3" in str(listed)


class _At:
    def __init__(self, http):
        self.http = http


def _pid(noted: Path):
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(noted.read_text().split()[0])
    return None
