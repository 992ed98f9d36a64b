"""OpenInference and OpenLLMetry beside the hook: one call is counted once, on their span."""

import asyncio
from contextlib import suppress

import pytest
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.callbacks import BaseCallbackManager
from langgraph.pregel import Pregel
from langgraph.types import Command
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from tests.hooks.langchain.stub import HI, make_agent

import toolfault
from toolfault import conventions as c
from toolfault.hooks.langchain import ToolfaultMiddleware
from toolfault.hooks.langgraph import ToolfaultHandler

WRAPPED = (BaseCallbackManager, AgentMiddleware, Pregel, Command)
THEIRS = {
    "openinference": (LangChainInstrumentor, "openinference.span.kind", "TOOL"),
    "openllmetry": (LangchainInstrumentor, "traceloop.span.kind", "tool"),
}


@pytest.fixture(params=THEIRS)
def theirs(request):
    """Their instrumentation, on; gives how their spans of tools are known."""
    instrumentor, key, kind = THEIRS[request.param]
    before = [(cls, dict(vars(cls))) for cls in WRAPPED]
    instrumentor().instrument()
    yield lambda spans: [span for span in spans if (span.attributes or {}).get(key) == kind]
    instrumentor().uninstrument()
    for cls, attributes in before:  # OpenLLMetry leaves its wrappers behind
        for name, value in attributes.items():
            if vars(cls)[name] is not value:
                setattr(cls, name, value)


@pytest.fixture(params=["middleware", "process"])
def hooked(request):
    """Makes an agent that is hooked in one of two ways."""
    if request.param == "process":
        toolfault.instrument()
    ours = [ToolfaultMiddleware()] if request.param == "middleware" else []
    yield lambda *steps, also=(): make_agent(*steps, middleware=[*ours, *also])
    toolfault.uninstrument()


async def run(agent, *, sync, config=None):
    with suppress(ValueError):
        if sync:
            await asyncio.to_thread(agent.invoke, HI, config)
        else:
            await agent.ainvoke(HI, config)


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("ok", ("ok", None, None, 1, "applied")),
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
        ("book", ("ok", None, None, 1, "applied")),
        ("told_handled", ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ],
)
async def test_a_call_is_counted_once_and_their_span_carries_it(
    exported, theirs, hooked, tool, expected, *, sync
):
    await run(hooked((tool, {"x": 1})), sync=sync)
    assert exported.told() == [expected]
    [span] = theirs(exported.spans)
    assert span.attributes[c.OUTCOME] == expected[0]
    assert [s for s in exported.spans if s.instrumentation_scope.name == "toolfault"] == []


async def test_async_tools_are_counted_once_too(exported, theirs, hooked):
    await run(hooked(("aok", {"x": 1})), sync=False)
    [span] = theirs(exported.spans)
    assert exported.told() == [("ok", None, None, 1, "applied")]
    assert span.attributes[c.OUTCOME] == "ok"


async def test_with_the_handler_alone_a_success_is_on_their_span_and_a_failure_names_it(
    exported, theirs
):
    config = {"callbacks": [ToolfaultHandler()]}
    await run(
        make_agent(("ok", {"x": 1}), ("boom", {"x": 1}), middleware=[]), sync=False, config=config
    )
    good, broken = theirs(exported.spans)
    assert good.attributes[c.OUTCOME] == "ok"
    [event] = exported.named(c.TOOL_ERROR)  # their span has ended when nobody repeats it any more
    assert event.span_id == broken.context.span_id
    assert [told[0] for told in exported.told()] == ["ok", "failed"]


async def test_each_attempt_has_a_span_of_theirs_and_the_call_one_record(exported, theirs, hooked):
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0)
    await run(hooked(("boom", {"x": 1}), also=[retry]), sync=False)
    assert len(theirs(exported.spans)) == 2
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 2, "unknown")]


async def test_a_call_that_never_ran_has_a_span_of_ours(exported, theirs, hooked):
    await run(hooked(("nope", {"x": 1})), sync=False)
    assert exported.told() == [("not_found", "NOT_FOUND", "unknown_tool", 0, "none")]
    assert theirs(exported.spans) == []
