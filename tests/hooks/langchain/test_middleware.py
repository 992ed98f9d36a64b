"""LangChain: a real agent loop with a stub model, every way a tool call can go."""

import asyncio
import json
from uuid import uuid4

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.model_call_limit import ModelCallLimitExceededError
from langchain.agents.middleware.tool_call_limit import ToolCallLimitExceededError
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, interrupt
from opentelemetry import trace
from pydantic import TypeAdapter
from tests.hooks.langchain.stub import HI, SECRET, TOOLS, answers, calling, make_agent, numbered, ok

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool as Declared
from toolfault.hooks.langchain import ToolfaultMiddleware
from toolfault.testing import assert_envelope


@pytest.fixture
def thread():
    return {"configurable": {"thread_id": uuid4().hex}}


async def invoke(agent, *, sync, said=HI, config=None):
    if sync:
        return await asyncio.to_thread(agent.invoke, said, config)
    return await agent.ainvoke(said, config)


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
        ("told_handled", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("error_dict", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
        ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
        ("lenient", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
        ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
    ],
)
async def test_a_call_the_run_survives_has_one_record_and_one_span(
    exported, tool, args, expected, sync
):
    agent = make_agent((tool, args), middleware=[ToolfaultMiddleware()])
    await invoke(agent, sync=sync)
    assert exported.told() == [expected]
    [span] = exported.tool_spans()
    assert span.attributes[c.OUTCOME] == expected[0]
    assert span.attributes[c.TOOL_CALL_ID] == f"{tool}-1"


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("tool", "expected", "raised"),
    [
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown"), ValueError),
        ("told", ("failed", "INTERNAL", "returned_error", 1, "unknown"), ToolException),
        ("refused_connection", ("failed", "UNAVAILABLE", "upstream_unavailable", 1, "none"), OSError),
        ("declines", ("declined", "CONFLICT", "slot_taken", 1, "none"), toolfault.ToolRefusal),
    ],
)  # fmt: skip
async def test_an_exception_still_ends_the_run_and_has_one_record(
    exported, tool, expected, raised, sync
):
    agent = make_agent((tool, {"x": 1}), middleware=[ToolfaultMiddleware()])
    with pytest.raises(raised):
        await invoke(agent, sync=sync)
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


async def test_an_error_that_is_told_to_the_model_by_another_middleware_keeps_its_cause(exported):
    told = ToolErrorMiddleware(lambda error, request: "sorry")
    agent = make_agent(("boom", {"x": 1}), middleware=[ToolfaultMiddleware(), told])
    assert answers(await agent.ainvoke(HI)) == ["sorry"]
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 1, "unknown")]
    assert exported.records()[0][c.EXCEPTION_TYPE] == "ValueError"


@pytest.mark.parametrize("sync", [True, False])
async def test_retries_of_the_framework_are_attempts_of_one_call(exported, sync):
    tries = []

    @tool
    def flaky(x: int) -> str:
        """Works the second time."""
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0)
    agent = make_agent(
        ("flaky", {"x": 1}), middleware=[ToolfaultMiddleware(), retry], tools=[flaky]
    )
    assert answers(await invoke(agent, sync=sync)) == ["fine"]
    assert exported.told() == [("ok", None, None, 2, "applied")]
    assert len(exported.tool_spans()) == 1


async def test_retries_that_all_fail_are_one_failed_call(exported):
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0)
    agent = make_agent(("refused_connection", {"x": 1}), middleware=[ToolfaultMiddleware(), retry])
    await agent.ainvoke(HI)
    assert exported.told() == [("failed", "UNAVAILABLE", "upstream_unavailable", 2, "none")]


async def test_a_tool_that_outran_its_own_time_is_told_from_one_that_broke(exported):
    agent = make_agent(("own_timeout", {"x": 1}), middleware=[ToolfaultMiddleware()])
    with pytest.raises(TimeoutError):
        await agent.ainvoke(HI)
    assert exported.told() == [("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")]


async def test_a_cancelled_call_is_reported_as_cancelled(exported):
    running = asyncio.Event()

    @tool
    async def endless(x: int) -> str:
        """Never ends."""
        running.set()
        await asyncio.sleep(60)
        return ""

    agent = make_agent(("endless", {"x": 1}), middleware=[ToolfaultMiddleware()], tools=[endless])
    run = asyncio.create_task(agent.ainvoke(HI))
    await running.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


@pytest.mark.parametrize("sync", [True, False])
async def test_parallel_calls_are_told_apart(exported, sync):
    both = calling(("ok", {"x": 1}), ("book", {"x": 10}))
    await invoke(make_agent(both, middleware=[ToolfaultMiddleware()]), sync=sync)
    assert sorted(told[0] for told in exported.told()) == ["failed", "ok"]
    assert {r[c.TOOL_CALL_ID] for r in exported.records()} == {"ok-1", "book-2"}


async def test_the_record_names_the_frameworks_conversation_run_and_agent(exported, thread):
    agent = make_agent(
        ("ok", {"x": 1}), ("boom", {"x": 1}),
        middleware=[ToolfaultMiddleware()], checkpointer=InMemorySaver(),
    )  # fmt: skip
    with pytest.raises(ValueError, match=SECRET):
        await agent.ainvoke(HI, thread)
    first, second = exported.records()
    assert (
        first[c.CONVERSATION_ID] == second[c.CONVERSATION_ID] == thread["configurable"]["thread_id"]
    )
    assert first[c.AGENT_NAME] == "desk"
    assert first[c.RUN_ID] == second[c.RUN_ID]


async def test_an_invalid_argument_is_named(exported):
    await make_agent(("ok", {"x": "abc"}), middleware=[ToolfaultMiddleware()]).ainvoke(HI)
    assert exported.records()[0][c.FIELD] == "x"


async def test_a_validation_error_of_the_tools_own_code_is_not_one_of_its_arguments(exported):
    @tool
    def parses(x: int) -> str:
        """Reads something that does not fit."""
        return TypeAdapter(int).validate_python("no number")

    agent = make_agent(("parses", {"x": 1}), middleware=[ToolfaultMiddleware()], tools=[parses])
    await agent.ainvoke(HI)
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 1, "unknown")]


# --- what is not the tool's -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ("approve", ("ok", None, None, 1, "applied")),
        ("reject", ("refused", "PERMISSION_DENIED", "rejected", 0, "none")),
    ],
)
async def test_a_call_that_waits_is_not_reported_until_a_person_has_decided(
    exported, thread, *, decision, expected, sync, mode
):
    agent = make_agent(
        ("ok", {"x": 1}),
        middleware=[
            ToolfaultMiddleware(),
            HumanInTheLoopMiddleware({"ok": True}, interrupt_mode=mode),
        ],
        checkpointer=InMemorySaver(),
    )
    waiting = await invoke(agent, sync=sync, config=thread)
    assert waiting["__interrupt__"]
    assert exported.told() == []
    decided = {"decisions": [{"type": decision}]} if mode == "batched" else {"type": decision}
    await invoke(agent, sync=sync, said=Command(resume=decided), config=thread)
    assert exported.told() == [expected]


async def test_an_interrupt_inside_of_a_tool_is_no_failure(exported, thread):
    @tool
    def asks(x: int) -> str:
        """Asks a person."""
        return f"said {interrupt('how many?')}"

    agent = make_agent(
        ("asks", {"x": 1}), middleware=[ToolfaultMiddleware()], tools=[asks],
        checkpointer=InMemorySaver(),
    )  # fmt: skip
    await agent.ainvoke(HI, thread)
    assert exported.told() == []
    done = await agent.ainvoke(Command(resume="2"), thread)
    assert answers(done) == ["said 2"]
    assert exported.told() == [("ok", None, None, 1, "applied")]


async def test_a_policy_that_answers_instead_of_the_tool_has_refused(exported):
    class Policy(AgentMiddleware):
        async def awrap_tool_call(self, request, handler):
            return ToolMessage("no", tool_call_id=request.tool_call["id"], status="error")

    agent = make_agent(("ok", {"x": 1}), middleware=[ToolfaultMiddleware(), Policy()])
    await agent.ainvoke(HI)
    assert exported.told() == [("refused", "PERMISSION_DENIED", "not_permitted", 0, "none")]


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("limit", "recursion_limit", "raised"),
    [
        (ToolCallLimitMiddleware(run_limit=1), 14, GraphRecursionError),
        (ToolCallLimitMiddleware(run_limit=1, exit_behavior="end"), 99, None),
        (ToolCallLimitMiddleware(run_limit=1, exit_behavior="error"), 99, ToolCallLimitExceededError),
        (ModelCallLimitMiddleware(run_limit=2), 99, None),
        (ModelCallLimitMiddleware(run_limit=2, exit_behavior="error"), 99, ModelCallLimitExceededError),
        (None, 5, GraphRecursionError),
    ],
    ids=["tool-continue", "tool-end", "tool-error", "model-end", "model-error", "recursion"],
)  # fmt: skip
async def test_a_run_that_reaches_its_limit_is_one_event_of_its_own(
    exported, limit, recursion_limit, raised, sync
):
    middleware = [ToolfaultMiddleware(), *([limit] if limit else [])]
    agent = make_agent(("ok", {"x": 1}), middleware=middleware, forever=True)
    config = {"recursion_limit": recursion_limit}
    if raised is None:
        await invoke(agent, sync=sync, config=config)
    else:
        with pytest.raises(raised):
            await invoke(agent, sync=sync, config=config)
    [event] = exported.named(c.RUN_LIMIT_EXCEEDED)
    assert event.attributes[c.AGENT_NAME] == "desk"
    assert {told[0] for told in exported.told()} == {"ok"}


async def test_an_unknown_tool_an_unmapped_error_and_a_generic_message_are_events_as_well(exported):
    agent = make_agent(
        ("nope", {"x": 1}), ("generic", {"x": 1}), ("boom", {"x": 1}),
        middleware=[ToolfaultMiddleware()],
    )  # fmt: skip
    with pytest.raises(ValueError, match=SECRET):
        await agent.ainvoke(HI)
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.UNREGISTERED_TOOL)] == ["nope"]
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.GENERIC_ERROR)] == ["generic"]
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.BACKSTOP_REACHED)] == ["boom"]


async def test_the_tools_the_model_is_offered_are_declared_and_the_authors_word_wins(exported):
    read_only = ok.model_copy(
        update={"name": "reads", "metadata": {"readOnlyHint": True, "idempotentHint": True}}
    )
    middleware = ToolfaultMiddleware(tools=[Declared(name="ok", writes=False)])
    agent = make_agent(("ok", {"x": 1}), middleware=[middleware], tools=[*TOOLS, read_only])
    await agent.ainvoke(HI)
    declared = {
        e.attributes[c.TOOL_NAME]: e.attributes[c.WRITES] for e in exported.named(c.TOOL_DECLARED)
    }
    assert set(declared) >= {tool.name for tool in TOOLS}
    assert declared["ok"] is declared["reads"] is False
    assert declared["boom"] is True
    assert exported.told() == [("ok", None, None, 1, "none")]


async def test_an_observing_middleware_leaves_the_agents_graph_and_state_alone(exported):
    plain = make_agent(("ok", {"x": 1}), middleware=[])
    hooked = make_agent(("ok", {"x": 1}), middleware=[ToolfaultMiddleware()])
    assert set(hooked.nodes) == set(plain.nodes)
    assert set(hooked.channels) == set(plain.channels)
    assert answers(await hooked.ainvoke(HI)) == answers(await plain.ainvoke(HI)) == ["v1"]


# --- acting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False])
async def test_an_acting_middleware_gives_the_model_the_envelope(exported, sync):
    steps = [
        (name, {"x": 1}) for name in ("ok", "boom", "declines", "nope", "book", "told_handled")
    ]
    agent = make_agent(*steps, middleware=[ToolfaultMiddleware(act=True)])
    told = [json.loads(content) for content in answers(await invoke(agent, sync=sync))]
    good, broken, declined, unknown, guarded, handled = told
    assert good == {"status": "ok", "output": "v1"}
    assert_envelope(broken, code="INTERNAL", action="stop_and_tell_user")
    assert SECRET not in str(broken)
    assert_envelope(declined, status="declined")
    assert_envelope(unknown, code="NOT_FOUND", action="stop_and_tell_user")
    assert guarded == {"status": "ok", "output": {"booked": 1}}
    assert_envelope(handled, code="INTERNAL")
    assert [told[0] for told in exported.told()] == [
        "ok", "failed", "declined", "not_found", "ok", "failed",
    ]  # fmt: skip


@pytest.mark.parametrize("sync", [True, False])
async def test_an_acting_middleware_repeats_by_our_policy(exported, monkeypatch, sync):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    tries = []

    @tool
    def flaky(x: int) -> str:
        """Works the second time."""
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    acting = ToolfaultMiddleware(act=True, max_attempts=3)
    agent = make_agent(("flaky", {"x": 1}), middleware=[acting], tools=[flaky])
    [told] = answers(await invoke(agent, sync=sync))
    assert json.loads(told) == {"status": "ok", "output": "fine"}
    assert exported.told() == [("ok", None, None, 2, "applied")]
    assert len(exported.tool_spans()) == 1


async def test_a_call_that_is_cancelled_between_two_attempts_is_reported_as_cancelled(
    exported, monkeypatch
):
    waiting = asyncio.Event()

    def backoff(attempt, retry_after=None):
        waiting.set()
        return 20.0

    monkeypatch.setattr("toolfault.retry.backoff", backoff)
    acting = ToolfaultMiddleware(act=True, max_attempts=3)
    agent = make_agent(("refused_connection", {"x": 1}), middleware=[acting])
    run = asyncio.create_task(agent.ainvoke(HI))
    await waiting.wait()
    await asyncio.sleep(0.1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert exported.told() == [("cancelled", None, None, 1, "none")]


async def test_the_budget_of_an_acting_middleware_lives_on_the_agents_state(exported, thread):
    agent = make_agent(
        *numbered(("refused_connection", {"x": 1}), ("refused_connection", {"x": 1})),
        middleware=[ToolfaultMiddleware(act=True)],
        checkpointer=InMemorySaver(),
    )
    first, second = (json.loads(told) for told in answers(await agent.ainvoke(HI, thread)))
    assert_envelope(first, action="retry_later")
    assert_envelope(second, action="stop_and_tell_user")
    kept = agent.get_state(thread).values["toolfault_failures"]
    assert kept == {"toolfault.failures:refused_connection": 2}
    assert len(exported.named(c.BUDGET_EXHAUSTED)) == 1


# --- whose span -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "opened"), [("auto", 1), ("always", 1), ("never", 0)])
async def test_whose_span_carries_the_record_is_ones_choice(exported, span, opened):
    agent = make_agent(("ok", {"x": 1}), middleware=[ToolfaultMiddleware(span=span)])
    await agent.ainvoke(HI)
    assert len(exported.records()) == 1
    assert len(exported.tool_spans()) == opened


async def test_what_a_tool_does_is_inside_of_the_span_of_its_call(exported):
    @tool
    async def traced(x: int) -> str:
        """Does something that is traced."""
        with trace.get_tracer("app").start_as_current_span("inner"):
            return "v"

    agent = make_agent(("traced", {"x": 1}), middleware=[ToolfaultMiddleware()], tools=[traced])
    await agent.ainvoke(HI)
    inner, outer = exported.spans
    assert (inner.name, outer.name) == ("inner", "execute_tool traced")
    assert inner.parent.span_id == outer.context.span_id


# --- the page and the example ---------------------------------------------------------------------


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("langchain_agent.py")


@pytest.mark.parametrize("heading", ["LangChain", "LangGraph"])
def test_the_lines_of_the_page_run(assert_lines_of_the_page_run, heading):
    assert_lines_of_the_page_run(heading)
