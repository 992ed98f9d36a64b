"""Numbered spans, what was sent of them, and what was said about it."""

import itertools
import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import grpc
import httpx
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.ingest import otlp
from tests.ingest.conftest import method

AGAIN, TAKEN, REJECTED = "again", "taken", "rejected"
_RESPONSES = {"traces": ExportTraceServiceResponse, "logs": ExportLogsServiceResponse}
_PATIENCE = 90.0  # s, for one export
_FAILED = {
    "toolfault.outcome": "failed",
    "toolfault.code": "UNAVAILABLE",
    "toolfault.effect": "none",
    "toolfault.action": "retry_later",
}


class Export(NamedTuple):
    """One request."""

    signal: str
    numbers: frozenset
    body: bytes


def spans(numbers, **told):
    """An export with a span for each number; every third call failed."""
    made = [otlp.span(attributes=_record(n) | told, **_ids(n)) for n in numbers]
    return Export("traces", frozenset(numbers), otlp.traces(*made).SerializeToString())


def events(numbers):
    """The run events of those calls that failed."""
    failed = [n for n in numbers if _is_failed(n)]
    made = [otlp.log("toolfault.tool_error", _record(n), **_ids(n)) for n in failed]
    return Export("logs", frozenset(failed), otlp.logs(*made).SerializeToString())


def _ids(number):
    return {"trace_id": number.to_bytes(16), "span_id": number.to_bytes(8)}


def _is_failed(number):
    return number % 3 == 0


def _record(number):
    record = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": f"tool {number % 5}",
        "toolfault.start": _started(number),
        "toolfault.duration": 0.25,
        "toolfault.outcome": "ok",
        "toolfault.attempts": 1,
        "toolfault.effect": "applied",
    }
    if _is_failed(number):
        record |= _FAILED | {"toolfault.reference_id": f"chaos-{number}"}
    return record


@cache
def _started(_number):
    """When its call began: now, at first. A time shared by all would be late in a run of ten minutes."""
    return time.time_ns()


class Ledger:
    """What was sent, acknowledged and rejected, and every other answer."""

    def __init__(self):
        self.sent, self.acknowledged, self.rejected = set(), set(), set()
        self.refusals = Counter()
        self.wrong = []  # answers that the protocol does not allow
        self._numbers = itertools.count(1)

    def take(self, amount):
        """The next numbers."""
        return list(itertools.islice(self._numbers, amount))

    def deliver(self, export, ways):
        """Sends by one way after the other, until the export is acknowledged or rejected."""
        deadline = time.monotonic() + _PATIENCE
        for way in itertools.cycle(ways):
            if self.send(export, way) != AGAIN:
                return
            assert time.monotonic() < deadline, f"not taken: {self.refusals}"
            time.sleep(0.1)

    def send(self, export, way):
        """Sends once and writes down what became of it."""
        self.sent |= export.numbers
        outcome, answer = way(export)
        self.refusals[answer] += outcome == AGAIN
        if outcome == TAKEN:
            self.acknowledged |= export.numbers
        elif outcome == REJECTED:
            self.rejected |= export.numbers
        elif outcome != AGAIN:
            self.wrong.append(answer)
        return outcome

    @contextmanager
    def load(self, *replicas, senders=4, size=20):
        """Senders at work; on leaving, each sees its last exports acknowledged."""
        stop, failures = threading.Event(), []

        def work(first):
            ways = [way for replica in replicas for way in (Http(replica), Grpc(replica))]
            ways = ways[first % len(ways) :] + ways[: first % len(ways)]
            try:
                while not stop.is_set():
                    numbers = self.take(size)
                    pair = spans(numbers), events(numbers)
                    for export in pair if first % 2 else reversed(pair):
                        self.deliver(export, ways)
            except BaseException as failure:  # noqa: BLE001 - raised by the test's own thread
                failures.append(failure)
            finally:
                for way in ways:
                    way.close()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(senders)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not failures, failures


class Http:
    """OTLP over HTTP: what became of an export, and the answer in a word."""

    def __init__(self, replica):
        self._client = httpx.Client(base_url=replica.http, timeout=30)

    def __call__(self, export):
        try:
            answer = self._client.post(
                f"/v1/{export.signal}",
                content=export.body,
                headers={"content-type": "application/x-protobuf"},
            )
        except httpx.TransportError as error:
            return AGAIN, type(error).__name__
        if answer.status_code == 200:
            return _taken(export, answer.content)
        if answer.status_code in (429, 503) and int(answer.headers["retry-after"]) > 0:
            return AGAIN, answer.status_code
        if answer.status_code in (400, 413):
            return REJECTED, answer.status_code
        return "wrong", answer.status_code

    def close(self):
        self._client.close()


class Grpc:
    """OTLP over gRPC: what became of an export, and the answer in a word."""

    def __init__(self, replica):
        options = [("grpc.max_send_message_length", -1), ("grpc.max_reconnect_backoff_ms", 300)]
        options += [
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self._channel = grpc.insecure_channel(replica.grpc, options=options)

    def __call__(self, export):
        try:
            answer = self._channel.unary_unary(method(export.signal))(export.body, timeout=30)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                return AGAIN, error.code().name
            rejected = error.code() is grpc.StatusCode.INVALID_ARGUMENT
            return REJECTED if rejected else "wrong", error.code().name
        return _taken(export, answer)

    def close(self):
        self._channel.close()


def _taken(export, answer):
    told = _RESPONSES[export.signal].FromString(answer)
    # A Collector sets it, empty, with every success; that we do not is tests/ingest's to say.
    return "wrong" if told.partial_success.ByteSize() else TAKEN, "partial success"


def check(database, ledger):
    """Nothing acknowledged is missing, nothing is there twice, totals + late = rows."""
    rows, told = counted(database)
    assert len(rows) == len(set(rows))
    assert not ledger.wrong
    assert not ledger.acknowledged - set(rows)
    assert set(rows) <= ledger.sent - ledger.rejected
    failed = sum(map(_is_failed, rows))
    right = (len(rows), len(rows), failed, failed)
    assert told == right, f"counted {told} where {right} is right"
    assert database.rows("SELECT count(*) FROM reference") == [(failed,)]


def check_complete(database, ledger):
    """`check`, and everything that was not rejected is there."""
    check(database, ledger)
    rows = database.rows("SELECT count(*) FROM tool_call_all")
    assert rows == [(len(ledger.sent - ledger.rejected),)]
    assert ledger.acknowledged == ledger.sent - ledger.rejected


def counted(database):
    """The calls, and beside them totals with late ones, tallies, and of failures the totals (without late ones) and groups.

    In one statement: what is committed while it runs is in all of them or in none.
    """
    [(traces, *told)] = database.rows(
        """SELECT (SELECT coalesce(array_agg(trace_id), '{}') FROM tool_call_all),
            (SELECT coalesce(sum(calls), 0) FROM call_total)
                + (SELECT coalesce(sum(amount), 0) FROM event_total WHERE metric = 'toolfault_late_calls'),
            (SELECT coalesce(sum(calls), 0) FROM call_tally),
            (SELECT coalesce(sum(calls), 0) FROM call_total WHERE outcome = 'failed'),
            (SELECT coalesce(sum(calls), 0) FROM error_group_tally)"""
    )
    return [int.from_bytes(trace) for trace in traces], tuple(map(int, told))
