"""Any bytes at all: a status of the table, never a 5xx, and nothing uncaught."""

import json

import grpc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ingest import otlp
from tests.ingest.hostile import KEYS

PROTOBUF, JSON = {"content-type": "application/x-protobuf"}, {"content-type": "application/json"}
ALLOWED = {200, 400}
ALLOWED_CODES = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}
fuzzed = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# --- well formed, with any content ----------------------------------------------------------------

values = st.recursive(
    st.text() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.booleans() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from([*KEYS, "toolfault.outcome", "gen_ai.operation.name"]) | st.text(max_size=20)
attributes = st.dictionaries(
    keys, values | st.sampled_from(["ok", "failed", "execute_tool"]), max_size=12
)
ids = st.binary(min_size=16, max_size=16) | st.binary(max_size=20)
times = st.integers(0, 2**64 - 1)
events = st.sampled_from(["toolfault.tool_error", "toolfault.exception", "toolfault.x"]) | st.text()
spans = st.builds(
    lambda name, told, trace_id, start, end, status: otlp.span(
        name, told, trace_id=trace_id, start_time_unix_nano=start, end_time_unix_nano=end, status=status
    ),
    st.sampled_from(["execute_tool x", "tools/call y"]) | st.text(), attributes, ids, times, times,
    st.integers(-(2**31), 2**31 - 1),
)  # fmt: skip
logs = st.builds(
    lambda name, told, body, trace_id, at, severity: otlp.log(
        name, told, body=body, trace_id=trace_id, time_unix_nano=at, severity_number=severity
    ),
    events, attributes, values, ids, times, st.integers(-5, 30),
)  # fmt: skip
requests = st.one_of(
    st.tuples(st.just("traces"), st.lists(spans, max_size=4), attributes),
    st.tuples(st.just("logs"), st.lists(logs, max_size=4), attributes),
)


def _encoded(signal, records, resource):
    make = otlp.traces if signal == "traces" else otlp.logs
    return make(*records, resource=resource).SerializeToString()


@fuzzed
@given(requests)
def test_any_well_formed_request_is_taken_over_both_transports(shared, request_parts):
    body = _encoded(*request_parts)
    assert shared.post(f"/v1/{request_parts[0]}", body, PROTOBUF).status_code == 200
    assert shared.call(request_parts[0], body)[0] is grpc.StatusCode.OK


@fuzzed
@given(requests, st.data())
def test_a_damaged_request_is_taken_or_refused_never_a_fault(shared, request_parts, data):
    signal, body = request_parts[0], bytearray(_encoded(*request_parts))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    assert shared.post(f"/v1/{signal}", bytes(body), PROTOBUF).status_code in ALLOWED
    assert shared.call(signal, bytes(body))[0] in ALLOWED_CODES


# --- JSON ------------------------------------------------------------------------------------------

shaped = st.sampled_from(
    ["resourceSpans", "resourceLogs", "resource", "scopeSpans", "scopeLogs", "scope", "spans",
     "logRecords", "traceId", "spanId", "name", "kind", "startTimeUnixNano", "attributes", "key",
     "value", "stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "arrayValue",
     "kvlistValue", "values", "events", "status", "code", "body", "eventName", "severityNumber"]
)  # fmt: skip
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["ab" * 16, "ab" * 8]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(shaped | st.text(), inner, max_size=6)
    ),
    max_leaves=30,
)


def _nested(signal, record):
    resources, scopes, records = {
        "traces": ("resourceSpans", "scopeSpans", "spans"),
        "logs": ("resourceLogs", "scopeLogs", "logRecords"),
    }[signal]
    return {resources: [{scopes: [{records: [record]}]}]}


@fuzzed
@given(st.sampled_from(["traces", "logs"]), documents, st.booleans())
def test_any_json_is_taken_or_refused_never_a_fault(shared, signal, document, nested):
    told = _nested(signal, document) if nested else document
    assert shared.post(f"/v1/{signal}", json.dumps(told).encode(), JSON).status_code in ALLOWED


@fuzzed
@given(
    st.sampled_from(["traces", "logs", "metrics"]),
    st.binary(max_size=300),
    st.sampled_from([PROTOBUF, JSON]),
)
def test_any_bytes_are_taken_or_refused_never_a_fault(shared, signal, body, headers):
    assert shared.post(f"/v1/{signal}", body, headers).status_code in ALLOWED
    assert shared.call(signal, body)[0] in ALLOWED_CODES


def test_after_all_that_nothing_was_refused_by_the_database(shared):
    for signal in ("traces", "logs"):
        labels = {"signal": signal, "reason": "not_storable"}
        assert shared.metric("toolfault_ingest_refused_total", **labels) == 0
    assert shared.service.pipeline.problem() is None
