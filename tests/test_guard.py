"""The guard around every kind of function, and what its caller gets."""

import asyncio
import contextlib
import contextvars
import gc
import inspect
import sys
import threading
import time
import traceback
import weakref
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

import toolfault
import toolfault.handlers
from toolfault import (
    ToolArgumentValidationError,
    ToolErrorMap,
    ToolFailure,
    ToolNotPermittedError,
    ToolRefusal,
    ToolResultError,
    guard,
)
from toolfault.taxonomy import Code, Outcome
from toolfault.testing import assert_envelope, capture_tool_errors


def test_a_success_is_wrapped_and_a_plain_result_where_errors_are_raised():
    assert guard("t")(lambda: [1])() == {"status": "ok", "output": [1]}
    assert guard("t", on_error="raise")(lambda: [1])() == [1]


def test_the_worked_example_of_a_meeting_that_is_booked_at_last():
    answers = iter([503, 503, 200])

    @guard("book_meeting")
    def book_meeting(day: str, slot: str):
        try:
            date.fromisoformat(day)
        except ValueError:
            raise ToolArgumentValidationError(
                "book_meeting", "bad_date", field="date",
                message="date must be an ISO-8601 calendar date such as 2026-10-06",
            ) from None  # fmt: skip
        if next(answers) == 503:
            raise ToolFailure("book_meeting", "calendar_unavailable", transient=True)
        return {"day": day, "slot": slot}

    with toolfault.run("conversation-1"):
        assert book_meeting("next Tuesday", "10:00") == {
            "status": "error",
            "error": {
                "code": "INVALID_ARGUMENT",
                "reason": "bad_date",
                "field": "date",
                "message": "date must be an ISO-8601 calendar date such as 2026-10-06",
                "action": "fix_arguments",
                "retryable": True,
            },
        }
        first = book_meeting("2026-10-06", "10:00")
        assert_envelope(first, code="UNAVAILABLE", action="retry_later", retryable=True)
        second = book_meeting("2026-10-06", "10:00")
        assert_envelope(second, code="UNAVAILABLE", action="stop_and_tell_user", retryable=False)
        assert "failed 2 times in a row" in second["error"]["message"]
        assert_envelope(book_meeting("2026-10-06", "10:00"), status="ok")


def test_the_tool_stays_callable_past_its_budget_and_a_success_resets_it():
    fail = [True, True, True, False, True]

    @guard("flaky")
    def flaky():
        if fail.pop(0):
            raise ToolFailure("flaky", "down", transient=True)

    with toolfault.run("c"):
        told = [flaky() for _ in range(5)]
    actions = [answer.get("error", {}).get("action") for answer in told]
    stop = "stop_and_tell_user"
    assert actions == ["retry_later", stop, stop, None, "retry_later"]


def test_an_exception_nobody_typed_is_internal_and_says_nothing_of_itself():
    @guard("t")
    def broken():
        raise KeyError("customer 4711")

    answer = broken()
    assert_envelope(answer, code="INTERNAL", reason="unmapped_failure", action="stop_and_tell_user")
    assert "4711" not in str(answer)
    assert "KeyError" not in str(answer)


def test_where_errors_are_raised_the_typed_one_is_and_its_cause_stays_out_of_tracebacks():
    @guard("t", on_error="raise")
    def broken():
        raise KeyError("customer 4711")

    with pytest.raises(ToolFailure) as raised:
        broken()
    assert raised.value.reason == "unmapped_failure"
    assert isinstance(raised.value.raw_error, KeyError)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


@pytest.mark.parametrize("on_error", ["envelope", "raise"])
def test_a_refusal_is_data_in_every_mode(on_error):
    @guard("cancel", on_error=on_error)
    def cancel():
        raise ToolRefusal("cancel", "booking_not_cancellable", "This fare is non-refundable.")

    assert cancel()["status"] == "declined"


def test_a_policy_denial_inside_the_body_stops_the_model():
    @guard("delete")
    def delete():
        raise ToolNotPermittedError("delete")

    assert_envelope(delete(), code="PERMISSION_DENIED", action="stop_and_tell_user")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(int, "the class int"), (3, "3"), (property(lambda self: 1), "<property object")],
)
def test_what_is_no_function_is_said_where_it_is_decorated(wrong, told):
    with pytest.raises(TypeError, match=rf"@guard\('p'\) is on {told}.*put it on the function"):
        guard("p")(wrong)


def test_a_guard_over_static_and_class_methods_keeps_their_kind():
    class Desk:
        name = "desk"

        @guard("add", on_error="raise")
        @staticmethod
        def add(a, b):
            return a + b

        @guard("named", on_error="raise")
        @classmethod
        def named(cls):
            return cls.name

    class Other(Desk):
        name = "other"

    assert (Desk().add(1, 2), Desk.add(1, 2)) == (3, 3)
    assert (Desk.named(), Other().named()) == ("desk", "other")


def test_a_function_of_c_without_a_signature_is_guarded_as_well():
    assert guard("highest", on_error="raise")(max)(1, 2) == 2


def test_a_result_that_may_not_enter_the_run_was_applied_all_the_same():
    def positive(result):
        if result < 0:
            raise ValueError(f"negative: {result}")

    @guard("pay", check=positive)
    def pay(amount):
        return amount

    assert pay(1) == {"status": "ok", "output": 1}
    with capture_tool_errors() as reported:
        assert_envelope(pay(-1), code="INTERNAL", reason="invalid_result")
    assert reported.only().effect == "applied"
    assert reported.only().exception_type == "ValueError"


def test_each_item_of_a_stream_is_checked():
    def positive(item):
        assert item > 0

    @guard("rows", check=positive)
    def rows():
        yield from (1, -1, 2)

    one, last = rows()
    assert one == 1
    assert_envelope(last, code="INTERNAL", reason="invalid_result")


async def test_each_item_of_an_async_stream_is_checked():
    def positive(item):
        assert item > 0

    @guard("rows", check=positive)
    async def rows():
        yield 1
        yield -1

    one, last = [item async for item in rows()]
    assert one == 1
    assert_envelope(last, code="INTERNAL", reason="invalid_result")


def test_cancellation_passes_through_and_is_reported_as_cancelled():
    @guard("t")
    def interrupted():
        raise KeyboardInterrupt

    with capture_tool_errors() as reported, pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [(c.outcome, c.effect, c.code) for c in reported.calls] == [
        ("cancelled", "unknown", None)
    ]


async def test_a_cancelled_task_is_cancelled_and_counted_so():
    @guard("t")
    async def slow():
        await asyncio.sleep(60)

    with capture_tool_errors() as reported:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [call.outcome for call in reported.calls] == ["cancelled"]


async def test_an_async_tool_outruns_its_time():
    @guard("t", timeout=0.01)
    async def slow():
        await asyncio.sleep(60)

    with capture_tool_errors() as reported:
        assert_envelope(await slow(), code="UNAVAILABLE", action="check_before_retry")
    assert (reported.only().outcome, reported.only().effect) == ("timed_out", "unknown")


async def test_a_time_out_of_the_body_itself_is_told_the_same():
    @guard("t", timeout=60, writes=False)
    async def slow():
        raise TimeoutError

    assert_envelope(await slow(), code="UNAVAILABLE", action="retry_later")


def test_a_timeout_for_a_sync_function_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"cannot be stopped\. Make it async, or give its HTTP"):
        guard("t", timeout=1)(lambda: None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"on_error": "explode"}, "write 'envelope', 'raise' or a handler"),
        ({"max_attempts": 0}, "give 1 or more"),
        ({"max_attempts": "3"}, "give 1 or more"),
        ({"timeout": -1}, "give seconds, more than 0"),
        ({"timeout": "3"}, "give seconds, more than 0"),
        ({"writes": "no"}, "write True or False"),
        ({"reasons": ["a"]}, "write a dict"),
        ({"reasons": {"Slot Taken": "words"}}, "snake_case"),
        ({"reasons": {"slot_taken": None}}, "words for the user"),
        ({"error_map": {ValueError: 1}}, r"write ToolErrorMap\("),
        ({"budget_limit": 0}, "give 1 or more"),
        ({"on_error": []}, r"on_error is \[\]; write 'envelope', 'raise' or a handler"),
        ({"on_error": 5}, "on_error is 5; write 'envelope', 'raise' or a handler"),
        ({"check": 5}, "check is 5; give a function that takes the result"),
        ({"owner": 5}, "owner is 5; write text"),
        ({"owner_contact": 5}, "owner_contact is 5; write text"),
        ({"runbook": 5}, "runbook is 5; write text"),
    ],
)
def test_an_option_that_does_not_fit_is_said(options, told):
    with pytest.raises(ValueError, match=told):
        guard("t", **options)


def test_a_handler_that_was_not_made_is_said_where_it_is_written():
    with pytest.raises(TypeError, match=r"write fail_invocation\(\)"):
        guard("t", on_error=toolfault.handlers.fail_invocation)


def test_one_instance_may_be_raised_again_and_again():
    full = ToolRefusal("book", "booked_out", "There is no seat left.")

    @guard("book")
    def book():
        raise full

    for _ in range(3):
        book()
    assert full.__traceback__ is None


def test_one_instance_that_is_raised_again_and_again_has_a_traceback_that_does_not_grow():
    down = ToolFailure("book", "supplier_down", transient=True)

    @guard("book", on_error="raise")
    def book():
        raise down

    depths, references = [], set()
    for _ in range(4):
        with pytest.raises(ToolFailure) as raised:
            book()
        depths.append([frame.name for frame in raised.traceback].count("book"))
        references.add(raised.value.reference_id)
        assert raised.value is not down
    assert depths == [1, 1, 1, 1]
    assert len(references) == 4
    assert (down.reference_id, down.answer, down.__traceback__) == (None, None, None)


def test_what_one_caller_holds_is_not_changed_by_the_next_call():
    down = ToolFailure("book", "supplier_down", transient=True)

    @guard("book", on_error="raise")
    def book():
        raise down from OSError("away")

    held = []
    for _ in range(2):
        with pytest.raises(ToolFailure) as raised:
            book()
        held.append(raised.value)
    names = [[f.name for f in traceback.extract_tb(error.__traceback__)] for error in held]
    assert names[0] == names[1]
    assert names[0].count("book") == 1
    assert held[0].reference_id != held[1].reference_id


@pytest.fixture
def often_switched():
    """Threads take turns as often as they can, so that a race shows."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def _references(book, threads=4, rounds=100):
    """How many references the callers of each round, of one new instance, were given."""
    together = threading.Barrier(threads)

    def called(down):
        together.wait()
        try:
            book(down)
        except ToolFailure as error:
            together.wait()
            return error.reference_id

    with ThreadPoolExecutor(threads) as pool:
        return [
            len(set(pool.map(called, [ToolFailure("book", "down", code="INTERNAL")] * threads)))
            for _ in range(rounds)
        ]


def test_parallel_calls_that_raise_one_instance_have_a_reference_each(often_switched):
    @guard("book", on_error="raise")
    def book(down):
        raise down

    assert _references(book) == [4] * 100


def test_parallel_calls_whose_rule_gives_one_instance_have_a_reference_each(often_switched):
    rules = ToolErrorMap({KeyError: lambda _, error: error.args[0]})

    @guard("book", on_error="raise", error_map=rules)
    def book(down):
        raise KeyError(down)

    assert _references(book) == [4] * 100


def test_an_error_that_cannot_be_copied_is_raised_itself():
    class Picky(ToolFailure):
        def __new__(cls, *args, **kwargs):
            if not kwargs:
                raise RuntimeError("not like this")
            return super().__new__(cls)

    picky = Picky("book", "down", code="INTERNAL")

    @guard("book", on_error="raise")
    def book():
        raise picky

    with pytest.raises(Picky) as raised:
        book()
    assert raised.value is picky
    assert raised.value.reference_id


@pytest.mark.parametrize("on_error", ["envelope", "raise"])
def test_what_a_failed_tool_held_is_let_go_with_its_error(on_error):
    class Connection:
        pass

    held = []

    @guard("t", on_error=on_error)
    def broken():
        connection = Connection()
        held.append(weakref.ref(connection))
        raise KeyError("customer 4711")

    gc.disable()
    try:
        with contextlib.suppress(ToolFailure):
            broken()
        assert held[0]() is None
    finally:
        gc.enable()


def test_a_coroutine_that_is_thrown_away_elsewhere_is_cancelled_and_raises_nothing(exported):
    class Never:
        def __await__(self):
            yield

    @guard("slow")
    async def slow():
        await Never()

    running = slow()
    contextvars.copy_context().run(running.send, None)
    running.close()

    (span,) = exported.spans
    assert span.attributes["toolfault.outcome"] == "cancelled"


def test_arguments_that_do_not_match_ran_nothing():
    @guard("book")
    def book(day, slot="10:00"):
        return {}[day]

    with capture_tool_errors() as reported:
        assert_envelope(book(), code="INVALID_ARGUMENT", action="fix_arguments", field="day",
                        message="Argument day is missing.")  # fmt: skip
        assert_envelope(book("d", when=1), field="when",
                        message="Argument when is not one of this tool.")  # fmt: skip
        assert_envelope(book(1, 2, 3), message="There are too many arguments.")
    told = [(e.outcome, len(e.attempts), e.effect) for e in reported.errors]
    assert told == [("invalid", 0, "none")] * 3


async def test_arguments_that_do_not_match_are_said_by_every_kind_of_function():
    @guard("a")
    async def a(day): ...

    @guard("b")
    def b(day):
        yield day

    @guard("c")
    async def c(day):
        yield day

    answers = [await a(), *b(), *[item async for item in c()]]
    for answer in answers:
        assert_envelope(answer, code="INVALID_ARGUMENT", field="day")
    assert len(answers) == 3


def test_a_type_error_of_the_body_is_a_bug():
    @guard("book")
    def book(day):
        return day + 1

    assert_envelope(book("monday"), code="INTERNAL")


def test_a_guard_without_a_name_says_how_it_is_written():
    with pytest.raises(ValueError, match=r'write @guard\("book_meeting"\)'):
        guard(lambda: None)


def test_signature_docstring_and_annotations_stay_for_the_framework():
    def book(day: str, slot: str = "10:00") -> dict[str, str]:
        """Book a meeting."""

    for function in (book, _as_async(book)):
        guarded = guard("book")(function)
        assert inspect.signature(guarded) == inspect.signature(function)
        assert guarded.__doc__ == "Book a meeting."
        assert guarded.__annotations__ == function.__annotations__
        assert guarded.__name__ == "book"
        assert inspect.iscoroutinefunction(guarded) == inspect.iscoroutinefunction(function)


def _as_async(function):
    async def book(day: str, slot: str = "10:00") -> dict[str, str]:
        """Book a meeting."""

    return book


def test_methods_are_guarded_too():
    class Calendar:
        @guard("book")
        def book(self, day):
            return day

        @staticmethod
        @guard("ping")
        def ping():
            return "pong"

    assert Calendar().book("monday") == {"status": "ok", "output": "monday"}
    assert Calendar.ping() == {"status": "ok", "output": "pong"}


async def test_a_sync_function_that_returns_something_to_await_is_guarded_to_its_end():
    @guard("t")
    def later(*, fail):
        async def body():
            await asyncio.sleep(0)
            if fail:
                raise KeyError
            return 1

        return body()

    with capture_tool_errors() as reported:
        assert await later(fail=False) == {"status": "ok", "output": 1}
        assert_envelope(await later(fail=True), code="INTERNAL")
    assert [call.outcome for call in reported.calls] == ["ok", "failed"]


def test_a_stream_passes_and_a_failure_ends_it_with_its_envelope():
    @guard("rows")
    def rows(*, fail):
        yield 1
        yield 2
        if fail:
            raise KeyError

    with capture_tool_errors() as reported:
        assert list(rows(fail=False)) == [1, 2]
        one, two, last = rows(fail=True)
    assert (one, two) == (1, 2)
    assert_envelope(last, code="INTERNAL")
    assert [call.outcome for call in reported.calls] == ["ok", "failed"]


async def test_an_async_stream_passes_and_a_failure_ends_it_with_its_envelope():
    @guard("rows")
    async def rows(*, fail):
        yield 1
        if fail:
            raise KeyError

    assert [item async for item in rows(fail=False)] == [1]
    one, last = [item async for item in rows(fail=True)]
    assert one == 1
    assert_envelope(last, code="INTERNAL")


def test_a_stream_its_reader_leaves_is_cancelled_and_closed():
    closed = []

    @guard("rows")
    def rows():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    with capture_tool_errors() as reported:
        stream = rows()
        next(stream)
        stream.close()
    assert closed == [True]
    assert [call.outcome for call in reported.calls] == ["cancelled"]


def test_between_two_items_of_a_stream_its_reader_is_outside_of_the_call():
    @guard("rows")
    def rows():
        yield toolfault.telemetry.current.current_call().tool.name

    stream = rows()
    assert next(stream) == "rows"
    assert toolfault.telemetry.current.current_call() is None
    stream.close()


class TestRetries:
    """The loop that repeats by itself."""

    @pytest.fixture(autouse=True)
    def waits(self, monkeypatch):
        waits = []
        monkeypatch.setattr(time, "sleep", waits.append)
        return waits

    def failing(self, *errors, **options):
        left = list(errors)

        @guard("t", max_attempts=5, **options)
        def tool():
            if left:
                raise left.pop(0)
            return "done"

        return tool

    def test_a_transient_failure_is_repeated_and_the_waits_grow(self, waits):
        tool = self.failing(*[ToolFailure("t", "down", transient=True)] * 4)
        with capture_tool_errors() as reported:
            assert tool() == {"status": "ok", "output": "done"}
        assert len(reported.calls) == 1
        assert [a.number for a in reported.calls[0].attempts] == [1, 2, 3, 4, 5]
        assert [round(a.waited, 6) for a in reported.calls[0].attempts[1:]] == [
            round(wait, 6) for wait in waits
        ]
        for wait, step in zip(waits, [0.5, 1, 2, 4], strict=True):
            assert step / 2 <= wait <= step

    def test_retry_after_is_honoured(self, waits):
        self.failing(ToolFailure("t", "busy", transient=True, retry_after=7))()
        assert waits == [7]

    def test_a_wait_of_more_than_thirty_seconds_is_left_to_the_model(self, waits):
        answer = self.failing(ToolFailure("t", "busy", transient=True, retry_after=31))()
        assert_envelope(answer, action="retry_later", retry_after=31)
        assert waits == []

    def test_a_permanent_failure_and_a_refusal_are_not_repeated(self, waits):
        assert self.failing(ToolFailure("t", "gone", code="NOT_FOUND"))()["status"] == "error"
        assert self.failing(ToolRefusal("t", "taken", "Taken."))()["status"] == "declined"
        assert waits == []

    def test_an_untyped_exception_is_repeated_only_where_that_is_harmless(self, waits):
        assert self.failing(KeyError())()["status"] == "error"
        assert waits == []
        assert self.failing(KeyError(), idempotent=True)()["status"] == "ok"
        assert self.failing(KeyError(), writes=False)()["status"] == "ok"
        assert len(waits) == 2

    def test_attempts_end_at_their_maximum(self, waits):
        answer = self.failing(*[ToolFailure("t", "down", transient=True)] * 9)()
        assert_envelope(answer, action="retry_later")
        assert len(waits) == 4

    def test_an_earlier_unknown_makes_a_later_success_possibly_twice(self):
        def twice(**options):
            with capture_tool_errors() as reported:
                self.failing(ToolFailure("t", "odd", transient=True, effect="unknown"), **options)()
            return reported.calls[0].effect, reported.calls[0].possibly_twice

        assert twice() == ("applied", True)
        assert twice(idempotent=True) == ("applied", False)

    def test_an_earlier_unknown_makes_a_later_refusal_unknown_and_asks_for_a_look(self):
        tool = self.failing(
            ToolFailure("t", "odd", transient=True, effect="unknown"),
            ToolRefusal("t", "taken", "Taken."),
        )
        answer = tool()
        assert answer["status"] == "declined"
        assert answer["action"] == "check_before_retry"

    def test_one_tool_may_use_twelve_retries_in_a_run_then_one_attempt_per_call(self, waits):
        with toolfault.run("c"):
            for _ in range(4):
                self.failing(*[ToolFailure("t", "down", transient=True)] * 9)()
            assert len(waits) == 12
            with capture_tool_errors() as reported:
                self.failing(ToolFailure("t", "down", transient=True))()
        assert len(reported.only().attempts) == 1

    def test_retry_after_that_outlasts_the_run_fails_at_once(self, waits):
        tool = self.failing(ToolFailure("t", "busy", transient=True, retry_after=600))
        with toolfault.run("c", deadline=60):
            assert_envelope(tool(), action="stop_and_tell_user")
        assert waits == []

    def test_an_interrupt_while_waiting_ends_the_call_as_cancelled(self, monkeypatch):
        def interrupt(_):
            raise KeyboardInterrupt

        monkeypatch.setattr(time, "sleep", interrupt)
        tool = self.failing(ToolFailure("t", "down", transient=True))
        with capture_tool_errors() as reported, pytest.raises(KeyboardInterrupt):
            tool()
        assert [call.outcome for call in reported.calls] == ["cancelled"]


def test_an_error_of_ones_own_map_wins_over_the_transport_map():
    rules = ToolErrorMap({TimeoutError: toolfault.refusal("too_late", "The shop is closed.")})

    @guard("t", error_map=rules)
    def tool(error):
        raise error

    assert tool(TimeoutError())["status"] == "declined"
    assert_envelope(tool(ConnectionRefusedError()), code="UNAVAILABLE", action="retry_later")


def test_a_tool_result_error_raised_by_the_body_is_applied():
    @guard("t")
    def tool():
        raise ToolResultError("t", "too_large")

    with capture_tool_errors() as reported:
        tool()
    assert reported.only().effect == "applied"


def test_without_an_sdk_the_envelope_is_returned_and_nothing_is_emitted():
    @guard("t")
    def tool():
        raise ToolFailure("t", "down", transient=True)

    assert_envelope(tool(), code="UNAVAILABLE")


class TestAwkward:
    """What a guard makes of mistakes around it: an answer, never a crash of the agent."""

    def answer(self, raised, **options):
        @guard("awkward", **options)
        def tool():
            raise raised

        return tool()

    def test_a_state_that_is_away_does_not_undo_a_success(self):
        class Away(dict):
            def get(self, *_):
                raise ConnectionError

        @guard("pay")
        def pay():
            return "paid"

        with toolfault.run("c", state=Away()), capture_tool_errors() as reported:
            assert pay() == {"status": "ok", "output": "paid"}
        assert (reported.calls[0].outcome, reported.calls[0].effect) == ("ok", "applied")

    def test_a_stream_left_in_the_middle_may_have_taken_effect(self):
        @guard("charge")
        def charge():
            yield "charged"
            yield "receipt"

        with capture_tool_errors() as reported:
            stream = charge()
            next(stream)
            stream.close()
        (call,) = reported.calls
        assert (call.outcome, call.effect, len(call.attempts)) == ("cancelled", "unknown", 1)

    def test_a_stream_whose_end_raises_leaves_nothing_behind(self):
        @guard("charge")
        def charge():
            try:
                yield 1
            finally:
                raise LookupError

        stream = charge()
        next(stream)
        with pytest.raises(LookupError):
            stream.close()
        assert toolfault.telemetry.current.current_call() is None

    def test_a_rule_that_raises_or_answers_nonsense_is_a_bug_of_the_tool(self):
        def rule(tool, error):
            raise RuntimeError

        for broken in (rule, lambda tool, error: "nonsense"):
            rules = ToolErrorMap({ValueError: broken})
            assert_envelope(self.answer(ValueError(), error_map=rules), code="INTERNAL")

    def test_a_typed_error_without_its_constructor_still_answers(self):
        class Bare(ToolFailure):
            def __init__(self):
                pass

        assert_envelope(self.answer(Bare()), code="INTERNAL", action="stop_and_tell_user")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"retry_after": "5"},
            {"outcome": "failed"},
            {"transient": "yes"},
            {"effect": "maybe"},
            {"code": "DOWN"},
            {"reason": None},
            {"field": 1},
        ],
    )
    def test_a_typed_error_with_attributes_of_other_kinds_still_answers(self, wrong):
        kind = type("Odd", (ToolFailure,), {"__init__": lambda _: None, "transient": True} | wrong)
        assert_envelope(self.answer(kind(), max_attempts=2), code="INTERNAL")

    def test_a_reason_or_a_wait_of_another_kind_is_said_to_the_author(self):
        with pytest.raises(ValueError, match="reason 5 is not a snake_case code"):
            ToolFailure("t", 5, code="INTERNAL")
        with pytest.raises(ValueError, match="retry_after is '5'; give seconds"):
            ToolFailure("t", "down", transient=True, retry_after="5")

    def test_a_message_that_is_no_text_is_said_to_the_author(self):
        with pytest.raises(TypeError, match="message is a ValueError; write text"):
            ToolFailure("t", "down", transient=True, message=ValueError())

    def test_groups_of_any_depth_end(self):
        error = ValueError()
        for _ in range(3000):
            error = ExceptionGroup("g", [error])
        assert_envelope(self.answer(error), code="INTERNAL")

    def test_an_exception_made_to_be_awkward_still_answers(self):
        class EvilError(Exception):
            def __getattribute__(self, name):
                raise RuntimeError

        assert_envelope(self.answer(EvilError()), code="INTERNAL")

    def test_one_instance_raised_twice_keeps_no_text_of_a_handler(self):
        shared = ToolFailure("t", "down", transient=True)
        generic = toolfault.handlers.send_generic_message_to_llm_unless_visible_to_llm("Generic.")
        self.answer(shared, on_error=generic)
        assert shared.message is None


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.CANCELLED])
def test_an_error_that_says_it_is_none_is_a_bug(outcome):
    class Strange(toolfault.ToolError):
        pass

    Strange.outcome = outcome

    @toolfault.guard("strange")
    def strange():
        raise Strange("strange", "odd", code=Code.INTERNAL)

    assert strange()["error"]["reason"] == "unmapped_failure"
