"""The service is killed, at every point of a request; what it acknowledged is there, once."""

import contextlib
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.chaos.conftest import REPEAT
from tests.chaos.database import until
from tests.chaos.ledger import AGAIN, TAKEN, Grpc, Http, check, check_complete, spans

pytestmark = pytest.mark.timeout(120 + 60 * REPEAT)


class _Sent:
    """An export under way."""

    def __init__(self, ledger, export, way):
        self._work = ThreadPoolExecutor(1)
        self._outcome = self._work.submit(self._send, ledger, export, way)

    def _send(self, ledger, export, way):
        with contextlib.closing(way):
            return ledger.send(export, way)

    def outcome(self):
        """What became of it, when it has ended."""
        with self._work:
            return self._outcome.result()


def _both_ways(ledger, exports, replica):
    """Exports under way by HTTP and gRPC, each held by the service and one of them in a transaction."""
    sent = [
        _Sent(ledger, export, way(replica))
        for export, way in zip(exports, (Http, Grpc), strict=True)
    ]
    until(lambda: replica.held_bytes() == sum(len(export.body) for export in exports))
    return sent


def _resend(ledger, export, replica):
    with contextlib.closing(Http(replica)) as way:
        ledger.deliver(export, [way])


def _ids(database):
    return {int.from_bytes(row[0]) for row in database.rows("SELECT trace_id FROM tool_call_all")}


def test_killed_under_load_it_loses_nothing_and_stores_nothing_twice(replica, database, ledger):
    moments = random.Random(4)  # noqa: S311
    with ledger.load(replica):
        for _ in range(2 * REPEAT):
            time.sleep(moments.uniform(0.1, 1.0))
            replica.kill()
            acknowledged = set(ledger.acknowledged)
            assert acknowledged <= _ids(database)
            check(database, ledger)
            replica.start()
    check_complete(database, ledger)


def test_killed_inside_the_transaction_it_leaves_no_half_batch(replica, database, ledger):
    for _ in range(REPEAT):
        exports, before = [spans(ledger.take(50)) for _ in range(2)], _ids(database)
        with database.held_before_commit():
            sent = _both_ways(ledger, exports, replica)
            database.wait_for_backend("relation")
            replica.kill()
        database.wait_for_no_backend()
        assert [each.outcome() for each in sent] == [AGAIN, AGAIN]
        assert _ids(database) == before
        replica.start()
        for export in exports:
            _resend(ledger, export, replica)
    check_complete(database, ledger)


def test_killed_between_commit_and_answer_the_resent_batch_changes_nothing(
    replica, database, ledger
):
    for _ in range(REPEAT):
        export, before = spans(ledger.take(50)), _ids(database)
        with database.held_in_commit():
            sent = _Sent(ledger, export, Http(replica))
            database.wait_for_backend("SyncRep")
            replica.kill()
        database.wait_for_no_backend()
        assert sent.outcome() == AGAIN
        assert _ids(database) == before | export.numbers
        check(database, ledger)
        replica.start()
        _resend(ledger, export, replica)
    check_complete(database, ledger)


def test_killed_before_the_request_is_whole_it_has_stored_nothing(replica, database, ledger):
    export, before = spans(ledger.take(50)), _ids(database)
    place = replica.http.removeprefix("http://").split(":")
    with socket.create_connection(place) as half:
        head = f"content-type: application/x-protobuf\r\ncontent-length: {len(export.body)}\r\n\r\n"
        half.sendall(f"POST /v1/traces HTTP/1.1\r\nhost: x\r\n{head}".encode())
        half.sendall(export.body[:1000])
        replica.kill()
    assert _ids(database) == before
    replica.start()
    _resend(ledger, export, replica)
    check_complete(database, ledger)


def test_told_to_stop_it_finishes_what_is_under_way(replica, database, ledger):
    exports = [spans(ledger.take(50)) for _ in range(2)]
    with database.held_before_commit():
        sent = _both_ways(ledger, exports, replica)
        replica.terminate()
        until(replica.takes_no_more)
    assert [each.outcome() for each in sent] == [TAKEN, TAKEN]
    assert replica.ended() == 0
    check_complete(database, ledger)


def test_of_two_replicas_on_one_database_one_may_be_killed(replica, second, database, ledger):
    with ledger.load(replica, second):
        for _ in range(REPEAT):
            time.sleep(0.5)
            second.kill()
            time.sleep(0.5)
            second.start()
    check_complete(database, ledger)
