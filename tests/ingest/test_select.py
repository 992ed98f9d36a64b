"""Who counts, and as what: from the span lists that frameworks and instrumentations really send."""

import json
from datetime import UTC, datetime

import pytest
from tests.ingest import otlp
from tests.ingest.otlp import CLIENT, SERVER, span

from toolfault.ingest import decode, select
from toolfault.ingest.record import MAX_DURATION_US
from toolfault.reference import new

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
START = 1_796_040_000_123_456_789
ERROR = 2


def chosen(*spans, resource=otlp.RESOURCE):
    """The one batch of a trace request."""
    body = otlp.traces(*spans, resource=resource).SerializeToString()
    [batch] = select.spans(decode.traces(body, is_json=False), NOW)
    return batch


def chosen_logs(*records, resource=otlp.RESOURCE):
    body = otlp.logs(*records, resource=resource).SerializeToString()
    [batch] = select.log_records(decode.logs(body, is_json=False), NOW)
    return batch


def the_call(*spans):
    [call] = chosen(*spans).calls
    return call


ATTEMPTS = [
    {"number": 1, "start": START, "end": START + 10, "effect": "none", "waited": 0.0, "code": "UNAVAILABLE", "reason": "busy"},
    {"number": 2, "start": START + 20, "end": START + 30, "effect": "none", "waited": 0.5, "code": "UNAVAILABLE", "reason": "busy"},
]  # fmt: skip
RECORD = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "book_meeting",
    "gen_ai.tool.call.id": "call_4fZ1aB9cD2eF3gH4iJ5kL6mN",
    "gen_ai.agent.name": "scheduler",
    "gen_ai.conversation.id": "c-17",
    "toolfault.start": START,
    "toolfault.duration": 0.25,
    "toolfault.outcome": "failed",
    "toolfault.code": "UNAVAILABLE",
    "toolfault.reason": "busy",
    "toolfault.attempts": 2,
    "toolfault.reference_id": new(),
    "toolfault.action": "retry_later",
    "toolfault.transient": True,
    "toolfault.retryable": True,
    "toolfault.retry_after": 2.5,
    "toolfault.effect": "none",
    "toolfault.run_id": "0af7651916cd43dd8448eb211c80319c",
    "toolfault.budget.failures": 1,
    "toolfault.budget.limit": 2,
    "toolfault.exception_type": "httpx.ConnectError",
    "toolfault.frame": "app.tools:book_meeting",
    "toolfault.message": "The calendar is busy. Try again later.",
}


# --- our record ----------------------------------------------------------------------------------


def test_a_record_becomes_a_row_of_every_column():
    call = the_call(span(attributes=RECORD, events=[("toolfault.attempt", a) for a in ATTEMPTS]))
    assert call.started_at == datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
    assert call.received_at == NOW
    assert (call.duration_us, call.attempts, call.transient) == (250_000, 2, True)
    assert (call.trace_id, call.span_id, call.parent_span_id) == (otlp.TRACE, otlp.SPAN, None)
    assert (call.service, call.environment, call.version) == ("booking", "prod", "1.4.0")
    assert (call.tool, call.outcome, call.code) == ("book_meeting", "failed", "UNAVAILABLE")
    assert (call.reason, call.action, call.effect) == ("busy", "retry_later", "none")
    assert call.reference_id == RECORD["toolfault.reference_id"]
    assert (call.agent, call.conversation_id) == ("scheduler", "c-17")
    assert call.run_id == "0af7651916cd43dd8448eb211c80319c"
    assert (call.exception_type, call.frame) == ("httpx.ConnectError", "app.tools:book_meeting")
    assert len(call.fingerprint) == 16
    assert call.message == "The calendar is busy. Try again later."
    assert json.loads(call.attributes) == {
        "gen_ai.tool.call.id": "call_4fZ1aB9cD2eF3gH4iJ5kL6mN",
        "toolfault.attempt_list": ATTEMPTS,
        "toolfault.retry_after": 2.5,
        "toolfault.retryable": True,
        "toolfault.budget.failures": 1,
        "toolfault.budget.limit": 2,
    }


def test_span_and_event_of_a_call_give_the_same_row():
    from_span = the_call(
        # What frameworks add to a span must not make a difference: ADK overwrites error.type.
        span(
            attributes=RECORD | {"error.type": "ToolError", "gen_ai.tool.type": "FunctionTool"},
            events=[("exception", {}), *(("toolfault.attempt", a) for a in reversed(ATTEMPTS))],
            parent_span_id=b"parentid",
            start_time_unix_nano=START - 5,
            end_time_unix_nano=START + 999,
            status=ERROR,
        )
    )
    event = otlp.log(
        "toolfault.tool_error",
        RECORD | {"toolfault.attempt_list": json.dumps(ATTEMPTS)},
        time_unix_nano=START + 10**9,
        severity_number=13,
    )
    [from_event] = chosen_logs(event).calls
    assert from_event == from_span


def test_the_event_name_may_be_an_attribute():
    event = otlp.log("", RECORD | {"event.name": "toolfault.tool_error"})
    [call] = chosen_logs(event).calls
    assert call.tool == "book_meeting"


@pytest.mark.parametrize("outcome", ["ok", "cancelled"])
def test_a_tool_call_event_makes_the_row_of_a_call_without_code(outcome):
    told = RECORD | {"toolfault.outcome": outcome, "toolfault.code": "INTERNAL"}
    [call] = chosen_logs(otlp.log("toolfault.tool_call", told)).calls
    assert (call.outcome, call.code, call.fingerprint) == (outcome, None, None)


def test_a_single_attempt_of_an_ok_call_is_not_listed():
    told = RECORD | {"toolfault.outcome": "ok", "toolfault.attempts": 1}
    from_span = the_call(span(attributes=told, events=[("toolfault.attempt", ATTEMPTS[0])]))
    listed = told | {"toolfault.attempt_list": json.dumps(ATTEMPTS[:1])}
    [from_event] = chosen_logs(otlp.log("toolfault.tool_call", listed)).calls
    assert from_span == from_event
    assert json.loads(from_span.attributes) == {
        "gen_ai.tool.call.id": RECORD["gen_ai.tool.call.id"]
    }


def test_the_fingerprint_is_of_service_tool_code_reason_type_and_frame_alone():
    first = the_call(span(attributes=RECORD))
    same = the_call(
        span(attributes=RECORD | {"toolfault.message": "other", "toolfault.run_id": "r"})
    )
    assert first.fingerprint == same.fingerprint
    for key in (
        "gen_ai.tool.name",
        "toolfault.reason",
        "toolfault.exception_type",
        "toolfault.frame",
    ):
        other = the_call(span(attributes=RECORD | {key: "other"}))
        assert other.fingerprint != first.fingerprint, key


@pytest.mark.parametrize("outcome", ["declined", "cancelled", "ok"])
def test_what_is_no_error_has_no_fingerprint(outcome):
    assert the_call(span(attributes=RECORD | {"toolfault.outcome": outcome})).fingerprint is None


def test_the_record_alone_makes_a_span_a_call_whatever_the_span_is():
    attributes = {key: RECORD[key] for key in RECORD if not key.startswith("gen_ai.")}
    assert the_call(span("tools/call ping", attributes, kind=SERVER)).tool == "ping"
    assert (
        the_call(span("book.tool", attributes | {"traceloop.entity.name": "book"})).tool == "book"
    )


# --- repair ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "outcome", "code"),
    [
        ({"toolfault.outcome": "from_the_future"}, "failed", "UNAVAILABLE"),
        ({"toolfault.outcome": "from_the_future", "toolfault.code": "X"}, "failed", "INTERNAL"),
        ({"toolfault.outcome": 7}, "failed", "UNAVAILABLE"),
        ({"toolfault.code": "TEAPOT"}, "failed", "INTERNAL"),
        ({"toolfault.outcome": "declined", "toolfault.code": "TEAPOT"}, "declined", "CONFLICT"),
        (
            {"toolfault.outcome": "timed_out", "toolfault.code": "INTERNAL"},
            "timed_out",
            "UNAVAILABLE",
        ),
        ({"toolfault.outcome": "refused", "toolfault.code": ""}, "refused", "PERMISSION_DENIED"),
        ({"toolfault.outcome": "cancelled"}, "cancelled", None),
    ],
)
def test_an_outcome_or_code_outside_the_closed_sets_is_repaired(told, outcome, code):
    call = the_call(span(attributes=RECORD | told))
    assert (call.outcome, call.code) == (outcome, code)


def test_an_unknown_effect_or_action_is_what_the_rules_say():
    call = the_call(span(attributes=RECORD | {"toolfault.effect": "x", "toolfault.action": "y"}))
    assert (call.effect, call.action) == ("unknown", "check_before_retry")


@pytest.mark.parametrize(
    ("told", "microseconds"),
    [
        (float("nan"), 5_000_000),
        (float("inf"), 5_000_000),
        (-3.0, 0),
        (1e300, MAX_DURATION_US),
        ("fast", 5_000_000),
        (2, 2_000_000),
    ],
)
def test_a_duration_that_makes_no_sense_is_taken_from_the_span(told, microseconds):
    times = {"start_time_unix_nano": START, "end_time_unix_nano": START + 5 * 10**9}
    call = the_call(span(attributes=RECORD | {"toolfault.duration": told}, **times))
    assert call.duration_us == microseconds


def test_names_are_cut_to_the_sizes_of_the_conventions():
    told = RECORD | {"gen_ai.tool.name": "t" * 500, "toolfault.reason": "r" * 500}
    told |= {"toolfault.message": "m" * 500, "toolfault.evidence": "e" * 9000}
    call = the_call(span(attributes=told))
    sizes = len(call.tool), len(call.reason), len(call.message)
    assert sizes == (100, 200, 300)
    assert len(json.loads(call.attributes)["toolfault.evidence"]) == 4096


def test_nuls_are_replaced():
    assert the_call(span(attributes=RECORD | {"toolfault.message": "a\0b"})).message == "a\ufffdb"


def test_attributes_outside_the_allow_list_are_not_stored():
    told = RECORD | {"gen_ai.tool.call.arguments": "private", "toolfault.else": "private"}
    assert "private" not in repr(the_call(span(attributes=told)))


def test_a_span_needs_valid_ids_but_a_log_record_does_not():
    assert chosen(span(attributes=RECORD, span_id=bytes(8))).refused == {"invalid_id": 1}
    [log] = chosen_logs(otlp.log("toolfault.log", body="x", trace_id=b"short", span_id=b"")).logs
    assert (log.trace_id, log.span_id) == (bytes(16), bytes(8))


def test_a_resource_without_names_gets_the_names_of_unknown_ones():
    [call] = chosen(span(attributes=RECORD), resource={}).calls
    assert (call.service, call.environment, call.version) == ("unknown_service", "unknown", None)


def test_the_deprecated_environment_is_read():
    [call] = chosen(span(attributes=RECORD), resource={"deployment.environment": "staging"}).calls
    assert call.environment == "staging"


# --- spans of processes without the library ---------------------------------------------------------

GEN_AI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}
MCP = {"mcp.method.name": "tools/call", **GEN_AI}


@pytest.mark.parametrize(
    "told",
    [
        span("execute_tool book", GEN_AI),  # the conventions; AutoGen, agent-framework
        span("execute_tool book"),  # a span of ADK that never closed well
        span("execute_tool book", GEN_AI | {"gen_ai.tool.type": "FunctionTool"}),  # ADK
        span(
            "running tool", {"gen_ai.tool.name": "book", "gen_ai.tool.call.id": "c"}
        ),  # older Pydantic AI
        span("tools/call book", MCP, kind=SERVER),  # mcp, fastmcp
        span("tools/call book", {"mcp.method.name": "tools/call"}, kind=SERVER),
        span("book", {"openinference.span.kind": "TOOL", "tool.name": "book"}),
        span("book", {"openinference.span.kind": "TOOL"}),
        span("book.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "book"}),
    ],
    ids=lambda told: f"{told['name']} {sorted(told['attributes'])}",
)
def test_a_tool_span_without_the_library_counts(told):
    call = the_call(told)
    assert (call.tool, call.outcome, call.code, call.attempts) == ("book", "ok", None, 1)


@pytest.mark.parametrize(
    "told",
    [
        span("GET /"),
        span("invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}),
        span("chat gpt", {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "book"}),
        span("execute_task tools", {"traceloop.span.kind": "task"}),
        span("agent", {"openinference.span.kind": "AGENT"}),
        span("tools/call book", MCP, kind=CLIENT),  # fastmcp's client
        span("MCP send tools/call book", MCP, kind=CLIENT),  # mcp's client
        span("execute_tool book", GEN_AI, kind=CLIENT),
        span("execute_tool (merged)", GEN_AI | {"gen_ai.tool.name": "(merged tools)"}),  # ADK
        span("execute_tool book", GEN_AI | {"toolfault.sdk": "0.1.0"}),  # its event counts
        span("tools/list", {"mcp.method.name": "tools/list"}, kind=SERVER),
    ],
    ids=lambda told: f"{told['name']} {sorted(told['attributes'])}",
)
def test_these_spans_are_acknowledged_and_ignored(told):
    batch = chosen(told)
    assert (batch.calls, batch.ignored) == ([], 1)


def test_adk_over_mcp_counts_once_in_each_service():
    ids = [bytes([i]) * 8 for i in (1, 2, 3)]
    agent = [
        span("execute_tool book", GEN_AI, span_id=ids[0]),
        span("MCP send tools/call book", MCP, kind=CLIENT, span_id=ids[1], parent_span_id=ids[0]),
    ]
    server = span("tools/call book", MCP, kind=SERVER, span_id=ids[2], parent_span_id=ids[1])
    assert [call.span_id for call in chosen(*agent).calls] == [ids[0]]
    [call] = chosen(server, resource={"service.name": "calendar-mcp"}).calls
    assert (call.service, call.parent_span_id) == ("calendar-mcp", ids[1])


def test_fastmcp_in_one_process_counts_once():
    spans = [
        span("tools/call book", MCP, kind=CLIENT, span_id=b"\1" * 8),
        span("MCP send tools/call book", MCP, kind=CLIENT, span_id=b"\2" * 8),
        span("tools/call book", MCP, kind=SERVER, span_id=b"\3" * 8),
    ]
    assert [call.span_id for call in chosen(*spans).calls] == [b"\3" * 8]


@pytest.mark.parametrize(
    ("error_type", "outcome", "code", "action"),
    [
        ("RATE_LIMITED", "failed", "RATE_LIMITED", "stop_and_tell_user"),
        ("429", "failed", "RATE_LIMITED", "stop_and_tell_user"),
        ("503", "failed", "UNAVAILABLE", "check_before_retry"),
        ("404", "failed", "NOT_FOUND", "ask_user"),
        ("403", "failed", "PERMISSION_DENIED", "stop_and_tell_user"),
        ("409", "failed", "CONFLICT", "choose_alternative"),
        ("422", "failed", "INVALID_ARGUMENT", "fix_arguments"),
        ("504", "timed_out", "UNAVAILABLE", "check_before_retry"),
        ("TimeoutError", "timed_out", "UNAVAILABLE", "check_before_retry"),
        ("httpx.ReadTimeout", "timed_out", "UNAVAILABLE", "check_before_retry"),
        (
            "pydantic_core._pydantic_core.ValidationError",
            "invalid",
            "INVALID_ARGUMENT",
            "fix_arguments",
        ),
        ("-32602", "invalid", "INVALID_ARGUMENT", "fix_arguments"),
        ("asyncio.exceptions.CancelledError", "cancelled", None, "none"),
        ("ConnectionRefusedError", "failed", "UNAVAILABLE", "check_before_retry"),
        ("ValueError", "failed", "INTERNAL", "stop_and_tell_user"),
        ("tool_error", "failed", "INTERNAL", "stop_and_tell_user"),
        ("_OTHER", "failed", "INTERNAL", "stop_and_tell_user"),
        ("500", "failed", "INTERNAL", "stop_and_tell_user"),
    ],
)
def test_an_error_type_is_mapped(error_type, outcome, code, action):
    call = the_call(span(attributes=GEN_AI | {"error.type": error_type}, status=ERROR))
    assert (call.outcome, call.code, call.action) == (outcome, code, action)
    assert json.loads(call.attributes)["error.type"] == error_type


def test_an_error_without_a_type_is_told_by_its_exception_event():
    told = [("exception", {"exception.type": "app.BookingError", "exception.message": "secret"})]
    call = the_call(span(attributes=GEN_AI, status=ERROR, events=told))
    assert (call.outcome, call.code, call.exception_type) == (
        "failed",
        "INTERNAL",
        "app.BookingError",
    )
    assert (call.reason, call.reference_id) == ("unmapped_failure", None)
    assert "secret" not in repr(call)


RESULT = "gen_ai.tool.call.result"
ENVELOPE = {
    "status": "error",
    "error": {
        "code": "CONFLICT",
        "reason": "slot_taken",
        "message": "The slot is taken (ref 938N-KRKA-S18P).",
        "action": "choose_alternative",
        "retryable": True,
        "retry_after": 3,
        "field": "slot",
        "ref": "938N-KRKA-S18P",
    },
}


@pytest.mark.parametrize(
    "attributes",
    [
        {RESULT: json.dumps(ENVELOPE)},
        {"gcp.vertex.agent.tool_response": json.dumps({"result": json.dumps(ENVELOPE)})},
        {"output.value": json.dumps(ENVELOPE)},
        {"traceloop.entity.output": json.dumps({"output": {"kwargs": {"content": ENVELOPE}}})},
    ],
    ids=list,
)
def test_an_envelope_in_a_result_is_an_error_though_the_span_is_fine(attributes):
    call = the_call(span(attributes=GEN_AI | attributes))
    assert (call.outcome, call.code, call.reason) == ("failed", "CONFLICT", "slot_taken")
    assert (call.action, call.reference_id) == ("choose_alternative", "938N-KRKA-S18P")
    assert call.message == "The slot is taken (ref 938N-KRKA-S18P)."
    kept = json.loads(call.attributes)
    assert kept == {
        "toolfault.field": "slot",
        "toolfault.retryable": True,
        "toolfault.retry_after": 3.0,
    }


@pytest.mark.parametrize(
    ("result", "outcome", "code", "reason"),
    [
        ({"isError": True, "content": [{"type": "text", "text": "no"}]}, "failed", "INTERNAL", "returned_error"),
        ({"is_error": True}, "failed", "INTERNAL", "returned_error"),
        ("An internal error occurred.", "failed", "INTERNAL", "generic_error"),
        ({"result": "An internal error occurred."}, "failed", "INTERNAL", "generic_error"),
        ({"status": "error", "error": "boom"}, "failed", "INTERNAL", "returned_error"),
        ({"status": "declined", "output": "<data>"}, "declined", "CONFLICT", None),
        ({"status": "ok", "output": "no error here"}, "ok", None, None),
        ({"isError": False}, "ok", None, None),
        ("error: none", "ok", None, None),
        ({"rows": [{"error": None}]}, "ok", None, None),
    ],
)  # fmt: skip
def test_returned_errors_are_recognised(result, outcome, code, reason):
    told = result if isinstance(result, str) else json.dumps(result)
    call = the_call(span(attributes=GEN_AI | {RESULT: told}))
    assert (call.outcome, call.code, call.reason) == (outcome, code, reason)


def test_strands_tells_an_error_by_its_status_attribute():
    assert the_call(span(attributes=GEN_AI | {"gen_ai.tool.status": "error"})).outcome == "failed"


# --- events and log records ---------------------------------------------------------------------------


def test_a_run_event_is_stored_with_its_label():
    told = {"gen_ai.tool.name": "book", "toolfault.reference_id": "938N-KRKA-S18P"}
    batch = chosen_logs(otlp.log("toolfault.budget_exhausted", told, time_unix_nano=START))
    [event] = batch.events
    assert (event.event_name, event.label) == ("toolfault.budget_exhausted", "book")
    assert (event.reference_id, len(event.digest)) == ("938N-KRKA-S18P", 8)
    assert event.occurred_at == datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)


def test_a_model_step_is_labelled_by_its_model_and_counts_its_attempts():
    told = {"gen_ai.request.model": "m-1", "toolfault.count": 3, "toolfault.result": "exhausted"}
    [event] = chosen_logs(otlp.log("toolfault.model_call", told)).events
    assert (event.label, event.amount, event.outcome) == ("m-1", 3, "exhausted")


def test_a_run_limit_is_labelled_by_its_agent():
    told = {"gen_ai.agent.name": "scheduler", "toolfault.limit": 20}
    [event] = chosen_logs(otlp.log("toolfault.run_limit_exceeded", told)).events
    assert (event.label, json.loads(event.attributes)["toolfault.limit"]) == ("scheduler", 20)


def test_a_declaration_keeps_what_people_need_to_reach_its_owner():
    told = {
        "gen_ai.tool.name": "book",
        "toolfault.writes": True,
        "toolfault.idempotent": False,
        "toolfault.owner": "Calendar team",
        "toolfault.owner_contact": "calendar@example.com",
        "toolfault.runbook": "https://wiki.corp.internal/runbooks/book",
        "toolfault.reasons": '{"slot_taken": "That slot is taken."}',
    }
    [event] = chosen_logs(otlp.log("toolfault.tool_declared", told)).events
    declared = json.loads(event.attributes)
    assert declared["toolfault.owner_contact"] == "calendar@example.com"
    assert declared["toolfault.runbook"] == "https://wiki.corp.internal/runbooks/book"
    assert declared["toolfault.reasons"] == {"slot_taken": "That slot is taken."}
    assert (declared["toolfault.writes"], declared["toolfault.idempotent"]) == (True, False)


def test_exception_detail_keeps_message_and_stack():
    told = {
        "exception.type": "app.Boom",
        "exception.message": "it broke",
        "exception.stacktrace": "x" * 9000,
        "toolfault.reference_id": "938N-KRKA-S18P",
    }
    [log] = chosen_logs(otlp.log("toolfault.exception", told)).logs
    assert (log.exception_type, log.body, len(log.stacktrace)) == ("app.Boom", "it broke", 8192)


def test_a_record_stamped_with_a_reference_is_stored_and_another_is_not():
    stamped = otlp.log("", {"toolfault.reference_id": "a1b2c3d4"}, body={"text": ["one", 2]})
    batch = chosen_logs(stamped, otlp.log("", {}, body="plain"), otlp.log("other.event", {}))
    [log] = batch.logs
    assert (log.reference_id, log.event_name, batch.ignored) == ("a1b2c3d4", None, 2)
    assert json.loads(log.body) == {"text": ["one", 2]}


def test_the_time_of_a_record_is_its_own_never_the_arrival():
    [log] = chosen_logs(otlp.log("toolfault.log", observed_time_unix_nano=START)).logs
    assert log.occurred_at == datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
    [log] = chosen_logs(otlp.log("toolfault.log")).logs
    assert log.occurred_at == datetime(1970, 1, 1, tzinfo=UTC)


def test_the_digest_tells_records_of_one_moment_apart_and_is_the_same_in_json():
    told = {"toolfault.logger": "app", "b": 1, "a": "x"}
    first, second = (otlp.log("toolfault.log", told, body=body) for body in ("one", "two"))
    logs = chosen_logs(first, second).logs
    assert logs[0].digest != logs[1].digest
    attributes = [
        {"key": "toolfault.logger", "value": {"stringValue": "app"}},
        {"key": "b", "value": {"intValue": "1"}},
        {"key": "a", "value": {"stringValue": "x"}},
    ]
    record = {
        "eventName": "toolfault.log",
        "body": {"stringValue": "one"},
        "attributes": attributes,
    }
    record |= {"traceId": otlp.TRACE.hex(), "spanId": otlp.SPAN.hex()}
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
    [batch] = select.log_records(decode.logs(body, is_json=True), NOW)
    assert batch.logs[0].digest == logs[0].digest


def test_a_large_request_is_written_in_several_batches(monkeypatch):
    monkeypatch.setattr(select, "MAX_BATCH_ROWS", 2)
    spans = [span(attributes=RECORD, span_id=bytes([i] * 8)) for i in range(1, 6)]
    body = otlp.traces(*spans).SerializeToString()
    batches = list(select.spans(decode.traces(body, is_json=False), NOW))
    assert [len(batch.calls) for batch in batches] == [2, 2, 1]
