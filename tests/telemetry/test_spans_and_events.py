"""What leaves the process for a call: one span, its events, and never an exception's text."""

import asyncio
import json
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider, sampling
from opentelemetry.trace import SpanKind, StatusCode

import toolfault
from toolfault import ToolFailure, ToolNotFoundError, ToolRefusal, guard, handlers, never_ran
from toolfault.telemetry import spans

PLANTED = "planted-raw-text-7f3a"


@guard("book", owner="calendar team", owner_contact="#calendar", runbook="https://runbooks.example/book",
       reasons={"calendar_down": "The calendar is down; nothing was booked."})  # fmt: skip
def book(error=None):
    if error is not None:
        raise error
    return "m-7781"


def test_an_ok_call_is_one_span_and_no_event(exported):
    with toolfault.run("conversation-1", agent="scheduler", run_id="run-1"):
        book()
    (span,) = exported.spans
    assert span.name == "execute_tool book"
    assert span.kind is SpanKind.INTERNAL
    assert span.status.status_code is StatusCode.UNSET
    attributes = dict(span.attributes)
    assert attributes.pop("toolfault.start") == span.start_time
    assert attributes.pop("toolfault.duration") == pytest.approx(
        (span.end_time - span.start_time) / 1e9, abs=1e-6
    )
    assert attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "scheduler",
        "gen_ai.conversation.id": "conversation-1",
        "toolfault.outcome": "ok",
        "toolfault.attempts": 1,
        "toolfault.effect": "applied",
        "toolfault.run_id": "run-1",
    }
    assert span.events == ()
    assert exported.named("toolfault.tool_error") == exported.named("toolfault.tool_call") == []


def test_a_failed_call_says_the_same_on_span_and_event(exported):
    with toolfault.run("conversation-1", run_id="run-1"):
        answer = book(ToolFailure("book", "calendar_down", transient=True, retry_after=2.0))
    (span,) = exported.spans
    (event,) = exported.named("toolfault.tool_error")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "The service is not available at the moment."
    told = dict(span.attributes)
    assert told["error.type"] == "UNAVAILABLE"
    record = {k: v for k, v in told.items() if k.startswith("toolfault.")}
    reference = record.pop("toolfault.reference_id")
    del record["toolfault.start"], record["toolfault.duration"]
    assert toolfault.reference.is_valid(reference)
    assert record == {
        "toolfault.outcome": "failed",
        "toolfault.code": "UNAVAILABLE",
        "toolfault.reason": "calendar_down",
        "toolfault.attempts": 1,
        "toolfault.action": "retry_later",
        "toolfault.transient": True,
        "toolfault.retryable": True,
        "toolfault.retry_after": 2.0,
        "toolfault.effect": "none",
        "toolfault.run_id": "run-1",
        "toolfault.budget.failures": 1,
        "toolfault.budget.limit": 2,
        "toolfault.frame": f"{__name__}:book",
        "toolfault.message": answer["error"]["message"],
        "toolfault.user_message": "The calendar is down; nothing was booked.",
    }
    (attempt,) = span.events
    (listed,) = json.loads(event.attributes["toolfault.attempt_list"])
    assert attempt.name == "toolfault.attempt"
    assert dict(attempt.attributes) == listed
    assert listed["number"] == 1
    assert (listed["code"], listed["reason"], listed["effect"]) == (
        "UNAVAILABLE",
        "calendar_down",
        "none",
    )
    shared = {k: v for k, v in event.attributes.items() if k != "toolfault.attempt_list"}
    assert told.pop("gen_ai.tool.type") == "function"  # of the span alone
    assert shared == told
    assert (event.trace_id, event.span_id) == (span.context.trace_id, span.context.span_id)
    assert event.severity_number.value == 13


@pytest.mark.parametrize(
    ("error", "severity", "status", "error_type"),
    [
        (KeyError(), 17, StatusCode.ERROR, "INTERNAL"),
        (TimeoutError(), 13, StatusCode.ERROR, "UNAVAILABLE"),
        (toolfault.ToolNotPermittedError("book"), 13, StatusCode.ERROR, "PERMISSION_DENIED"),
        (toolfault.ToolArgumentValidationError("book"), 13, StatusCode.ERROR, "INVALID_ARGUMENT"),
        (ToolRefusal("book", "taken", "Taken."), 9, StatusCode.UNSET, None),
    ],
)
def test_severity_status_and_error_type_by_kind(exported, error, severity, status, error_type):
    with toolfault.run("c"):
        book(error)
    (span,) = exported.spans
    (event,) = exported.named("toolfault.tool_error")
    assert event.severity_number.value == severity
    assert span.status.status_code is status
    assert span.attributes.get("error.type") == error_type
    assert event.attributes.get("error.type") == error_type


def test_a_cancelled_call_has_no_code_no_reference_and_an_unset_status(exported):
    with pytest.raises(asyncio.CancelledError):
        book(asyncio.CancelledError())
    (span,) = exported.spans
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes["toolfault.outcome"] == "cancelled"
    assert not {"error.type", "toolfault.code", "toolfault.reference_id"} & set(span.attributes)
    assert exported.named("toolfault.tool_error") == []


@pytest.mark.parametrize("on_error", ["envelope", "raise"])
@pytest.mark.parametrize(
    "error",
    [
        KeyError(PLANTED),
        ConnectionRefusedError(PLANTED),
        TimeoutError(PLANTED),
        ValueError(PLANTED),
        ExceptionGroup(PLANTED, [OSError(PLANTED)]),
    ],
)
def test_no_exception_text_leaves_but_in_the_exception_detail(exported, error, on_error):
    @guard("leaky", on_error=on_error)
    def leaky():
        try:
            raise RuntimeError(PLANTED)
        except RuntimeError as cause:
            raise error from cause

    with trace.use_span(
        exported.tracer_provider.get_tracer("app").start_span("turn"), end_on_exit=True
    ):
        try:
            leaky()
        except ToolFailure:
            pass
        except toolfault.ToolTimedOutError:
            pass
    details = exported.named("toolfault.exception")
    assert len(exported.spans) == 2
    for span in exported.spans:
        assert PLANTED not in span.to_json()
    for event in exported.events:
        assert (PLANTED in repr(vars(event))) == (event in details)


def test_a_note_on_an_error_does_not_reach_the_frameworks_span(exported):
    @guard("book", on_error="raise")
    def book():
        error = ToolFailure("book", "down", transient=True)
        error.add_note(PLANTED)
        raise error

    tracer = exported.tracer_provider.get_tracer("framework")
    with (
        pytest.raises(ToolFailure),
        tracer.start_as_current_span("execute_tool book", record_exception=True),
    ):
        book()
    (span,) = exported.spans
    assert any(event.name == "exception" for event in span.events)
    assert PLANTED not in span.to_json()


def test_the_exception_detail_of_a_bug_has_type_message_and_frames(exported):
    def inner():
        raise KeyError("slot 10:00, password=" + "not-a-real-one")

    @guard("buggy")
    def buggy():
        inner()

    answer = buggy()
    (detail,) = exported.named("toolfault.exception")
    (event,) = exported.named("toolfault.tool_error")
    assert detail.attributes["toolfault.reference_id"] == answer["error"]["ref"]
    assert detail.attributes["exception.type"] == "KeyError"
    assert "slot 10:00" in detail.attributes["exception.message"]
    stack = detail.attributes["exception.stacktrace"]
    assert "not-a-real-one" not in detail.attributes["exception.message"] + stack
    assert f"{__file__}:" in stack
    assert "inner" in stack
    assert len(stack) <= 8192
    assert event.attributes["toolfault.frame"] == f"{__name__}:inner"
    assert event.attributes["toolfault.exception_type"] == "KeyError"
    assert (detail.trace_id, detail.span_id) == (event.trace_id, event.span_id)


def test_a_typed_failure_that_is_not_internal_sends_no_detail(exported):
    book(ToolFailure("book", "calendar_down", transient=True))
    assert exported.named("toolfault.exception") == []


@pytest.mark.parametrize(("level", "has_detail", "has_message"), [("full", True, True), ("type", True, False), ("off", False, False), ("nonsense", True, False)])  # fmt: skip
def test_how_much_of_an_exception_is_sent_can_be_said(
    exported, monkeypatch, level, has_detail, has_message
):
    monkeypatch.setenv("TOOLFAULT_EXCEPTION_DETAIL", level)
    book(KeyError("x"))
    details = exported.named("toolfault.exception")
    assert bool(details) is has_detail
    assert any("exception.message" in detail.attributes for detail in details) is has_message


def test_a_framework_span_of_the_call_is_enriched_and_no_second_one_opened(exported):
    tracer = exported.tracer_provider.get_tracer("framework")
    with tracer.start_as_current_span("execute_tool book") as framework_span:
        book(ToolFailure("book", "calendar_down", transient=True))
        assert framework_span.is_recording()
    (span,) = exported.spans
    assert span.instrumentation_scope.name == "framework"
    assert span.attributes["toolfault.code"] == "UNAVAILABLE"
    assert span.attributes["gen_ai.tool.name"] == "book"
    assert span.attributes["gen_ai.tool.type"] == "function"
    assert span.attributes["toolfault.start"] == span.start_time
    (event,) = exported.named("toolfault.tool_error")
    assert event.span_id == span.context.span_id


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("tools/call book", {}),
        ("anything", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}),
        ("book", {"openinference.span.kind": "TOOL", "tool.name": "book"}),
        ("book.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "book"}),
    ],
)
def test_every_spelling_of_a_tool_span_is_known(exported, name, attributes):
    tracer = exported.tracer_provider.get_tracer("framework")
    with tracer.start_as_current_span(name, attributes=attributes):
        book()
    assert len(exported.spans) == 1


def test_the_type_of_tool_that_a_framework_tells_is_kept(exported):
    tracer = exported.tracer_provider.get_tracer("framework")
    told = {"gen_ai.tool.type": "datastore"}
    with tracer.start_as_current_span("execute_tool book", attributes=told):
        book()
    (span,) = exported.spans
    assert span.attributes["gen_ai.tool.type"] == "datastore"


def test_a_span_of_another_kind_or_tool_is_left_alone(exported):
    tracer = exported.tracer_provider.get_tracer("framework")
    with (
        tracer.start_as_current_span("invoke_agent a"),
        tracer.start_as_current_span("execute_tool other"),
    ):
        book()
    assert [s.name for s in exported.spans] == [
        "execute_tool book",
        "execute_tool other",
        "invoke_agent a",
    ]
    assert "toolfault.outcome" not in exported.spans[1].attributes


def test_a_tool_that_calls_a_tool_of_its_own_name_has_two_spans(exported):
    @guard("book")
    def outer():
        return book()

    outer()
    assert [span.name for span in exported.spans] == ["execute_tool book", "execute_tool book"]
    assert exported.spans[0].parent.span_id == exported.spans[1].context.span_id


def test_an_unsampled_call_is_told_by_its_event(exported):
    spans.use_provider(TracerProvider(sampler=sampling.ALWAYS_OFF))
    book()
    (event,) = exported.named("toolfault.tool_call")
    assert exported.spans == ()
    assert event.attributes["toolfault.outcome"] == "ok"
    assert event.trace_id != 0
    assert event.span_id != 0


def test_without_a_tracer_provider_the_event_mints_its_ids(exported):
    spans.use_provider(None)
    book()
    book()
    first, second = exported.named("toolfault.tool_call")
    assert 0 not in (first.trace_id, first.span_id)
    assert first.trace_id != second.trace_id


def test_an_event_without_a_span_of_its_own_stays_in_the_callers_trace(exported):
    parent = exported.tracer_provider.get_tracer("app").start_span("turn")
    spans.use_provider(trace.NoOpTracerProvider())
    with trace.use_span(parent):
        book()
    (event,) = exported.named("toolfault.tool_call")
    assert event.trace_id == parent.get_span_context().trace_id
    assert event.span_id != parent.get_span_context().span_id


def test_what_is_no_typed_error_is_refused_for_a_call_that_never_ran(exported):
    with pytest.raises(TypeError, match=r"KeyError\('pay'\) is no typed error; give a ToolNotF"):
        never_ran(KeyError("pay"))
    assert exported.spans == ()


def test_a_call_that_never_ran_has_no_attempts_and_a_reference(exported):
    answer = never_ran(ToolNotFoundError("bok_meeting"), call_id="call-1")
    (span,) = exported.spans
    assert span.name == "execute_tool bok_meeting"
    assert span.attributes["toolfault.attempts"] == 0
    assert span.attributes["toolfault.outcome"] == "not_found"
    assert span.attributes["gen_ai.tool.call.id"] == "call-1"
    assert span.attributes["toolfault.reference_id"] == answer["error"]["ref"]
    assert span.events == ()
    (unregistered,) = exported.named("toolfault.unregistered_tool")
    assert unregistered.attributes["gen_ai.tool.name"] == "bok_meeting"
    assert "toolfault.frame" not in span.attributes


def test_a_secret_in_a_name_that_the_model_made_up_does_not_leave_the_process(exported):
    secret = "sk-" + "proj-f4keTok99f4keTok99f4keTok99"
    never_ran(ToolNotFoundError(f"fetch_{secret}"))
    never_ran(ToolNotFoundError(f"login password={secret}"))
    assert secret not in exported.everything()


def test_a_long_name_that_the_model_made_up_is_cut(exported):
    never_ran(ToolNotFoundError("book" * 1_000))
    (event,) = exported.named("toolfault.unregistered_tool")
    assert len(event.attributes["gen_ai.tool.name"]) <= 200


def test_a_denied_call_of_a_declared_tool_has_the_words_for_the_user(exported):
    toolfault.guard("pay", reasons={"over_limit": "This is above your limit."})(lambda: None)
    never_ran(toolfault.ToolNotPermittedError("pay", "over_limit"))
    (event,) = exported.named("toolfault.tool_error")
    assert event.attributes["toolfault.user_message"] == "This is above your limit."


def test_the_budget_event_comes_once_when_the_limit_is_reached(exported):
    with toolfault.run("conversation-1"):
        for _ in range(4):
            book(ToolFailure("book", "calendar_down", transient=True))
    (event,) = exported.named("toolfault.budget_exhausted")
    assert (
        event.attributes["toolfault.budget.failures"]
        == event.attributes["toolfault.budget.limit"]
        == 2
    )
    assert event.attributes["gen_ai.tool.name"] == "book"
    assert event.attributes["gen_ai.conversation.id"] == "conversation-1"


def test_a_tool_is_declared_once_before_its_first_call(exported):
    @guard(
        "order_taxi",
        writes=True,
        owner="mobility team",
        owner_contact="#mobility",
        runbook="https://runbooks.example/taxi",
        reasons={"no_car": "There is no car near you."},
    )
    def order_taxi():
        return 1

    order_taxi()
    order_taxi()
    told = [
        dict(event.attributes)
        for event in exported.named("toolfault.tool_declared")
        if event.attributes["gen_ai.tool.name"] == "order_taxi"
    ]
    assert told == [
        {
            "gen_ai.tool.name": "order_taxi",
            "toolfault.writes": True,
            "toolfault.idempotent": False,
            "toolfault.owner": "mobility team",
            "toolfault.owner_contact": "#mobility",
            "toolfault.runbook": "https://runbooks.example/taxi",
            "toolfault.reasons": '{"no_car": "There is no car near you."}',
        }
    ]


def test_tools_are_declared_again_after_an_hour(exported, monkeypatch):
    guard("hourly")(lambda: None)()
    later = time.monotonic() + 3601
    monkeypatch.setattr(time, "monotonic", lambda: later)
    book()
    names = [e.attributes["gen_ai.tool.name"] for e in exported.named("toolfault.tool_declared")]
    assert names.count("hourly") == 2


def test_a_fault_of_our_own_never_reaches_the_agent(exported, monkeypatch, caplog):
    def broken(*_, **__):
        raise OSError("telemetry is broken")

    monkeypatch.setattr(spans, "record", broken)
    before = toolfault.telemetry.report.faults()
    assert book() == {"status": "ok", "output": "m-7781"}
    assert book(KeyError())["status"] == "error"
    assert toolfault.telemetry.report.faults() == before + 2


def test_a_lone_surrogate_of_a_model_does_not_lose_the_batch(exported):
    never_ran(ToolNotFoundError("book_\ud83d"))
    (span,) = exported.spans
    assert span.name == "execute_tool book_?"
    assert span.attributes["gen_ai.tool.name"] == "book_?"
    for event in exported.events:
        repr(vars(event)).encode()


def test_a_sampler_of_somebody_else_that_raises_does_not_reach_the_agent(exported):
    class Broken(sampling.Sampler):
        def should_sample(self, *_, **__):
            raise RuntimeError

        def get_description(self):
            return "broken"

    spans.use_provider(TracerProvider(sampler=Broken()))
    assert book() == {"status": "ok", "output": "m-7781"}
    assert book(KeyError())["status"] == "error"
    assert len(exported.named("toolfault.tool_error")) == 1


def test_an_exceptions_text_that_a_handler_tells_the_model_stays_off_the_span(exported):
    with pytest.warns(handlers.SensitiveMessageWarning):
        tell = handlers.send_exception_message_to_llm()

    @guard("quoting", on_error=tell)
    def quoting():
        raise ValueError(PLANTED)

    assert PLANTED in quoting()["error"]["message"]
    assert PLANTED not in exported.spans[0].to_json()


async def test_a_limit_of_the_guard_is_told_without_a_place_in_this_library(exported):
    @guard("slow", timeout=0.01, writes=False)
    async def slow():
        await asyncio.sleep(60)

    @guard("checked", check=lambda result: result == "m-1")
    def checked():
        return "m-2"

    await slow()
    checked()
    places = [span.attributes.get("toolfault.frame", "") for span in exported.spans]
    assert len(places) == 2
    assert [place for place in places if place.startswith("toolfault.")] == []
