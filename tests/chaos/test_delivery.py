"""What clients do to a running service: repeat themselves, mistake the time, send nonsense, send too much."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.chaos.ledger import (
    REJECTED,
    TAKEN,
    Export,
    Grpc,
    Http,
    check_complete,
    events,
    spans,
)
from tests.ingest import otlp

_HOUR, _YEAR = 3_600 * 10**9, 31_536_000 * 10**9
_MIB = 1024 * 1024
pytestmark = pytest.mark.timeout(180)


@contextlib.contextmanager
def _ways(*replicas):
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(contextlib.closing(way(replica)))
            for replica in replicas
            for way in (Http, Grpc)
        ]


def test_the_same_export_ten_times_at_once_by_two_replicas_is_there_once(
    replica, second, database, ledger
):
    with _ways(replica, second) as ways, ThreadPoolExecutor(10) as pool:
        for _ in range(3):
            numbers = ledger.take(60)
            exports = [spans(numbers), events(numbers)] * 5
            sent = [
                pool.submit(ledger.deliver, export, ways[n % 4 :] + ways[: n % 4])
                for n, export in enumerate(exports)
            ]
            for each in sent:
                each.result()
    check_complete(database, ledger)


ABSURD = {
    "an hour ahead": time.time_ns() + _HOUR,
    "a year ahead": time.time_ns() + _YEAR,
    "an hour ago": time.time_ns() - _HOUR,
    "a year ago": time.time_ns() - _YEAR,
    "the beginning": 1,
    "never": 0,
    "the end": 2**63 - 1,
}


def test_clocks_that_are_wrong_cost_no_row_and_no_count(replica, database, ledger):
    with _ways(replica) as ways:
        for at in ABSURD.values():
            # Failures that are late have no total of their own to be compared with.
            succeeded = [n for n in ledger.take(30) if n % 3]
            export = spans(succeeded, **{"toolfault.start": at})
            for way in ways:
                assert ledger.send(export, way) == TAKEN
    check_complete(database, ledger)
    negative = "SELECT count(*) FROM tool_call_all WHERE duration_us < 0"
    assert database.rows(negative) == [(0,)]


def _poison(number):
    """Exports that are bad as a whole, and the text that Postgres does not take."""
    good = spans([number])
    return [
        Export("traces", frozenset(), good.body[:-3]),
        Export("traces", frozenset(), b"\xff" * 1000),
        Export("logs", frozenset(), b"\x0a\xff\xff\xff\xff\x0f"),
    ]


def test_poison_among_good_exports_hurts_nobody_else(replica, database, ledger):
    with _ways(replica) as ways, ledger.load(replica):
        for _ in range(10):
            outcomes = [ledger.send(bad, way) for bad in _poison(ledger.take(1)[0]) for way in ways]
            assert set(outcomes) == {REJECTED}
            odd = spans(ledger.take(3), **{"toolfault.message": "a\0b \ud800".encode("utf-8", "surrogatepass")})  # fmt: skip
            ledger.deliver(odd, ways)
            huge = {f"attribute {n}": "x" * 1000 for n in range(200)}
            ledger.deliver(spans(ledger.take(3), **huge), ways)
            ways[0](_partly_invalid())
    check_complete(database, ledger)
    assert _refused(replica) == 10


def _partly_invalid():
    bad = otlp.span(attributes={"gen_ai.operation.name": "execute_tool"}, span_id=b"short")
    return Export("traces", frozenset(), otlp.traces(bad).SerializeToString())


def _refused(replica):
    """How many spans had an id that is none, by the service's own count."""
    series = 'toolfault_ingest_refused_total{reason="invalid_id",signal="traces"} '
    [line] = [line for line in replica.metrics().splitlines() if line.startswith(series)]
    return float(line.removeprefix(series))


def test_overload_is_refused_with_the_time_to_come_again_and_everything_arrives_later(
    replica, database, ledger
):
    padding = {"padding": "x" * (8 * _MIB)}

    def send(first):
        with _ways(replica) as ways:
            ledger.deliver(spans([first], **padding), ways[first % 2 :] + ways[: first % 2])

    threads = [threading.Thread(target=send, args=(n,)) for n in ledger.take(24)]
    with database.held_before_commit():
        for thread in threads:
            thread.start()
        # One client may hold half of 256 MiB: some of these 24 requests are turned away.
        deadline = time.monotonic() + 60
        while not (ledger.refusals[429] or ledger.refusals["UNAVAILABLE"]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert set(ledger.refusals) - {"partial success"} <= {429, 503, "UNAVAILABLE"}
    check_complete(database, ledger)
