"""OpenAI Agents SDK: a real agent loop with a stub model, every way a tool call can go."""

import asyncio
import json

import pytest
from agents import (
    Agent,
    AgentHooks,
    RunConfig,
    Runner,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    UserError,
    function_tool,
    trace,
)
from agents.exceptions import MaxTurnsExceeded, ModelBehaviorError, ToolTimeoutError
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as McpTool
from opentelemetry import trace as otel
from tests.hooks.openai_agents.stub import SECRET, TOOLS, answers, make_agent

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool as Declared
from toolfault.hooks.base import Observer
from toolfault.hooks.openai_agents import ToolfaultHooks
from toolfault.telemetry import report
from toolfault.testing import assert_envelope


async def run(agent, *, said="hi", hooks=None, config=None, how="async", **options):
    hooks = hooks or ToolfaultHooks()
    options |= {"hooks": hooks, "run_config": hooks.run_config(config)}
    if how == "sync":
        return await asyncio.to_thread(in_a_thread, Runner.run_sync, agent, said, options)
    if how == "streamed":
        streamed = Runner.run_streamed(agent, said, **options)
        async for _ in streamed.stream_events():
            pass
        return streamed
    return await Runner.run(agent, said, **options)


def in_a_thread(run_sync, agent, said, options):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return run_sync(agent, said, **options)
    finally:
        loop.close()


@pytest.mark.parametrize("how", ["async", "sync", "streamed"])
@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("aok", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
        ("boom", {"x": 1}, ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
        (
            "refused_connection",
            {"x": 1},
            ("failed", "UNAVAILABLE", "upstream_unavailable", 1, "none"),
        ),
        ("boom_told", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("declines", {"x": 1}, ("declined", "CONFLICT", "slot_taken", 1, "none")),
        ("slow", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
        ("slow_book", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
        ("own_timeout", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
        ("error_dict", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("gives_up", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
        ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
        ("ok", "{not json", ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
        ("barred", {"x": 1}, ("refused", "PERMISSION_DENIED", "not_permitted", 0, "none")),
    ],
)
async def test_a_call_the_run_survives_has_one_record_and_one_span(
    exported, tool, args, expected, how
):
    await run(make_agent((tool, args)), how=how)
    assert exported.told() == [expected]
    [span] = exported.tool_spans()
    assert span.attributes[c.OUTCOME] == expected[0]
    assert span.attributes[c.TOOL_CALL_ID] == "call-1"


@pytest.mark.parametrize("how", ["async", "sync", "streamed"])
@pytest.mark.parametrize(
    ("tool", "expected", "raised"),
    [
        ("boom_raises", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown"), UserError),
        ("slow_raises", ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown"), ToolTimeoutError),
        ("barred_raises", ("refused", "PERMISSION_DENIED", "not_permitted", 0, "none"), ToolInputGuardrailTripwireTriggered),
        ("unfit_raises", ("failed", "INTERNAL", "invalid_result", 1, "applied"), ToolOutputGuardrailTripwireTriggered),
        ("nope", ("not_found", "NOT_FOUND", "unknown_tool", 0, "none"), ModelBehaviorError),
    ],
)  # fmt: skip
async def test_an_exception_still_ends_the_run_and_has_one_record(
    exported, tool, expected, raised, how
):
    with pytest.raises(raised):
        await run(make_agent((tool, {"x": 1})), how=how)
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


async def test_an_unknown_tool_that_is_told_to_the_model_is_one_record_with_its_id(exported):
    config = RunConfig(tool_not_found_behavior="return_error_to_model")
    await run(make_agent(("nope", {"x": 1})), config=config)
    assert exported.told() == [("not_found", "NOT_FOUND", "unknown_tool", 0, "none")]
    assert exported.records()[0][c.TOOL_CALL_ID] == "call-1"
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.UNREGISTERED_TOOL)] == ["nope"]


@pytest.mark.parametrize("message", [None, "not today"])
@pytest.mark.parametrize(
    ("approved", "expected"),
    [
        (True, ("ok", None, None, 1, "applied")),
        (False, ("refused", "PERMISSION_DENIED", "rejected", 0, "none")),
    ],
)
async def test_a_call_that_waits_is_not_reported_until_a_person_has_decided(
    exported, approved, expected, message
):
    agent = make_agent(("pay", {"x": 1}))
    waiting = await run(agent)
    assert exported.told() == []
    state, [asked] = waiting.to_state(), waiting.interruptions
    if approved:
        state.approve(asked)
    else:
        state.reject(asked, rejection_message=message)
    await run(agent, said=state)
    assert exported.told() == [expected]
    assert exported.records()[0][c.TOOL_CALL_ID] == "call-1"


@pytest.mark.parametrize("how", ["async", "sync", "streamed"])
async def test_a_run_that_reaches_its_limit_is_one_event_of_its_own(exported, how):
    agent = make_agent(*[("ok", {"x": 1})] * 4)
    with pytest.raises(MaxTurnsExceeded):
        await run(agent, max_turns=2, how=how)
    [event] = exported.named(c.RUN_LIMIT_EXCEEDED)
    assert event.attributes[c.AGENT_NAME] == "desk"
    assert [told[0] for told in exported.told()] == ["ok", "ok"]


async def test_a_cancelled_call_is_reported_as_cancelled(exported):
    running = asyncio.Event()

    @function_tool
    async def endless(x: int) -> str:
        """Never ends."""
        running.set()
        await asyncio.sleep(60)
        return ""

    task = asyncio.create_task(run(make_agent(("endless", {"x": 1}), tools=[endless])))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


async def test_parallel_calls_are_told_apart(exported):
    calls = [
        function_call("ok", json.dumps({"x": 1}), call_id="one"),
        function_call("book", json.dumps({"x": 10}), call_id="two"),
    ]
    model = ScriptedModel([calls, [assistant_message("done")]])
    await run(Agent(name="desk", model=model, tools=TOOLS))
    told = {record[c.TOOL_CALL_ID]: record[c.OUTCOME] for record in exported.records()}
    assert told == {"one": "ok", "two": "failed"}


async def test_the_record_names_the_frameworks_conversation_run_and_agent(exported):
    with trace("desk", group_id="chat-1") as given:
        await run(make_agent(("ok", {"x": 1}), ("boom", {"x": 1})))
    first, second = exported.records()
    assert first[c.CONVERSATION_ID] == second[c.CONVERSATION_ID] == "chat-1"
    assert first[c.RUN_ID] == second[c.RUN_ID] == given.trace_id
    assert first[c.AGENT_NAME] == "desk"


async def test_a_tool_that_a_server_runs_is_an_extension(exported):
    class Server(MCPServer):
        name = "calendar"

        async def list_tools(self, *args):
            schema = {"type": "object", "properties": {}}
            return [McpTool(name="look", input_schema=schema)]

        async def call_tool(self, *args, **kwargs):
            return CallToolResult(content=[TextContent(type="text", text="fine")])

        async def connect(self): ...

        async def cleanup(self): ...

        async def list_prompts(self): ...

        async def get_prompt(self, *args): ...

    await run(make_agent(("look", {}), ("ok", {"x": 1}), mcp_servers=[Server()]))
    types = {span.attributes[c.TOOL_NAME]: span.attributes[c.TOOL_TYPE] for span in exported.spans}
    assert types == {"look": c.EXTENSION, "ok": c.FUNCTION}


async def test_an_unmapped_error_and_a_generic_message_are_events_as_well(exported):
    await run(make_agent(("generic", {"x": 1}), ("boom", {"x": 1})))
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.GENERIC_ERROR)] == ["generic"]
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.BACKSTOP_REACHED)] == ["boom"]


async def test_the_tools_of_an_agent_are_declared_and_the_authors_word_wins(exported):
    hooks = ToolfaultHooks(tools=[Declared(name="ok", writes=False)])
    await run(make_agent(("ok", {"x": 1})), hooks=hooks)
    declared = {
        e.attributes[c.TOOL_NAME]: e.attributes[c.WRITES] for e in exported.named(c.TOOL_DECLARED)
    }
    assert set(declared) >= {tool.name for tool in TOOLS}
    assert declared["ok"] is False
    assert exported.told() == [("ok", None, None, 1, "none")]


async def test_an_agent_used_as_a_tool_is_a_call_and_so_are_the_calls_it_makes(exported):
    inner = make_agent(("book", {"x": 1}))
    hooks = ToolfaultHooks()
    as_tool = inner.as_tool(
        "ask_desk", "Asks the desk.", hooks=hooks, run_config=hooks.run_config()
    )
    await run(make_agent(("ask_desk", {"input": "hi"}), tools=[as_tool]), hooks=hooks)
    assert [r[c.TOOL_NAME] for r in exported.records()] == ["book", "ask_desk"]


async def test_what_a_tool_does_is_inside_of_the_span_of_its_call(exported):
    @function_tool
    def traced(x: int) -> str:
        """Does something that is traced."""
        with otel.get_tracer("app").start_as_current_span("inner"):
            return "v"

    await run(make_agent(("traced", {"x": 1}), tools=[traced]))
    inner, outer = exported.spans
    assert (inner.name, outer.name) == ("inner", "execute_tool traced")
    assert inner.parent.span_id == outer.context.span_id


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("ok", ("ok", None, None, 1, "applied")),
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
        ("slow", ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
        ("barred", ("refused", "PERMISSION_DENIED", "not_permitted", 0, "none")),
    ],
)
async def test_most_is_seen_also_where_the_sdks_tracing_is_off(exported, tool, expected):
    await run(make_agent((tool, {"x": 1})), config=RunConfig(tracing_disabled=True))
    assert exported.told() == [expected]


async def test_the_applications_own_formatter_keeps_the_word(exported):
    config = RunConfig(tool_error_formatter=lambda args: "our own words")
    assert answers(await run(make_agent(("boom", {"x": 1})), config=config)) == ["our own words"]
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 1, "unknown")]


async def test_observing_hooks_change_nothing_the_model_reads(exported):
    names = ("ok", "boom", "boom_told", "slow", "declines", "error_dict")
    calls = [(name, {"x": 1}) for name in names]
    plain = await Runner.run(make_agent(*calls), "hi")
    hooked = await run(make_agent(*calls))
    assert answers(hooked) == answers(plain)


async def test_a_fault_of_the_hook_is_counted_and_the_agent_goes_on(exported, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("a fault of ours")

    before = report.faults()
    monkeypatch.setattr(Observer, "open", broken)
    assert answers(await run(make_agent(("ok", {"x": 1})))) == ["v1"]
    assert exported.told() == []
    assert report.faults() > before
    report._Faults.count = before


# --- acting ---------------------------------------------------------------------------------------


async def test_acting_hooks_give_the_model_the_envelope(exported):
    names = ("ok", "boom", "boom_raises", "declines", "slow", "book", "error_dict", "nope")
    config = RunConfig(tool_not_found_behavior="return_error_to_model")
    agent = make_agent(*[(name, {"x": 1}) for name in names])
    result = await run(agent, hooks=ToolfaultHooks(act=True), config=config)
    told = answers(result)
    assert told.pop(4) == "Tool 'slow' timed out after 0.05 seconds."  # said around the tool
    told = [json.loads(one) if isinstance(one, str) else one for one in told]
    good, broken, raised, declined, guarded, returned, unknown = told
    assert good == {"status": "ok", "output": "v1"}
    for one in (broken, raised):
        assert_envelope(one, code="INTERNAL", action="stop_and_tell_user")
        assert SECRET not in str(one)
    assert_envelope(declined, status="declined")
    assert guarded == {"status": "ok", "output": {"booked": 1}}
    assert_envelope(returned, code="INTERNAL")
    assert_envelope(unknown, code="NOT_FOUND", action="stop_and_tell_user")
    assert [told[0] for told in exported.told()] == [
        "ok", "failed", "failed", "declined", "timed_out", "ok", "failed", "not_found",
    ]  # fmt: skip


@pytest.mark.parametrize("failure", [{}, {"failure_error_function": None}])
async def test_acting_hooks_repeat_by_our_policy(exported, monkeypatch, failure):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    tries = []

    @function_tool(**failure)
    def flaky(x: int) -> str:
        """Works the second time."""
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    agent = make_agent(("flaky", {"x": 1}), tools=[flaky])
    [told] = answers(await run(agent, hooks=ToolfaultHooks(act=True, max_attempts=3)))
    assert json.loads(told) == {"status": "ok", "output": "fine"}
    assert exported.told() == [("ok", None, None, 2, "applied")]
    assert len(exported.tool_spans()) == 1


async def test_the_budget_of_a_conversation_is_counted_and_told_once(exported):
    agent = make_agent(*[("refused_connection", {"x": 1})] * 2)
    with trace("desk", group_id="chat-2"):
        result = await run(agent, hooks=ToolfaultHooks(act=True))
    first, second = (json.loads(told) for told in answers(result))
    assert_envelope(first, action="retry_later")
    assert_envelope(second, action="stop_and_tell_user")
    assert len(exported.named(c.BUDGET_EXHAUSTED)) == 1


# --- the whole process ----------------------------------------------------------------------------


@pytest.fixture
def whole_process():
    assert "openai_agents" in toolfault.instrument()
    toolfault.instrument()
    yield
    toolfault.uninstrument()


async def test_the_hooked_process_sees_every_call_once(exported, whole_process):
    calls = [(name, {"x": 1}) for name in ("ok", "boom", "slow", "barred", "book")]
    await Runner.run(make_agent(*calls), "hi")
    assert [told[0] for told in exported.told()] == ["ok", "failed", "timed_out", "refused", "ok"]
    assert len(exported.tool_spans()) == 5


async def test_a_run_limit_and_an_unknown_tool_are_seen_in_a_hooked_process(
    exported, whole_process
):
    with pytest.raises(MaxTurnsExceeded):
        await Runner.run(make_agent(*[("ok", {"x": 1})] * 4), "hi", max_turns=2)
    with pytest.raises(ModelBehaviorError):
        await Runner.run(make_agent(("nope", {"x": 1})), "hi")
    assert len(exported.named(c.RUN_LIMIT_EXCEEDED)) == 1
    assert [told[0] for told in exported.told()] == ["ok", "ok", "not_found"]


async def test_hooks_in_a_hooked_process_act_and_count_once(exported, whole_process):
    agent = make_agent(("boom", {"x": 1}), ("barred", {"x": 1}))
    first, _ = answers(await run(agent, hooks=ToolfaultHooks(act=True)))
    assert_envelope(json.loads(first), code="INTERNAL", action="stop_and_tell_user")
    assert [told[0] for told in exported.told()] == ["failed", "refused"]


async def test_hooks_of_the_agents_own_are_asked_in_a_hooked_process(exported, whole_process):
    heard = []

    class Own(AgentHooks):
        async def on_tool_end(self, context, agent, tool, result):
            heard.append(result)

    await Runner.run(make_agent(("ok", {"x": 1}), hooks=Own()), "hi")
    assert heard == ["v1"]
    assert exported.told() == [("ok", None, None, 1, "applied")]


async def test_a_process_that_is_no_longer_hooked_is_left_alone(exported):
    toolfault.instrument()
    toolfault.uninstrument()
    await Runner.run(make_agent(("ok", {"x": 1})), "hi")
    assert exported.told() == []


# --- whose span -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "opened"), [("auto", 1), ("always", 1), ("never", 0)])
async def test_whose_span_carries_the_record_is_ones_choice(exported, span, opened):
    await run(make_agent(("ok", {"x": 1})), hooks=ToolfaultHooks(span=span))
    assert len(exported.records()) == 1
    assert len(exported.tool_spans()) == opened


# --- the page and the example ---------------------------------------------------------------------


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("openai_agent.py")


def test_the_lines_of_the_page_run(assert_lines_of_the_page_run):
    assert_lines_of_the_page_run("OpenAI Agents SDK")
