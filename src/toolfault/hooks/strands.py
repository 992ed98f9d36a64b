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
    AfterModelCallEvent,
    AfterToolCallEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    HookProvider,
    HookRegistry,
)
from strands.interrupt import InterruptException
from strands.middleware import ExecuteToolStage

from toolfault.envelope import Envelope
from toolfault.errors import ToolNotPermittedError
from toolfault.hooks.base import Observer, never_raises
from toolfault.hooks.models import ModelCalls
from toolfault.hooks.patch import with_argument
from toolfault.hooks.strands_told import (
    declared_as,
    error_of,
    model_of,
    others,
    result_of,
    turned_away,
    unwrapped,
)
from toolfault.joined import JoinedCall
from toolfault.run import Run

_LIMITS = "limit_"  # what the stop reason of a run that reached a limit begins with


class ToolfaultHooks(HookProvider):
    """Put it first among the hooks: the others then have decided when it looks.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self._observer = Observer(**options, late=True)
        self._models = ModelCalls()
        self._asking: WeakKeyDictionary[Any, BeforeModelCallEvent] = WeakKeyDictionary()
        self._answers: dict[Any, Envelope] = {}
        self._run_ids: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Called by the agent."""
        registry.add_callback(AgentInitializedEvent, self._initialized)
        registry.add_callback(BeforeInvocationEvent, self._begins)
        registry.add_callback(BeforeModelCallEvent, self._asks)
        registry.add_callback(AfterModelCallEvent, self._answered)
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
        self._observer.declare(declared_as(name, tool) for name, tool in tools.items())

    def _asks(self, event: BeforeModelCallEvent) -> None:
        self._asking[event.agent] = event
        self._models.asks(id(event.agent), model_of(event.agent), self._run(event.agent))

    @never_raises
    def _answered(self, event: AfterModelCallEvent) -> None:
        key, before = id(event.agent), self._asking.pop(event.agent, None)
        if before is not None and before.cancel:
            self._models.dropped(key)  # by a hook of somebody else, after ours had looked
        elif event.exception is not None:
            self._models.failed(key, event.exception)  # a strategy of retries may ask again
        else:
            self._models.answered(key)

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
        never_ran, error = turned_away(context, event), error_of(context, event)
        # A hook of somebody else may ask for another attempt; only then is the record kept back,
        # and with it what their span, ended by then, could have carried.
        close = never_ran is not None or not others(context)
        if never_ran is not None and not call.guarded:
            answer = observer.turned_away(call, never_ran)
        elif error is None:
            answer = observer.ok(call, unwrapped(event.tool_result), close=close)
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
            event.result = result_of(answer, event.tool_use)

    @never_raises
    def _ended(self, event: AfterInvocationEvent) -> None:
        self._models.over(id(event.agent))
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
