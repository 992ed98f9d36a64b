"""LangChain: a real agent loop with a stub model, every way a tool call can go."""

import asyncio
import json
import sys
from pathlib import Path

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

sys.path.insert(0, str(Path(__file__).parent))

from stub import HI, SECRET, TOOLS, answers, calling, make_agent, numbered, ok

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool as Declared
from toolfault.hooks.langchain import ToolfaultMiddleware
from toolfault.testing import assert_envelope

THREAD = {"configurable": {"thread_id": "t-1"}}


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
