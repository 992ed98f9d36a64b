"""LangGraph, and LangChain below its agents: a callback handler, and wrappers for a `ToolNode`.

from toolfault.hooks.langgraph import ToolfaultHandler, wrappers

graph.invoke(inputs, {"callbacks": [ToolfaultHandler()]})
ToolNode(tools, **wrappers())
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextvars import Token
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from toolfault.envelope import Envelope
from toolfault.hooks.base import never_raises
from toolfault.hooks.langgraph_calls import ToolCalls
from toolfault.hooks.langgraph_runs import RUNS, Root
from toolfault.hooks.langgraph_seam import SEAM, Seam
from toolfault.hooks.patch import after_init, with_arguments
from toolfault.hooks.told import annotated

#: The channel of an agent's state that keeps the failure budget of an acting hook.
FAILURES = "toolfault_failures"

Result = Any  # what LangGraph passes on: a ToolMessage, a Command, or a list of them
Execute = Callable[[ToolCallRequest], Result]
ExecuteAsync = Callable[[ToolCallRequest], Awaitable[Result]]


class ToolfaultHandler(BaseCallbackHandler):
    """Sees the tool calls of what runs with it; it changes nothing, also where it is asked to act.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    run_inline = True  # in the agent's own context, also in async runs

    def __init__(self, **options: Any) -> None:
        self.calls = ToolCalls(**options)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """An attempt begins."""
        self.calls.starts((serialized or {}).get("name", ""), run_id, parent_run_id, kwargs)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """An attempt returned."""
        self.calls.returned(run_id, output)

    def on_tool_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """An attempt raised."""
        self.calls.raised(run_id, parent_run_id, error)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """What the model reads next tells of calls that never ran."""
        for batch in messages:
            self.calls.read(RUNS.root(parent_run_id), batch)

    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A node or the run is over."""
        self.calls.node_ended(run_id)
        if parent_run_id is None:
            self.calls.run_ended(RUNS.root(run_id), outputs, None)

    def on_chain_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A node or the run has failed."""
        self.calls.node_ended(run_id)
        if parent_run_id is None:
            self.calls.run_ended(RUNS.root(run_id), None, error)


class Wrapper:
    """Around every tool call of a `ToolNode`.

    Args:
        handler: sees the attempts.
        on_state: the graph's state has a place for the failure budget.
    """

    def __init__(self, handler: ToolfaultHandler, *, on_state: bool = False) -> None:
        self.handler = handler
        self._on_state = on_state

    def wrap(self, request: ToolCallRequest, execute: Execute) -> Result:
        """One logical call; an acting hook repeats it by our policy."""
        seam, token = self._opened(request, execute)
        if seam is None or token is None:
            return execute(request)
        try:
            while True:
                try:
                    result = execute(request)
                except BaseException as error:
                    if seam.over(error):
                        if (answer := self._broke(seam, request, error)) is None:
                            raise
                        return answer
                else:
                    if seam.over():
                        return self._answered(seam, request, result) or result
                time.sleep(seam.wait or 0)
        finally:
            SEAM.reset(token)

    async def awrap(self, request: ToolCallRequest, execute: ExecuteAsync) -> Result:
        """`wrap` in an async run."""
        seam, token = self._opened(request, execute)
        if seam is None or token is None:
            return await execute(request)
        try:
            while True:
                try:
                    result = await execute(request)
                except BaseException as error:
                    if seam.over(error):
                        if (answer := self._broke(seam, request, error)) is None:
                            raise
                        return answer
                else:
                    if seam.over():
                        return self._answered(seam, request, result) or result
                await asyncio.sleep(seam.wait or 0)
        finally:
            SEAM.reset(token)

    def _opened(
        self, request: ToolCallRequest, execute: Any
    ) -> tuple[Seam | None, Token[Seam | None] | None]:
        seam = self._seam(request, execute)
        return seam, None if seam is None else SEAM.set(seam)

    @never_raises
    def _seam(self, request: ToolCallRequest, execute: Any) -> Seam | None:
        calls, config = self.handler.calls, request.runtime.config
        _listen(config, self.handler)
        calls.observer.declare(
            annotated(tool.name, tool.metadata) for tool in request.runtime.tools
        )
        kept = request.state.get(FAILURES, {}) if self._on_state else None
        seam = calls.open(
            request.tool_call["name"],
            request.tool_call["id"],
            root_of(config),
            agent=(config.get("metadata") or {}).get("lc_agent_name"),
            kept=kept,
            repeatable=not _is_tool_node(execute),
        )
        around = SEAM.get()
        if seam is None or around is None or around.call.call_id != seam.call.call_id:
            return seam
        around.calls.observer.dropped(around.call)  # ours inside of ours: the inner one's options
        around.calls, around.call = calls, seam.call
        return None

    @never_raises
    def _answered(self, seam: Seam, request: ToolCallRequest, result: Result) -> Result:
        root, name = root_of(request.runtime.config), request.tool_call["name"]
        seam.calls.answered(seam, root, name, request.tool is None, result)
        if seam.answer is not None and isinstance(result, ToolMessage):
            result = _message(seam.answer, request, result)
        return _updated(seam, result)

    @never_raises
    def _broke(self, seam: Seam, request: ToolCallRequest, error: BaseException) -> Result | None:
        """What the model reads instead of the run ending with the error."""
        if isinstance(error, GraphBubbleUp):
            seam.calls.pauses(seam)
            return None
        seam.calls.broke(seam, error)
        if seam.answer is None or not isinstance(error, Exception):
            return None
        return _updated(seam, _message(seam.answer, request))


def wrappers(**options: Any) -> dict[str, Any]:
    """`wrap_tool_call` and `awrap_tool_call` for a `ToolNode`.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """
    made = Wrapper(ToolfaultHandler(**options))
    return {"wrap_tool_call": made.wrap, "awrap_tool_call": made.awrap}


def instrument(**options: Any) -> None:
    """Give every run of this process the handler, and every `ToolNode` the wrappers."""
    handler = ToolfaultHandler(**options)
    made = Wrapper(handler)

    def first(manager: BaseCallbackManager) -> None:
        for handlers in (manager.handlers, manager.inheritable_handlers):
            if handler not in handlers:
                handlers.insert(0, handler)

    def wrap(given: dict[str, Any]) -> dict[str, Any]:
        theirs, also = given.get("wrap_tool_call"), given.get("awrap_tool_call")
        around: dict[str, Any] = {"wrap_tool_call": _around(made.wrap, theirs)}
        if (
            also is not None or theirs is None
        ):  # else LangGraph takes the sync one, and with it ours
            around["awrap_tool_call"] = _around(made.awrap, also)
        return around

    after_init(BaseCallbackManager, first)
    with_arguments(ToolNode, wrap)


def _around(ours: Any, theirs: Any) -> Any:
    if theirs is None:
        return ours

    def both(request: ToolCallRequest, execute: Any) -> Any:
        return ours(request, lambda again: theirs(again, execute))

    return both


def _listen(config: Any, handler: ToolfaultHandler) -> None:
    """Put the handler before all others of this one call: it must see spans before they end."""
    manager = config.get("callbacks")
    if isinstance(manager, BaseCallbackManager) and handler not in manager.handlers:
        manager = manager.copy()
        manager.handlers.insert(0, handler)
        manager.inheritable_handlers.insert(0, handler)
        config["callbacks"] = manager


def root_of(config: Any) -> Root:
    """The run that the node with this config belongs to."""
    return RUNS.root(getattr(config.get("callbacks"), "parent_run_id", None))


def _is_tool_node(execute: Any) -> bool:
    return str(getattr(execute, "__qualname__", "")).startswith(ToolNode.__name__)


def _message(answer: Envelope, request: ToolCallRequest, told: ToolMessage | None = None) -> Any:
    content = json.dumps(answer, default=str)
    status = "error" if answer["status"] == "error" else "success"
    if told is not None:
        return told.model_copy(update={"content": content, "status": status})
    call = request.tool_call
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"], status=status)


def _updated(seam: Seam, result: Result) -> Result:
    """The result, with what it changes of the failure budget on the graph's state."""
    changes = seam.failures.changes() if seam.failures is not None else None
    if not changes or not isinstance(result, ToolMessage):
        return result
    return Command(update={"messages": [result], FAILURES: changes})
