"""The duties of an OTLP receiver, over real connections."""

import asyncio
import gzip
import json
import time

import grpc
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.ingest import otlp
from tests.ingest.conftest import method, serving

from toolfault.ingest import http
from toolfault.ingest.errors import NotAllowedError, UnauthenticatedError
from toolfault.ingest.pipeline import Limits


def record(**told):
    """The attributes of an ok call that has just ended."""
    base = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}
    base |= {
        "toolfault.start": time.time_ns(),
        "toolfault.duration": 0.25,
        "toolfault.outcome": "ok",
    }
    return base | {"toolfault.attempts": 1, "toolfault.effect": "applied"} | told


FAILED = {
    "toolfault.outcome": "failed",
    "toolfault.code": "UNAVAILABLE",
    "toolfault.reference_id": "938N-KRKA-S18P",
    "toolfault.effect": "none",
    "toolfault.action": "retry_later",
}


def a_request(**told):
    return otlp.traces(otlp.span(attributes=record(**told))).SerializeToString()


# --- taken -----------------------------------------------------------------------------------------


async def test_a_span_sent_over_http_is_committed_when_the_answer_comes(service):
    answer = await service.post("traces", a_request())
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "application/x-protobuf"
    [row] = service.rows("SELECT service, environment, tool, duration_us FROM tool_call_ok")
    assert row == ("booking", "prod", "book", 250_000)


async def test_a_span_sent_over_grpc_is_committed_when_the_answer_comes(service):
    answer = await service.call("traces", a_request(), grpc.Compression.Gzip)
    assert not ExportTraceServiceResponse.FromString(answer).HasField("partial_success")
    assert len(service.rows("SELECT 1 FROM tool_call_ok")) == 1


async def test_json_is_answered_in_json(service):
    answer = await service.post("traces", b"{}", "application/json; charset=utf-8")
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"] == "application/json"


async def test_a_partial_success_counts_exactly_and_explains(service):
    bad = otlp.span(attributes=record(), span_id=b"short")
    body = otlp.traces(otlp.span(attributes=record()), bad, bad).SerializeToString()
    answer = await service.post("traces", body)
    told = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert told.rejected_spans == 2
    assert told.error_message.startswith("2 refused: a span needs a trace id of 16")
    labels = {"signal": "traces", "reason": "invalid_id"}
    assert service.metric("toolfault_ingest_refused_total", **labels) == 2


async def test_metrics_are_acknowledged_and_counted_as_ignored(service):
    request = ExportMetricsServiceRequest()
    request.resource_metrics.add().scope_metrics.add().metrics.add(name="a")
    for answer in (
        await service.post("metrics", request.SerializeToString()),
        await service.post(
            "metrics",
            json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{}]}]}]}).encode(),
            "application/json",
        ),
    ):
        assert answer.status_code == 200
    await service.call("metrics", request.SerializeToString())
    assert service.metric("toolfault_ingest_ignored_total", signal="metrics") == 3


async def test_a_chunked_body_without_a_length_is_taken(service):
    body = gzip.compress(a_request())

    async def chunks():
        for at in range(0, len(body), 7):
            yield body[at : at + 7]

    answer = await service.post("traces", chunks(), content_encoding="gzip")
    assert answer.status_code == 200
    assert len(service.rows("SELECT 1 FROM tool_call_ok")) == 1


async def test_requests_share_a_connection(service):
    reader, writer = await asyncio.open_connection("127.0.0.1", service.http_port)
    head = b"host: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    for _ in range(2):
        writer.write(b"POST /v1/traces HTTP/1.1\r\n" + head)
        answer = await reader.readuntil(b"\r\n\r\n{}")
        assert answer.startswith(b"HTTP/1.1 200")
    writer.close()


# --- one call, one row -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", ["span first", "event first", "event only", "span only", "together"]
)
async def test_span_and_event_give_the_same_row_and_count_once_in_any_order(service, order):
    told = record(**FAILED) | {"toolfault.start": 1_000_000_000 * int(time.time())}
    span = otlp.traces(otlp.span(attributes=told, parent_span_id=b"12345678")).SerializeToString()
    event = otlp.logs(otlp.log("toolfault.tool_error", told)).SerializeToString()
    sends = {
        "span first": [("traces", span), ("logs", event)],
        "event first": [("logs", event), ("traces", span)],
        "event only": [("logs", event)],
        "span only": [("traces", span)],
    }
    if order == "together":
        await asyncio.gather(service.post("traces", span), service.post("logs", event))
    for signal, body in sends.get(order, []):
        await service.post(signal, body)
        await service.call(signal, body)
    [row] = service.rows("SELECT * FROM tool_call")
    assert (row.outcome, row.code, row.parent_span_id) == ("failed", "UNAVAILABLE", None)
    assert row.reference_id == "938N-KRKA-S18P"
    assert service.rows("SELECT calls, outcome FROM call_total WHERE calls > 0") == [(1, "failed")]
    assert len(service.rows("SELECT 1 FROM reference WHERE outcome = 'failed'")) == 1


async def test_the_same_export_over_both_transports_at_once_is_stored_once(service):
    body = otlp.traces(
        *(otlp.span(attributes=record(), span_id=bytes([i]) * 8) for i in range(1, 50))
    ).SerializeToString()
    sends = [service.post("traces", body) for _ in range(5)] + [
        service.call("traces", body) for _ in range(5)
    ]
    await asyncio.gather(*sends)
    assert service.rows("SELECT count(*), sum(attempts) FROM tool_call_ok") == [(49, 49)]
    assert service.rows("SELECT sum(calls) FROM call_total") == [(49,)]


# --- refused ---------------------------------------------------------------------------------------


async def test_a_body_that_does_not_come_is_given_up(service, monkeypatch):
    monkeypatch.setattr(http, "_BODY_SECONDS", 0.2)
    head = b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    reader, writer = await asyncio.open_connection("127.0.0.1", service.http_port)
    writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n" + head)
    assert (await reader.read()).startswith(b"HTTP/1.1 408")  # and then the connection ends
    writer.close()
    assert service.metric("toolfault_ingest_queue_bytes") == 0


async def test_a_client_that_leaves_gives_its_bytes_back(service):
    reader, writer = await asyncio.open_connection("127.0.0.1", service.http_port)
    head = b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
    writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n" + head)
    while service.metric("toolfault_ingest_queue_bytes") != 1:
        await asyncio.sleep(0.01)
    writer.close()
    while service.metric("toolfault_ingest_queue_bytes") != 0:
        await asyncio.sleep(0.01)
    assert reader


async def test_a_length_over_the_limit_is_refused_before_the_body_is_held(service):
    answer = await service.post("traces", bytes(4 * 1024 * 1024 + 1))
    told = Status.FromString(answer.content)
    assert (answer.status_code, told.code) == (413, grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])
    assert "retry-after" not in answer.headers


async def test_overload_is_told_with_the_time_to_come_again(database_url):
    async with serving(database_url, limits=Limits(max_bytes=100)) as service:
        answer = await service.post("traces", bytes(200))
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "2")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await service.call("traces", bytes(200))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert (await service.post("traces", b"")).status_code == 200


async def _only_alice(header):
    if not header:
        raise UnauthenticatedError("a token is needed")
    if header != "Bearer alice":
        raise NotAllowedError("this token may not send telemetry")
    return "alice"


async def test_a_token_is_asked_for_over_both_transports(database_url):
    async with serving(database_url, authorize=_only_alice) as service:
        answer = await service.post("traces", b"")
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert (await service.post("traces", b"", authorization="Bearer bob")).status_code == 403
        assert (await service.post("traces", b"", authorization="Bearer alice")).status_code == 200
        for header, code in {
            "": grpc.StatusCode.UNAUTHENTICATED,
            "Bearer bob": grpc.StatusCode.PERMISSION_DENIED,
        }.items():
            method = service.channel.unary_unary(
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
            )
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await method(b"", metadata=(("authorization", header),) if header else ())
            assert refused.value.code() is code


async def test_another_grpc_method_is_unimplemented(service):
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await service.channel.unary_unary("/opentelemetry.proto.collector.profiles.v1.P/Export")(
            b""
        )
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_answers_are_counted_by_transport_and_status(service):
    await service.post("traces", b"")
    await service.post("traces", b"\xff")
    await service.call("logs", b"")
    http_ok = {"transport": "http", "signal": "traces", "status": "200"}
    assert service.metric("toolfault_ingest_requests_total", **http_ok) == 1
    assert service.metric("toolfault_ingest_requests_total", **http_ok | {"status": "400"}) == 1
    grpc_ok = {"transport": "grpc", "signal": "logs", "status": "OK"}
    assert service.metric("toolfault_ingest_requests_total", **grpc_ok) == 1
    assert service.metric("toolfault_ingest_request_duration_seconds_count", transport="http") == 2


# --- what grpc is told to do -------------------------------------------------------------------------


async def test_a_gzipped_message_is_taken_over_grpc(service):
    assert await service.call("traces", a_request(), grpc.Compression.Gzip) == b""
    assert len(service.rows("SELECT 1 FROM tool_call_ok")) == 1


async def test_a_message_over_the_limit_is_refused_for_good_over_grpc(service):
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await service.call("traces", bytes(4 * 1024 * 1024 + 1))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    # With RetryInfo the client would send it again.
    assert "grpc-status-details-bin" not in dict(refused.value.trailing_metadata() or ())


async def test_more_calls_than_a_connection_may_have_at_once_wait_for_their_turn(service):
    await service.call("traces", a_request())  # the limit is told when the connection is made
    answers = await asyncio.gather(*(service.call("traces", a_request()) for _ in range(100)))
    assert answers == [b""] * 100


async def test_calls_given_up_by_the_thousand_leave_the_others_alone(service):
    address = f"127.0.0.1:{service.grpc_port}"
    async with grpc.aio.insecure_channel(
        address, options=[("grpc.use_local_subchannel_pool", 1)]
    ) as channel:
        export = channel.unary_unary(method("traces"))
        await export(a_request())
        for _ in range(20):
            given_up = [export(a_request()) for _ in range(100)]
            await asyncio.sleep(0)  # they are sent
            for call in given_up:
                call.cancel()
            assert await service.call("traces", a_request()) == b""
    assert service.metric("toolfault_ingest_queue_bytes") == 0
