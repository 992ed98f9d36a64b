"""One call for all who drive it: a hook opens and closes it, a guard inside borrows it."""

import asyncio

import pytest
from opentelemetry import trace

import toolfault
from toolfault import ToolFailure, ToolNotPermittedError, guard
from toolfault import conventions as c
from toolfault.hooks import returned
from toolfault.hooks.base import Observer
from toolfault.hooks.told import annotated
from toolfault.telemetry import report
from toolfault.telemetry.declared import Tool
from toolfault.testing import assert_envelope, capture_tool_errors


@guard("book", idempotent=True)
def book(x):
    if x > 9:
        raise ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


@pytest.fixture
def reported():
    faults = report.faults()
    with capture_tool_errors() as reported:
        yield reported
    assert report.faults() == faults


def told(reported):
    return [(call.tool, call.outcome.value, len(call.attempts)) for call in reported.calls]


def test_a_guard_inside_a_hook_drives_the_hooks_call(reported):
    observer = Observer()
    call = observer.open("book", call_id="call-1")
    assert observer.ok(call, book(1)) is None
    assert told(reported) == [("book", "ok", 1)]
    assert reported.calls[0].call_id == "call-1"


def test_the_guards_word_stands(reported):
    observer = Observer()
    call = observer.open("book")
    answer = book(10)
    observer.ok(call, answer)
    assert reported.only().reason == "calendar_down"
    assert answer["error"]["action"] == "retry_later"


def test_a_body_that_the_framework_runs_again_is_another_attempt(reported):
    observer = Observer()
    call = observer.open("book")
    book(10)
    book(10)
    observer.ok(call, book(1))
    assert told(reported) == [("book", "ok", 3)]


def test_a_guard_of_another_tool_inside_is_a_call_of_its_own(reported):
    observer = Observer()
    call = observer.open("plan")
    book(1)
    observer.ok(call, "planned")
    assert told(reported) == [("book", "ok", 1), ("plan", "ok", 1)]


def test_a_guard_in_a_thread_of_the_framework_is_joined_as_well(reported):
    async def run():
        observer = Observer()
        call = observer.open("book")
        observer.ok(call, await asyncio.to_thread(book, 1))

    asyncio.run(run())
    assert told(reported) == [("book", "ok", 1)]


def test_a_call_that_waits_is_not_reported(reported):
    observer = Observer()
    observer.dropped(observer.open("book"))
    assert reported.calls == []


def test_a_call_that_nobody_closes_is_cancelled_with_its_run(reported):
    observer = Observer()
    observer.open("book", key=("run-1", "call-1"))
    observer.open("pay", key=("run-2", "call-1"))
    observer.give_up("run-1")
    assert told(reported) == [("book", "cancelled", 0)]


def test_what_a_tool_calls_itself_belongs_to_the_same_run(reported):
    observer = Observer()
    run = observer.run("run-1", "conversation-1", "desk")
    call = observer.open("plan", run=run)
    book(1)
    observer.ok(call, "planned")
    assert [call.conversation_id for call in reported.calls] == ["conversation-1"] * 2
    assert toolfault.current_run() is None


def test_after_the_hook_has_closed_its_call_a_guard_opens_its_own(reported):
    observer = Observer()
    observer.ok(observer.open("book"), "done elsewhere")
    book(1)
    assert told(reported) == [("book", "ok", 1), ("book", "ok", 1)]


def test_nothing_ran_is_no_attempt(reported):
    observer = Observer()
    assert observer.turned_away(observer.open("pay"), ToolNotPermittedError("pay")) is None
    assert told(reported) == [("pay", "refused", 0)]


def test_a_cancellation_is_reported_and_left_to_the_framework(reported):
    observer = Observer()
    assert observer.failed(observer.open("pay"), asyncio.CancelledError()) is None
    assert told(reported) == [("pay", "cancelled", 1)]


def test_an_acting_hook_answers_and_an_observing_one_does_not(reported):
    acting, observing = Observer(act=True), Observer()
    assert observing.failed(observing.open("pay"), KeyError("x")) is None
    assert_envelope(acting.failed(acting.open("pay"), KeyError("x")), code="INTERNAL")
    assert acting.ok(acting.open("pay"), 7) == {"status": "ok", "output": 7}
    assert acting.ok(acting.open("pay"), {"status": "ok", "output": 7}) is None


def test_a_fault_of_the_hook_is_counted_and_changes_nothing(monkeypatch):
    before = report.faults()
    monkeypatch.setattr("toolfault.hooks.base.JoinedCall", None)
    observer = Observer()
    call = observer.open("pay")
    assert call is None
    assert observer.ok(call, 7) is None
    assert observer.failed(call, KeyError("x")) is None
    assert report.faults() == before + 1


async def test_a_hook_that_only_observes_repeats_nothing():
    with pytest.raises(ValueError, match="act=True"):
        Observer(max_attempts=2)


@pytest.mark.parametrize(("span", "opened"), [("auto", 0), ("always", 1), ("never", 0)])
def test_the_frameworks_span_is_enriched_never_doubled(exported, span, opened):
    observer = Observer(span=span)
    tracer = exported.tracer_provider.get_tracer("framework")
    with tracer.start_as_current_span("execute_tool pay"):
        observer.ok(observer.open("pay"), 7)
    ours = [s for s in exported.spans if s.instrumentation_scope.name == "toolfault"]
    assert len(ours) == opened
    [carrier] = [s for s in exported.spans if c.OUTCOME in s.attributes]
    assert carrier.attributes[c.OUTCOME] == "ok"
    assert carrier in ours or not ours


def test_where_there_is_no_span_and_none_may_be_opened_the_event_carries_the_record(exported):
    observer = Observer(span="never")
    observer.ok(observer.open("pay"), 7)
    assert exported.spans == ()
    [event] = exported.named(c.TOOL_CALL)
    assert event.trace_id != trace.INVALID_TRACE_ID
    assert event.span_id != trace.INVALID_SPAN_ID


def test_a_span_that_the_framework_opens_later_is_found_when_the_call_ends(exported):
    observer = Observer(late=True)
    call = observer.open("pay")
    with exported.tracer_provider.get_tracer("framework").start_as_current_span("execute_tool pay"):
        observer.ok(call, 7)
    [span] = exported.spans
    assert span.attributes[c.OUTCOME] == "ok"


def test_an_unmapped_error_and_a_generic_message_are_events_as_well(exported):
    observer = Observer()
    observer.failed(observer.open("pay"), KeyError("x"))
    observer.ok(observer.open("pay"), {"result": returned.GENERIC_MESSAGE})
    assert len(exported.named(c.BACKSTOP_REACHED)) == 1
    assert len(exported.named(c.GENERIC_ERROR)) == 1


def test_what_the_author_declared_is_not_overwritten_by_the_framework(exported):
    toolfault.guard("look", writes=False, owner="calendar team")(lambda: None)
    observer = Observer()
    observer.declare([Tool(name="look"), Tool(name="list_rooms")])
    observer.ok(observer.open("look"), 7)
    declared = {e.attributes[c.TOOL_NAME]: e.attributes for e in exported.named(c.TOOL_DECLARED)}
    assert declared["look"][c.OWNER] == "calendar team"
    assert declared["list_rooms"][c.WRITES] is True


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"value": 1}, None),
        ("fine", None),
        ({"error": None}, None),
        ({"status": "ok", "output": {"error": "quoted"}}, None),
        ({"error": "upstream"}, ("failed", "INTERNAL", "returned_error")),
        ({"isError": True, "content": []}, ("failed", "INTERNAL", "returned_error")),
        ({"status": "error"}, ("failed", "INTERNAL", "returned_error")),
        ("An internal error occurred.", ("failed", "INTERNAL", "generic_error")),
        ({"output": "An internal error occurred."}, ("failed", "INTERNAL", "generic_error")),
        ({"status": "error", "error": {"code": "CONFLICT", "reason": "slot_taken"}}, ("failed", "CONFLICT", "slot_taken")),
        ({"status": "error", "error": {"code": "CONFLICT", "reason": "Not Snake"}}, ("failed", "CONFLICT", "returned_error")),
        ({"status": "error", "error": {"code": "NEW_ONE"}}, ("failed", "INTERNAL", "returned_error")),
        ({"status": "declined", "output": "no"}, ("declined", "CONFLICT", "returned_error")),
    ],
)  # fmt: skip
def test_errors_that_are_returned_are_told_from_answers(result, expected):
    error = returned.error_in(result, "pay")
    assert (error and (error.outcome.value, error.code.value, error.reason)) == expected


@pytest.mark.parametrize(
    ("annotations", "writes", "idempotent"),
    [
        (None, True, False),
        ({"readOnlyHint": True}, False, False),
        ({"idempotentHint": True, "readOnlyHint": False}, True, True),
        ({"read_only_hint": "yes"}, True, False),
    ],
)
def test_mcps_annotations_are_read(annotations, writes, idempotent):
    tool = annotated("pay", annotations)
    assert (tool.writes, tool.idempotent) == (writes, idempotent)
