"""LangGraph without an agent's middleware: the handler alone, the wrappers, the whole process."""

import asyncio
import json

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command
from tests.hooks.langchain.stub import HI, SECRET, TOOLS, Stub, answers, make_agent, ok, script

import toolfault
from toolfault import conventions as c
from toolfault.hooks.base import Observer
from toolfault.hooks.langchain import ToolfaultMiddleware
from toolfault.hooks.langgraph import ToolfaultHandler, wrappers
from toolfault.telemetry import report
from toolfault.testing import assert_envelope


def make_graph(*steps, tools=TOOLS, **around):
    """An agent made by hand: a model, a node of tools, and back."""
    model = Stub(messages=script(*steps))
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools, **around))
    graph.set_entry_point("model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


async def invoke(graph, *, sync, config=None, said=HI):
    if sync:
        return await asyncio.to_thread(graph.invoke, said, config)
    return await graph.ainvoke(said, config)


@pytest.fixture
def whole_process():
    toolfault.instrument()
    toolfault.instrument()
    yield
    toolfault.uninstrument()


EXPECTED = [
    ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
    ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
    ("told_handled", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
    ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
    ("boom", {"x": 1}, ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
]


async def survives(running):
    try:
        await running
    except ValueError:
        return


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(("name", "args", "expected"), EXPECTED)
async def test_the_handler_alone_sees_every_call_once(exported, name, args, expected, *, sync):
    config = {"callbacks": [ToolfaultHandler()]}
    await survives(invoke(make_graph((name, args)), sync=sync, config=config))
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(("name", "args", "expected"), EXPECTED)
async def test_the_wrappers_see_every_call_once(exported, name, args, expected, *, sync):
    await survives(invoke(make_graph((name, args), **wrappers()), sync=sync))
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("make", [make_graph, lambda call: make_agent(call, middleware=[])])
@pytest.mark.parametrize(("name", "args", "expected"), EXPECTED)
async def test_the_hooked_process_sees_every_call_once(
    exported, whole_process, name, args, expected, *, make, sync
):
    await survives(invoke(make((name, args)), sync=sync))
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


async def test_a_process_that_is_no_longer_hooked_is_left_alone(exported):
    assert "langgraph" in toolfault.instrument()
    toolfault.uninstrument()
    await make_graph(("ok", {"x": 1})).ainvoke(HI)
    assert exported.told() == []


async def test_a_sync_wrapper_of_the_applications_own_is_kept_in_async_runs(
    exported, whole_process
):
    seen = []

    def theirs(request, execute):
        seen.append(request.tool_call["name"])
        return execute(request)

    graph = make_graph(("ok", {"x": 1}), wrap_tool_call=theirs)
    assert answers(await graph.ainvoke(HI)) == ["v1"]
    assert seen == ["ok"]
    assert exported.told() == [("ok", None, None, 1, "applied")]


@pytest.mark.parametrize("hooked", ["handler", "process", "process and middleware"])
async def test_retries_of_the_framework_are_attempts_of_one_call(exported, hooked):
    config, retry = None, ToolRetryMiddleware(max_retries=1, initial_delay=0)
    middleware = [retry]
    if hooked == "handler":
        config = {"callbacks": [ToolfaultHandler()]}
    else:
        toolfault.instrument()
    if hooked == "process and middleware":
        middleware = [retry, ToolfaultMiddleware()]  # in the wrong order
    try:
        agent = make_agent(("refused_connection", {"x": 1}), middleware=middleware)
        await agent.ainvoke(HI, config)
    finally:
        toolfault.uninstrument()
    assert exported.told() == [("failed", "UNAVAILABLE", "upstream_unavailable", 2, "none")]


async def test_a_middleware_behind_one_that_repeats_tools_asks_to_be_put_first(exported, caplog):
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0)
    agent = make_agent(("boom", {"x": 1}), middleware=[retry, ToolfaultMiddleware()])
    await agent.ainvoke(HI)
    [logged] = [r for r in caplog.records if r.name.startswith("toolfault")]
    assert "put ToolfaultMiddleware first" in logged.message


async def test_a_middleware_in_a_hooked_process_acts_and_counts_once(exported, whole_process):
    agent = make_agent(("boom", {"x": 1}), middleware=[ToolfaultMiddleware(act=True)])
    [told] = answers(await agent.ainvoke(HI))
    assert_envelope(json.loads(told), code="INTERNAL", action="stop_and_tell_user")
    assert SECRET not in told
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 1, "unknown")]


async def test_a_rejection_is_seen_in_a_hooked_process(exported, whole_process):
    agent = make_agent(
        ("ok", {"x": 1}),
        middleware=[HumanInTheLoopMiddleware({"ok": True})],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "rejected in a hooked process"}}
    await agent.ainvoke(HI, config)
    assert exported.told() == []
    await agent.ainvoke(Command(resume={"decisions": [{"type": "reject"}]}), config)
    assert exported.told() == [("refused", "PERMISSION_DENIED", "rejected", 0, "none")]


async def test_a_run_limit_is_seen_in_a_hooked_process(exported, whole_process):
    agent = make_agent(("ok", {"x": 1}), middleware=[], forever=True)
    with pytest.raises(GraphRecursionError):
        await agent.ainvoke(HI, {"recursion_limit": 4})
    assert len(exported.named(c.RUN_LIMIT_EXCEEDED)) == 1


def test_a_tool_called_outside_of_any_graph_is_a_call_and_one_it_uses_itself_is_not(exported):
    @tool
    def outer(x: int) -> str:
        """Uses another tool."""
        return ok.invoke({"x": x})

    call = {"type": "tool_call", "name": "outer", "args": {"x": 1}, "id": "bare-1"}
    outer.invoke(call, {"callbacks": [ToolfaultHandler()]})
    [record] = exported.records()
    assert (record[c.TOOL_NAME], record[c.OUTCOME]) == ("outer", "ok")


async def test_an_agent_used_as_a_tool_is_a_call_and_so_are_the_calls_it_makes(exported):
    inner = make_agent(("book", {"x": 1}), middleware=[ToolfaultMiddleware()])

    @tool
    async def ask_desk(x: int) -> str:
        """Asks another agent."""
        return (await inner.ainvoke(HI))["messages"][-1].content

    agent = make_agent(("ask_desk", {"x": 1}), middleware=[ToolfaultMiddleware()], tools=[ask_desk])
    await agent.ainvoke(HI)
    assert [r[c.TOOL_NAME] for r in exported.records()] == ["book", "ask_desk"]
    assert len({r[c.RUN_ID] for r in exported.records()}) == 1


async def test_a_fault_of_the_hook_is_counted_and_the_agent_goes_on(exported, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("a fault of ours")

    before = report.faults()
    monkeypatch.setattr(Observer, "open", broken)
    agent = make_agent(("ok", {"x": 1}), middleware=[ToolfaultMiddleware()])
    done = await agent.ainvoke(HI)
    assert isinstance(done["messages"][-1], AIMessage)
    assert answers(done) == ["v1"]
    assert exported.told() == []
    assert report.faults() > before
    report._Faults.count = before
