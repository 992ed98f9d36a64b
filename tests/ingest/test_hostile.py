import json

import grpc
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.ingest.hostile import CASES, JSON

OVER_GRPC = [case for case in CASES if case.over_grpc]
RESPONSES = {"traces": ExportTraceServiceResponse, "logs": ExportLogsServiceResponse}
CODES = {
    200: grpc.StatusCode.OK,
    400: grpc.StatusCode.INVALID_ARGUMENT,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
}


def test_the_suite_has_hundreds_of_requests_in_both_encodings_and_transports():
    assert len(CASES) >= 400
    assert len([case for case in CASES if case.content_type == JSON]) >= 90
    assert len(OVER_GRPC) >= 250


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_hostile_http_request_gets_the_status_it_deserves(shared, case):
    headers = {**case.headers}
    if case.content_type is not None:
        headers["content-type"] = case.content_type
    path = case.path or f"/v1/{case.signal}"
    answer = shared.client.request(case.method, path, content=case.body, headers=headers)
    assert answer.status_code == case.status
    if case.method == "HEAD":
        return
    is_json = (case.content_type or "").strip().lower().startswith("application/json")
    if case.status == 200:
        assert _rejected(answer.content, case.signal, is_json) == case.rejected
    else:
        assert _message(answer.content, is_json)


@pytest.mark.parametrize("case", OVER_GRPC, ids=[case.name for case in OVER_GRPC])
def test_a_hostile_grpc_request_gets_the_same_answer(shared, case):
    code, content = shared.call(case.signal, case.body)
    assert code is CODES[case.status]
    if case.status == 200:
        assert _rejected(content, case.signal, is_json=False) == case.rejected


def test_after_all_that_the_service_is_well_and_its_counts_add_up(shared):
    assert shared.service.pipeline.problem() is None
    assert shared.metric("toolfault_ingest_queue_bytes") == 0
    assert (
        shared.metric("toolfault_ingest_refused_total", signal="logs", reason="not_storable") == 0
    )
    [(totals,)] = shared.rows("SELECT coalesce(sum(calls), 0) FROM call_total")
    [(late,)] = shared.rows(
        "SELECT coalesce(sum(amount), 0) FROM event_total WHERE metric = 'toolfault_late_calls'"
    )
    [(rows,)] = shared.rows("SELECT count(*) FROM tool_call_all")
    assert totals + late == rows


def _rejected(content, signal, is_json):
    if is_json:
        partial = json.loads(content).get("partialSuccess", {})
        assert bool(partial) is bool(partial.get("errorMessage"))
        return int(partial.get("rejectedSpans", 0))
    answer = RESPONSES[signal].FromString(content)
    if not answer.HasField("partial_success"):
        return 0
    assert answer.partial_success.error_message
    partial = answer.partial_success
    return partial.rejected_spans if signal == "traces" else partial.rejected_log_records


def _message(content, is_json):
    return json.loads(content)["message"] if is_json else Status.FromString(content).message
