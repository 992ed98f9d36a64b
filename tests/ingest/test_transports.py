import gzip
import time

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.ingest import otlp


def record(**told):
    start = time.time_ns()
    base = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}
    base |= {"toolfault.start": start, "toolfault.duration": 0.25, "toolfault.outcome": "ok"}
    base |= {"toolfault.attempts": 1, "toolfault.effect": "applied"}
    return base | told


async def test_a_span_sent_over_http_is_committed_when_the_answer_comes(service):
    body = otlp.traces(otlp.span(attributes=record())).SerializeToString()
    answer = await service.post("traces", body)
    assert (answer.status_code, answer.content) == (200, b"")
    [row] = service.rows("SELECT service, environment, tool, duration_us FROM tool_call_ok")
    assert row == ("booking", "prod", "book", 250_000)


async def test_a_span_sent_over_grpc_is_committed_when_the_answer_comes(service):
    body = otlp.traces(otlp.span(attributes=record())).SerializeToString()
    answer = ExportTraceServiceResponse.FromString(
        await service.call("traces", body, grpc.Compression.Gzip)
    )
    assert not answer.HasField("partial_success")
    assert len(service.rows("SELECT 1 FROM tool_call_ok")) == 1


async def test_a_body_may_be_gzip(service):
    body = otlp.traces(otlp.span(attributes=record())).SerializeToString()
    answer = await service.post("traces", gzip.compress(body), content_encoding="gzip")
    assert answer.status_code == 200
    assert len(service.rows("SELECT 1 FROM tool_call_ok")) == 1
