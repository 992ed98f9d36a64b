"""The run scope across tasks and threads."""

import asyncio
import contextvars
import sys
import threading
from uuid import UUID

import pytest

import toolfault
from toolfault import ToolFailure, ToolFailurePolicy, guard


@guard("ping")
def ping(*, fail=False):
    if fail:
        raise ToolFailure("ping", "down", transient=True)
    return "pong"


def test_outside_there_is_no_run():
    assert toolfault.current_run() is None


def test_a_run_is_current_inside_its_scope_and_nests():
    with toolfault.run("outer") as outer:
        with toolfault.run("inner") as inner:
            assert toolfault.current_run() is inner
        assert toolfault.current_run() is outer
    assert toolfault.current_run() is None


def test_a_run_remembers_which_tools_ran_with_which_outcome_and_effect():
    with toolfault.run("c") as run:
        ping()
        ping(fail=True)
    assert [(c.tool, c.outcome, c.effect) for c in run.calls] == [
        ("ping", "ok", "applied"),
        ("ping", "failed", "none"),
    ]
    assert run.calls[0].reference_id is None
    assert run.calls[1].reference_id is not None


async def test_tasks_inherit_the_run():
    async with toolfault.run("c") as run:
        await asyncio.gather(*(asyncio.to_thread(ping) for _ in range(5)))
    assert len(run.calls) == 5


def test_a_thread_started_with_the_context_inherits_the_run():
    with toolfault.run("c") as run:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(ping,))
        thread.start()
        thread.join()
    assert len(run.calls) == 1


async def test_two_runs_side_by_side_do_not_mix():
    async def converse(name):
        async with toolfault.run(name) as run:
            await asyncio.sleep(0)
            ping()
            await asyncio.sleep(0)
            ping()
            return len(run.calls)

    assert await asyncio.gather(converse("a"), converse("b")) == [2, 2]


def test_fail_run_raises_what_would_have_been_an_envelope():
    with toolfault.run("c", policy=ToolFailurePolicy.FAIL_RUN):
        with pytest.raises(ToolFailure) as raised:
            ping(fail=True)
        assert raised.value.reason == "down"
        assert ping() == "pong"


def test_continue_answers_with_an_envelope_where_the_guard_would_raise():
    @guard("strict", on_error="raise")
    def strict():
        raise ToolFailure("strict", "down", transient=True)

    with toolfault.run("c", policy=ToolFailurePolicy.CONTINUE):
        assert strict()["status"] == "error"


def test_the_budget_lives_in_the_mapping_the_caller_gives():
    session = {}
    with toolfault.run("c", state=session):
        ping(fail=True)
    assert session == {"toolfault.failures:ping": 1}
    with toolfault.run("c", state=session):
        assert ping(fail=True)["error"]["action"] == "stop_and_tell_user"
        ping()
    assert session == {"toolfault.failures:ping": 0}


def test_a_run_without_end_keeps_its_last_thousand_calls():
    with toolfault.run("c") as run:
        for _ in range(1010):
            ping()
    assert len(run.calls) == 1000


def in_threads(count, work):
    """Run it in threads of this context that switch as often as they can."""
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(count)
    ]
    often = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(often)


def test_threads_of_a_run_share_its_retries_to_the_last_one():
    granted = []
    with toolfault.run(max_tool_attempts=1000) as run:
        in_threads(8, lambda: granted.append(sum(run.use_retry("ping") for _ in range(500))))

    assert sum(granted) == 1000


def test_calls_in_threads_of_a_run_are_all_counted():
    with toolfault.run() as run:
        in_threads(4, lambda: [ping() for _ in range(400)])

    assert (len(run.calls), run.forgotten, run.under_way["ping"]) == (1000, 600, 0)


@pytest.mark.parametrize("deadline", [0, -1, float("nan"), "30"])
def test_a_deadline_is_more_than_no_seconds(deadline):
    with pytest.raises(ValueError, match="deadline"):
        toolfault.run("c", deadline=deadline)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_tool_attempts": "3"}, "max_tool_attempts is '3'; give 0 or more"),
        ({"max_tool_attempts": -1}, "max_tool_attempts is -1; give 0 or more"),
        ({"max_model_calls": "3"}, "max_model_calls is '3'; give 1 or more, or None"),
        ({"max_model_calls": 0}, "max_model_calls is 0; give 1 or more, or None"),
        ({"state": 5}, "state is 5; give a mapping"),
    ],
)
def test_an_option_that_does_not_fit_is_said(options, told):
    with pytest.raises(ValueError, match=told):
        toolfault.run("c", **options)


def test_ids_that_are_no_text_are_told_as_text(exported):
    run_id = UUID("8a6e0804-2bd0-4672-b79d-d97027f9071a")
    with toolfault.run(42, run_id=run_id):
        ping()

    (span,) = exported.spans
    assert span.attributes["gen_ai.conversation.id"] == "42"
    assert span.attributes["toolfault.run_id"] == "8a6e0804-2bd0-4672-b79d-d97027f9071a"


def test_a_run_without_a_deadline_has_all_the_time():
    assert toolfault.run("c").remaining() == float("inf")


def test_a_policy_that_is_none_is_said():
    with pytest.raises(ValueError, match=r"write ToolFailurePolicy\.CONTINUE or FAIL_RUN"):
        toolfault.run("c", policy="x")


def test_scopes_that_are_left_out_of_order_leave_nothing_behind():
    outer, inner = toolfault.run("outer"), toolfault.run("inner")
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert toolfault.current_run() is inner
    inner.__exit__(None, None, None)
    assert toolfault.current_run() is None


def test_a_run_may_be_entered_again_inside_of_itself():
    with toolfault.run("c") as run:
        with run:
            assert toolfault.current_run() is run
        assert toolfault.current_run() is run
    assert toolfault.current_run() is None


async def test_a_scope_that_another_task_leaves_is_still_that_of_the_one_that_entered():
    run = toolfault.run("c")
    run.__enter__()
    await asyncio.create_task(run.__aexit__(None, None, None))
    assert toolfault.current_run() is run
    run.__exit__(None, None, None)
