"""What a hook adds to one tool call of an agent, beside the same agent without it, in one run.

    python benchmarks/hooks.py             # every framework, each in its environment
    python benchmarks/hooks.py strands     # one

The environments are those of `make test-hooks`. The model is a stub and the tool does nothing, so
what remains is the framework's own loop: the least there is to hide behind.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROUNDS, CALLS = 15, 20
Agent = Callable[[], Awaitable[object]]


def ping(x: int) -> str:
    """Answers."""
    return "pong"


def adk(*, hooked: bool) -> Agent:
    from google.adk.agents import LlmAgent
    from google.adk.apps import App
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from toolfault.hooks.adk import ToolfaultPlugin

    class Stub(BaseLlm):
        turn: int = 0

        async def generate_content_async(self, llm_request, stream=False):
            self.turn += 1
            part = types.Part(text="done")
            if self.turn <= CALLS:
                part = types.Part(function_call=types.FunctionCall(name="ping", args={"x": 1}))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    async def run():
        agent = LlmAgent(name="a", model=Stub(model="stub"), tools=[ping])
        plugins = [ToolfaultPlugin()] if hooked else []
        runner = InMemoryRunner(app=App(name="app", root_agent=agent, plugins=plugins))
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        asked = types.Content(role="user", parts=[types.Part(text="hi")])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=asked):
            pass

    return run


def pydantic_ai(*, hooked: bool) -> Agent:
    from pydantic_ai import Agent as Framework
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from toolfault.hooks.pydantic_ai import ToolfaultCapability

    def model(messages, info):
        done = len(messages) > 2 * CALLS
        return ModelResponse(parts=[TextPart("done") if done else ToolCallPart("ping", {"x": 1})])

    hooks = [ToolfaultCapability()] if hooked else []
    agent = Framework(FunctionModel(model), tools=[ping], capabilities=[*hooks, Instrumentation()])
    return lambda: agent.run("hi")


def strands(*, hooked: bool) -> Agent:
    from strands import Agent as Framework
    from strands import tool
    from strands.models.model import Model

    from toolfault.hooks.strands import ToolfaultHooks

    class Stub(Model):
        turn = 0

        def update_config(self, **config):
            pass

        def get_config(self):
            return {}

        def structured_output(self, *args, **kwargs):
            raise NotImplementedError

        async def stream(self, *args, **kwargs):
            self.turn += 1
            more = self.turn <= CALLS
            use = {"toolUse": {"name": "ping", "toolUseId": f"call-{self.turn}"}}
            delta = {"toolUse": {"input": json.dumps({"x": 1})}} if more else {"text": "done"}
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockStart": {"start": use if more else {}}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use" if more else "end_turn"}}

    def run():
        hooks = [ToolfaultHooks()] if hooked else []
        agent = Framework(model=Stub(), tools=[tool(ping)], hooks=hooks, callback_handler=None)
        return agent.invoke_async("hi")

    return run


def mcp(*, hooked: bool) -> Agent:
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    from toolfault.hooks.mcp import instrument_server

    server = MCPServer("desk")
    server.tool()(ping)
    if hooked:
        instrument_server(server)

    async def run():
        async with Client(server) as client:
            for _ in range(CALLS):
                await client.call_tool("ping", {"x": 1})

    return run


def fastmcp(*, hooked: bool) -> Agent:
    from fastmcp import Client, FastMCP

    from toolfault.hooks.fastmcp import ToolfaultMiddleware

    server = FastMCP("desk", middleware=[ToolfaultMiddleware()] if hooked else [])
    server.tool(ping)

    async def run():
        async with Client(server) as client:
            for _ in range(CALLS):
                await client.call_tool("ping", {"x": 1})

    return run


def langchain(*, hooked: bool) -> Agent:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    from toolfault.hooks.langchain import ToolfaultMiddleware

    class Stub(GenericFakeChatModel):
        def bind_tools(self, tools, **kwargs):
            return self

    def said():
        for n in range(CALLS):
            yield AIMessage("", tool_calls=[{"name": "ping", "args": {"x": 1}, "id": f"call-{n}"}])
        yield AIMessage("done")

    def run():
        hooks = [ToolfaultMiddleware()] if hooked else []
        agent = create_agent(Stub(messages=said()), [tool(ping)], middleware=hooks)
        return agent.ainvoke({"messages": [("user", "hi")]}, {"recursion_limit": 99})

    return run


def openai_agents(*, hooked: bool) -> Agent:
    from agents import Agent as Framework
    from agents import RunConfig, Runner, function_tool, set_trace_processors
    from agents.testing import ScriptedModel, assistant_message, function_call

    from toolfault.hooks.openai_agents import ToolfaultHooks

    set_trace_processors([])
    hooks = ToolfaultHooks() if hooked else None

    def run():
        said = [[function_call("ping", '{"x": 1}', call_id=f"call-{n}")] for n in range(CALLS)]
        model = ScriptedModel([*said, [assistant_message("done")]])
        agent = Framework(name="a", model=model, tools=[function_tool(ping)])
        config = hooks.run_config() if hooks else RunConfig()
        return Runner.run(agent, "hi", hooks=hooks, run_config=config, max_turns=CALLS + 1)

    return run


FRAMEWORKS = {
    make.__name__: make
    for make in (adk, pydantic_ai, langchain, openai_agents, strands, mcp, fastmcp)
}


def use_sdk() -> None:
    """An SDK that takes everything and sends it nowhere: the cost of exporting is not the hook's."""
    from opentelemetry import _logs, trace
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    _logs.set_logger_provider(LoggerProvider())


async def seconds_per_call(run: Agent) -> float:
    gc.collect()
    began = time.process_time()  # a neighbour on the machine does not count
    await run()
    return (time.process_time() - began) / CALLS


async def measure(name: str) -> None:
    use_sdk()
    logging.disable()
    make = FRAMEWORKS[name]
    without, hooked = make(hooked=False), make(hooked=True)
    await without()
    await hooked()
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(await seconds_per_call(without))
        ours.append(await seconds_per_call(hooked))
    base, with_hook = statistics.median(bare) * 1e6, statistics.median(ours) * 1e6
    added = statistics.median(b - a for a, b in zip(bare, ours, strict=True)) * 1e6
    print(
        f"{name:15}{base:10.0f}{with_hook:10.0f}{added:10.0f}{with_hook / base:10.3f}", flush=True
    )


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--here":
        asyncio.run(measure(sys.argv[2]))
        return
    print(
        f"{'CPU us per call':15}{'without':>10}{'hooked':>10}{'added':>10}{'ratio':>10}", flush=True
    )
    for name in sys.argv[1:] or FRAMEWORKS:
        python = ROOT / ".venvs" / name / "bin" / "python"
        if not python.exists():
            sys.exit(f"{python} is missing; make it with: make test-hooks-{name}")
        subprocess.run([python, __file__, "--here", name], check=True)


if __name__ == "__main__":
    main()
