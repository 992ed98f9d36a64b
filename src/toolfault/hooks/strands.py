"""Strands Agents: a hook provider that brings its own middleware.

from toolfault.hooks.strands import ToolfaultHooks

agent = Agent(model=..., tools=[...], hooks=[ToolfaultHooks()])
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from strands import Agent
from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    HookProvider,
    HookRegistry,
)
from strands.interrupt import InterruptException
from strands.middleware import ExecuteToolStage

from toolfault.envelope import Envelope
from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolNotFoundError,
    ToolNotPermittedError,
)
from toolfault.hooks.base import Observer, never_raises
from toolfault.hooks.patch import with_argument
from toolfault.hooks.returned import error_in, in_text, returned_error
from toolfault.hooks.told import annotated, field_of
from toolfault.joined import JoinedCall
from toolfault.run import Run
from toolfault.telemetry.declared import Tool

#: How a decorated tool begins to say that arguments do not match; the type is a bare ValueError.
INVALID_ARGUMENTS = "Validation failed for input parameters"
_NEVER_REPEAT = ("strands.", "toolfault.")
_LIMITS = "limit_"  # what the stop reason of a run that reached a limit begins with


class ToolfaultHooks(HookProvider):
    """Put it first among the hooks: the others then have decided when it looks.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self._observer = Observer(**options, late=True)
        self._answers: dict[Any, Envelope] = {}
        self._run_ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Called by the agent."""
        registry.add_callback(AgentInitializedEvent, self._initialized)
        registry.add_callback(BeforeInvocationEvent, self._begins)
        registry.add_callback(AfterToolCallEvent, self._called)
        registry.add_callback(AfterInvocationEvent, self._ended)

    @never_raises
    def _initialized(self, event: AgentInitializedEvent) -> None:
        event.agent.add_middleware(ExecuteToolStage, self._execute)

    @never_raises
    def _begins(self, event: BeforeInvocationEvent) -> None:
        self._run_ids[event.agent] = uuid4().hex
        registry = event.agent.tool_registry
        tools = {**registry.registry, **registry.dynamic_tools}
        self._observer.declare(_declared(name, tool) for name, tool in tools.items())

    async def _execute(self, context: Any, next_fn: Callable[[Any], Any]) -> AsyncIterator[Any]:
        """Around the tool; inside the framework's span while its result passes."""
        key, observer = _key(context.agent, context.tool_use), self._observer
        call = observer.opened(key, keep=True)
        if call is None:
            call = self._opened(context.agent, context.tool_use)
        else:
            _again(call)
        try:
            wait: float | None = 0.0
            while wait is not None:
                await asyncio.sleep(wait)
                wait = None
                async for event in _watched(next_fn(context), call):
                    if getattr(event, "tool_result", None) is not None:
                        wait = self._result(call, context, event)
                    elif hasattr(event, "interrupts"):
                        observer.dropped(observer.opened(key))
                    if wait is None:
                        yield event
        except InterruptException:
            observer.dropped(observer.opened(key))
            raise
        except BaseException as error:
            observer.failed(observer.opened(key), error)
            raise

    @never_raises
    def _result(self, call: JoinedCall | None, context: Any, event: Any) -> float | None:
        """Note how the attempt ended; seconds until the next one where there is one."""
        if call is None:
            return None
        call.adopt()
        key, observer = _key(context.agent, context.tool_use), self._observer
        turned_away, error = _turned_away(context, event), _error(context, event)
        # A hook of somebody else may ask for another attempt; only then is the record kept back,
        # and with it what their span, ended by then, could have carried.
        close = turned_away is not None or not _others(context)
        if turned_away is not None and not call.guarded:
            answer = observer.turned_away(call, turned_away)
        elif error is None:
            answer = observer.ok(call, _unwrapped(event.tool_result), close=close)
        else:
            if (wait := observer.wait(call, error)) is not None:
                return wait
            answer = observer.failed(call, error, close=close)
        if close:
            observer.opened(key)
        if answer is not None:
            self._answers[key] = answer
        return None

    @never_raises
    def _called(self, event: AfterToolCallEvent) -> None:
        key = _key(event.agent, event.tool_use)
        answer = self._answers.pop(key, None)
        if event.cancel_message is not None:
            self._opened(event.agent, event.tool_use)
            refused = ToolNotPermittedError(event.tool_use["name"], "rejected")
            answer = self._observer.turned_away(self._observer.opened(key), refused)
        elif event.retry:
            return
        else:
            self._observer.close(self._observer.opened(key))
        if answer is not None:
            event.result = _result_of(answer, event.tool_use)

    @never_raises
    def _ended(self, event: AfterInvocationEvent) -> None:
        reason = event.result.stop_reason if event.result is not None else ""
        if reason.startswith(_LIMITS):
            self._observer.run_limit(event.agent.name)

    @never_raises
    def _opened(self, agent: Any, tool_use: Any) -> JoinedCall | None:
        return self._observer.open(
            tool_use["name"],
            call_id=tool_use["toolUseId"],
            key=_key(agent, tool_use),
            run=self._run(agent),
        )

    def _run(self, agent: Any) -> Run | None:
        state: Any = _State(agent.state)
        return self._observer.run(self._run_ids.get(agent), agent.session_id, agent.name, state)


def instrument(**options: Any) -> None:
    """Give every `Agent` of this process the hooks."""

    def add(given: list[Any] | None) -> list[Any]:
        kept = list(given or ())
        if any(isinstance(one, ToolfaultHooks) for one in kept):
            return kept
        return [ToolfaultHooks(**options), *kept]

    with_argument(Agent, "hooks", add)


async def _watched(events: AsyncIterator[Any], call: JoinedCall | None) -> AsyncIterator[Any]:
    """The tool's events; the call is current while the tool runs, not while others read them."""
    if call is None:
        async for event in events:
            yield event
        return
    try:
        async for event in events:
            call.leave()
            try:
                yield event
            finally:
                call.enter()
    finally:
        call.leave()


class _State:
    """An agent's state as the mapping that the failure budget wants."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def get(self, key: str, default: Any = None) -> Any:
        found = self._state.get(key)
        return default if found is None else found

    def __setitem__(self, key: str, value: Any) -> None:
        self._state.set(key, value)


def _again(call: JoinedCall) -> None:
    call.enter()
    call.begin()


def _key(agent: Any, tool_use: Any) -> tuple[int, str]:
    return id(agent), tool_use["toolUseId"]


def _turned_away(context: Any, event: Any) -> ToolError | None:
    """The error of a call of which nothing ran."""
    name = context.tool_use["name"]
    if context.tool is None:
        return ToolNotFoundError(name)
    raised = event.exception
    if isinstance(raised, ValueError) and str(raised).startswith(INVALID_ARGUMENTS):
        return ToolArgumentValidationError(name, field=field_of(raised))
    return None


def _error(context: Any, event: Any) -> Exception | None:
    """What the tool raised, or told with the status of its result."""
    raised: Exception | None = event.exception
    if raised is not None or event.tool_result["status"] != "error":
        return raised
    name = context.tool_use["name"]
    return error_in(_unwrapped(event.tool_result), name) or returned_error(name)


def _others(context: Any) -> bool:
    """Whether other hooks look at the result, and so might ask for another attempt."""
    probe = AfterToolCallEvent(
        agent=context.agent,
        selected_tool=context.tool,
        tool_use=context.tool_use,
        invocation_state=context.invocation_state,
        result={"toolUseId": "", "status": "success", "content": []},
    )
    theirs = (
        getattr(one, "__module__", "") for one in context.agent.hooks.get_callbacks_for(probe)
    )
    return not all(module.startswith(_NEVER_REPEAT) for module in theirs)


def _unwrapped(result: Any) -> Any:
    """What the tool's author returned, as far as the framework kept it."""
    if len(result["content"]) != 1:
        return None
    [block] = result["content"]
    if "json" in block:
        return block["json"]
    text = block.get("text")
    return in_text(text) if isinstance(text, str) else None


def _result_of(answer: Envelope, tool_use: Any) -> Any:
    return {
        "toolUseId": tool_use["toolUseId"],
        "status": "error" if answer["status"] == "error" else "success",
        "content": [{"json": answer}],
    }


def _declared(name: str, tool: Any) -> Tool:
    return annotated(name, getattr(getattr(tool, "mcp_tool", None), "annotations", None))
