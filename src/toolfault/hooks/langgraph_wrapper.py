"""Around every tool call of a `ToolNode`, and so of an agent of LangChain."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextvars import Token
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from toolfault import safe_log
from toolfault.envelope import Envelope
from toolfault.hooks.base import keep, never_raises
from toolfault.hooks.langgraph_calls import ToolCalls
from toolfault.hooks.langgraph_runs import RUNS, Root
from toolfault.hooks.langgraph_seam import SEAM, Seam

_log = logging.getLogger(__name__)

#: The channel of an agent's state that keeps the failure budget of an acting hook.
FAILURES = "toolfault_failures"

Result = Any  # what LangGraph passes on: a ToolMessage, a Command, or a list of them
Execute = Callable[[ToolCallRequest], Result]
ExecuteAsync = Callable[[ToolCallRequest], Awaitable[Result]]


class Wrapper:
    """Around every tool call of a `ToolNode`.

    Args:
        calls: who sees them.
        handler: sees the attempts for `calls`.
        on_state: the graph's state has a place for the failure budget.
    """

    def __init__(
        self, calls: ToolCalls, handler: BaseCallbackHandler, *, on_state: bool = False
    ) -> None:
        self._calls = calls
        self._handler = handler
        self._on_state = on_state
        self._broken: OrderedDict[tuple[str, str | None], bool] = OrderedDict()

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
            self._calls.close(seam)  # cancelled between two attempts
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
            self._calls.close(seam)  # cancelled between two attempts
            SEAM.reset(token)

    def _opened(
        self, request: ToolCallRequest, execute: Any
    ) -> tuple[Seam | None, Token[Seam | None] | None]:
        seam = self._seam(request, execute)
        return seam, None if seam is None else SEAM.set(seam)

    @never_raises
    def _seam(self, request: ToolCallRequest, execute: Any) -> Seam | None:
        calls, config = self._calls, request.runtime.config
        _listen(config, self._handler)
        around, call_id = SEAM.get(), request.tool_call["id"]
        if around is not None and around.call.call_id != call_id:
            around = None
        if around is not None and around.calls is calls:
            return None  # repeated inside of ours
        self._ask_for_order(root_of(config), call_id)
        calls.declare(request.runtime.tools)
        seam = calls.open(
            request.tool_call["name"],
            call_id,
            root_of(config),
            agent=(config.get("metadata") or {}).get("lc_agent_name"),
            kept=request.state.get(FAILURES, {}) if self._on_state else None,
            repeatable=not _is_tool_node(execute),
        )
        if seam is None or around is None:
            return seam
        around.take(seam)
        return None

    def _ask_for_order(self, root: Root, call_id: str | None) -> None:
        if (root.run_id, call_id) in self._broken:
            safe_log.log(
                _log,
                logging.WARNING,
                "A middleware that repeats tools comes before ToolfaultMiddleware, so each of its "
                "attempts counts as a call; put ToolfaultMiddleware first",
            )

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
        keep(self._broken, (root_of(request.runtime.config).run_id, seam.call.call_id), True)
        if seam.answer is None or not isinstance(error, Exception):
            return None
        return _updated(seam, _message(seam.answer, request))


def _listen(config: Any, handler: BaseCallbackHandler) -> None:
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
