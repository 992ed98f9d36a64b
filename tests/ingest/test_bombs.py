"""Small requests that would be large: unpacked, parsed, or counted."""

import gzip
import threading
from pathlib import Path

import grpc
import pytest

from toolfault.ingest import bomb, decode
from toolfault.ingest.errors import MalformedError, TooLargeError

MIB = 1024 * 1024
LIMIT = 64 * MIB
PACKED = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}


class Memory:
    """The most this process held while the block ran, above what it held before."""

    def __enter__(self):
        self._start = self.most = self._resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
        self.grown = self.most - self._start

    def _watch(self):
        while not self._done.wait(0.002):
            self.most = max(self.most, self._resident())

    @staticmethod
    def _resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture(scope="module")
def gibibyte():
    return bomb.zeros(1024 * MIB)


def test_a_gibibyte_of_zeros_stops_at_the_limit_and_costs_little_memory(gibibyte):
    assert len(gibibyte) < 1.1 * MIB
    with Memory() as memory, pytest.raises(TooLargeError):
        decode.Gunzip(LIMIT).run(gibibyte)
    assert memory.grown < 160 * MIB


def test_a_body_of_exactly_the_limit_is_unpacked():
    assert decode.Gunzip(MIB).run(bomb.zeros(MIB)) == bytes(MIB)
    with pytest.raises(TooLargeError):
        decode.Gunzip(MIB - 1).run(bomb.zeros(MIB))


def test_many_empty_members_are_not_all_opened():
    with pytest.raises(MalformedError, match="1024 members"):
        decode.Gunzip(LIMIT).run(bomb.members(200_000))


def test_empty_spans_are_parsed_one_at_a_time():
    body = bomb.empty_spans(MIB)
    with Memory() as memory:
        [group] = decode.traces(body, is_json=False)
        assert sum(1 for _ in group.records) == MIB // 2
    assert memory.grown < 16 * MIB


def test_more_records_than_any_client_sends_are_refused(monkeypatch):
    monkeypatch.setattr(decode, "MAX_RECORDS", 1000)
    [group] = decode.traces(bomb.empty_spans(4000), is_json=False)
    with pytest.raises(MalformedError, match="more than 1,000 records"):
        list(group.records)


def test_json_of_many_containers_is_refused_before_it_is_parsed():
    body = b"[" + b"{}," * 3_000_000 + b"{}]"
    with Memory() as memory, pytest.raises(MalformedError, match="objects and arrays"):
        list(decode.traces(body, is_json=True))
    assert memory.grown < 16 * MIB


def test_bombs_are_refused_over_http_and_the_service_goes_on(shared, gibibyte):
    for body in (gibibyte, gzip.compress(gibibyte), bomb.members(200_000)):
        assert shared.post("/v1/traces", body, PACKED).status_code in (400, 413)
    assert shared.post("/v1/traces", b"", PACKED).status_code == 200
    assert shared.metric("toolfault_ingest_queue_bytes") == 0


def test_bombs_are_refused_over_grpc_and_the_service_goes_on(shared, gibibyte):
    # Sent packed as they are: what a client's own gzip would make of the unpacked bytes.
    assert shared.call("traces", gibibyte)[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert shared.call("logs", bomb.members(100_000))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert shared.call("traces", b"")[0] is grpc.StatusCode.OK


def test_a_message_packed_by_grpc_itself_is_bounded_too(shared):
    method = shared.channel.unary_unary(
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    )
    with pytest.raises(grpc.RpcError) as refused:
        method(bytes(8 * MIB), compression=grpc.Compression.Gzip, timeout=30)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "grpc-status-details-bin" in dict(refused.value.trailing_metadata())
    assert b"RetryInfo" not in dict(refused.value.trailing_metadata())["grpc-status-details-bin"]


def test_the_bomb_sender_tells_what_came_back(shared, monkeypatch, capsys):
    monkeypatch.setattr(bomb, "bombs", lambda: iter([("zeros", bomb.zeros(100 * MIB), True)]))
    monkeypatch.setattr("sys.argv", ["bomb", str(shared.client.base_url)])
    with pytest.raises(SystemExit) as ended:
        bomb.main()
    assert not ended.value.code
    assert capsys.readouterr().out == "zeros: 413\n"
