"""OpenAI Agents SDK: run hooks, and a run configuration.

from toolfault.hooks.openai_agents import ToolfaultHooks

hooks = ToolfaultHooks()
await Runner.run(agent, "hi", hooks=hooks, run_config=hooks.run_config())
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from typing import Any

from agents import (
    Agent,
    AgentHooks,
    RunConfig,
    RunHooks,
    ToolErrorFormatterArgs,
    TracingProcessor,
    add_trace_processor,
)
from agents.exceptions import ModelBehaviorError
from agents.tool_context import ToolContext

from toolfault.envelope import Envelope
from toolfault.errors import ToolNotFoundError, ToolNotPermittedError
from toolfault.hooks import openai_agents_models as models
from toolfault.hooks.base import never_raises
from toolfault.hooks.openai_agents_calls import SEAM, ToolCalls
from toolfault.hooks.openai_agents_told import trace_id
from toolfault.hooks.patch import after_init, with_arguments
from toolfault.telemetry.declared import Tool

__all__ = ["ToolfaultHooks", "instrument"]

#: What the SDK's spans tell of a run that ends; they carry no exception.
TOOL_NOT_FOUND = "Tool not found"
MAX_TURNS = "Max turns exceeded"


class Formatter:
    """Asked by the SDK what the model is to read of an error.

    Args:
        calls: who sees it.
        theirs: the application's own formatter.
    """

    def __init__(self, calls: ToolCalls, theirs: Any = None) -> None:
        self.calls = calls
        self._theirs = theirs

    async def __call__(self, args: ToolErrorFormatterArgs[Any]) -> str | None:
        """Our envelope where we act, else what the application says."""
        answer = self._seen(args)
        if answer is not None:
            return json.dumps(answer, default=str)
        told = self._theirs(args) if self._theirs is not None else None
        said: str | None = await told if inspect.isawaitable(told) else told
        return said

    @never_raises
    def _seen(self, args: ToolErrorFormatterArgs[Any]) -> Envelope | None:
        context, name = args.run_context, args.tool_name
        if args.kind == "tool_exception":
            return self.calls.raised(context, args.error) if args.error is not None else None
        unknown = args.kind == "tool_not_found"
        error = ToolNotFoundError(name) if unknown else ToolNotPermittedError(name, "rejected")
        return self.calls.never_ran(context, name, args.call_id, error)


class _Seams:
    """What run hooks and the hooks of an agent have in common."""

    calls: ToolCalls

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        """The model is asked; what it reads tells of calls that never ran."""
        self.calls.read(context, input_items)
        models.asks(agent, self.calls.run_of(context, agent))

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """The model has answered."""
        models.answered(response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """The tool runs next."""
        self.calls.starts(context, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """The model gets an answer."""
        self.calls.returned(context, tool, result)

    def _begins(self, agent: Any) -> None:
        SPANS.watch(trace_id(), self.calls)
        named = (getattr(tool, "name", None) for tool in agent.tools)
        self.calls.observer.declare(Tool(name=name) for name in named if name)


class ToolfaultHooks(_Seams, RunHooks[Any]):
    """Sees the tool calls of a run, together with `run_config`.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self.calls = ToolCalls(**options)
        after_init(ToolContext, _opens)
        SPANS.add()

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """The configuration of a run, with a formatter that sees the errors of its tools.

        Args:
            config: the application's own; its formatter still has the word.
        """
        config = config or RunConfig()
        theirs = config.tool_error_formatter
        if isinstance(theirs, Formatter):
            theirs = None  # of the hooked process; the nearer options count
        return dataclasses.replace(config, tool_error_formatter=Formatter(self.calls, theirs))

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """Announce the agent's tools."""
        self._begins(agent)


class _AgentHooks(_Seams, AgentHooks[Any]):
    """For every agent of a process; the application's own hooks are asked as well."""

    def __init__(self, calls: ToolCalls, theirs: Any) -> None:
        self.calls = calls
        self._theirs = theirs or AgentHooks()

    async def on_start(self, context: Any, agent: Any) -> None:
        """Announce the agent's tools."""
        self._begins(agent)
        await self._theirs.on_start(context, agent)

    async def on_llm_start(
        self, context: Any, agent: Any, system_prompt: str | None, input_items: list[Any]
    ) -> None:
        """The model is asked; what it reads tells of calls that never ran."""
        await super().on_llm_start(context, agent, system_prompt, input_items)
        await self._theirs.on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """The model has answered."""
        await super().on_llm_end(context, agent, response)
        await self._theirs.on_llm_end(context, agent, response)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """The tool runs next."""
        await super().on_tool_start(context, agent, tool)
        await self._theirs.on_tool_start(context, agent, tool)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """The model gets an answer."""
        await super().on_tool_end(context, agent, tool, result)
        await self._theirs.on_tool_end(context, agent, tool, result)

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        """Theirs alone."""
        await self._theirs.on_end(context, agent, output)

    async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
        """Theirs alone."""
        await self._theirs.on_handoff(context, agent, source)


class Spans(TracingProcessor):
    """Hears of the SDK's own spans: they end also where no hook is asked any more."""

    def __init__(self) -> None:
        self._added = False
        self._runs: dict[str, ToolCalls] = {}

    def add(self) -> None:
        """Listen, from now on and once."""
        if not self._added:
            self._added = True
            add_trace_processor(self)

    def watch(self, run: str | None, calls: ToolCalls) -> None:
        """Tell `calls` how the run ends."""
        if run is not None:
            self._runs.setdefault(run, calls)

    @never_raises
    def on_span_end(self, span: Any) -> None:
        """A call of a tool or a model, a turn or a run of an agent is over."""
        models.span_ended(span)
        seam, error = SEAM.get(), sys.exception()
        calls = self._runs.get(span.trace_id)
        if seam is not None and seam.span_id == span.span_id:
            seam.calls.ended(seam, error)
        elif calls is None or span.error is None:
            return
        elif span.error["message"] == MAX_TURNS:
            calls.observer.run_limit(getattr(span.span_data, "name", None))
        elif span.error["message"] == TOOL_NOT_FOUND and isinstance(error, ModelBehaviorError):
            calls.unknown((span.error["data"] or {}).get("tool_name", ""))

    def on_trace_end(self, trace: Any) -> None:
        """Forget the run."""
        self._runs.pop(trace.trace_id, None)

    def on_trace_start(self, trace: Any) -> None:
        """Nothing: whether a run is hooked shows when its agent starts."""

    @never_raises
    def on_span_start(self, span: Any) -> None:
        """A model is asked, perhaps; the span of a tool does not know the id of its call."""
        models.span_started(span)

    def force_flush(self) -> None:
        """Nothing is kept."""

    def shutdown(self) -> None:
        """Nothing is kept."""


SPANS = Spans()


def instrument(**options: Any) -> None:
    """Hook every agent made, and every run configured, from now on."""
    calls = ToolCalls(**options)

    def formatter(given: dict[str, Any]) -> dict[str, Any]:
        theirs = given.get("tool_error_formatter")
        ours = theirs if isinstance(theirs, Formatter) else Formatter(calls, theirs)
        return {"tool_error_formatter": ours}

    def hooks(given: dict[str, Any]) -> dict[str, Any]:
        theirs = given.get("hooks")
        return {"hooks": theirs if isinstance(theirs, _AgentHooks) else _AgentHooks(calls, theirs)}

    SPANS.add()
    after_init(ToolContext, _opens)
    with_arguments(RunConfig, formatter)
    with_arguments(Agent, hooks)


def _opens(context: ToolContext[Any]) -> None:
    formatter = getattr(context.run_config, "tool_error_formatter", None)
    if isinstance(formatter, Formatter):
        formatter.calls.opens(context)
