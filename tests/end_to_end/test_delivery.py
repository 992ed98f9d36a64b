"""What arrives twice, in the wrong order or only in part gives the same row and the same totals."""

import uuid
from collections import Counter

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from tests.end_to_end.agent import PLANTED, SECRET
from tests.end_to_end.harness import run_agent
from tests.end_to_end.test_every_outcome import EXPECTED, LABELS


def _totals(calls):
    """Calls by outcome and code; under which tool depends on whether it was declared by then."""
    return Counter((outcome, LABELS.get(outcome, code)) for outcome, code, _, _ in calls)


@pytest.fixture
def recorded(recorder):
    """An agent's exports, spans and logs apart, with its conversation, which is also its service."""
    endpoint, exports = recorder
    conversation = f"c-{uuid.uuid4().hex}"
    run_agent(
        "agent.py",
        conversation,
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
        OTEL_SERVICE_NAME=conversation,
    )
    spans = [export for export in exports if export.path == "/v1/traces"]
    logs = [export for export in exports if export.path == "/v1/logs"]
    assert spans
    assert logs
    return conversation, spans, logs


def _rows(service, conversation):
    return {tool: row[:4] for tool, row in service.calls(conversation).items()}


def _counted(service, conversation):
    totals = Counter()
    for (_, *ending), calls in service.counted(conversation).items():
        totals[tuple(ending)] += calls
    return totals


def test_the_same_export_sent_twice_is_stored_and_counted_once(recorded, service):
    conversation, spans, logs = recorded

    for export in [*spans, *logs, *logs, *spans]:
        service.send(export)

    assert _rows(service, conversation) == EXPECTED
    assert _counted(service, conversation) == _totals(EXPECTED.values())


@pytest.mark.parametrize("first", ["spans", "events"])
def test_span_and_event_give_the_same_row_in_either_order(recorded, service, first):
    conversation, spans, logs = recorded

    for export in [*spans, *logs] if first == "spans" else [*logs, *spans]:
        service.send(export)

    assert _rows(service, conversation) == EXPECTED
    assert _counted(service, conversation) == _totals(EXPECTED.values())


def test_events_without_their_spans_give_every_failure_its_row(recorded, service):
    conversation, _, logs = recorded

    for export in logs:
        service.send(export)

    # A call that was ok or cancelled needs no event where its span is sampled.
    failures = {tool: row for tool, row in EXPECTED.items() if row[0] not in LABELS}
    assert _rows(service, conversation) == failures
    assert _counted(service, conversation) == _totals(failures.values())


def test_the_raw_message_of_an_exception_is_in_the_exception_detail_alone(recorded):
    _, spans, logs = recorded
    raw = PLANTED.encode()

    assert not any(raw in export.body for export in spans)
    assert sum(export.body.count(raw) for export in logs) == _in_detail(logs, raw)
    assert not any(SECRET.encode() in export.body for export in [*spans, *logs])


def _in_detail(logs, raw):
    """How often `raw` stands in a record of the event `toolfault.exception`."""
    records = [
        record
        for export in logs
        for resource in ExportLogsServiceRequest.FromString(export.body).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
        if record.event_name == "toolfault.exception"
    ]
    assert records
    return sum(record.SerializeToString().count(raw) for record in records)
