"""LangChain: middleware for `create_agent`.

from toolfault.hooks.langchain import ToolfaultMiddleware

agent = create_agent(model, tools, middleware=[ToolfaultMiddleware()])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.prebuilt.tool_node import ToolCallRequest

from toolfault.hooks.base import never_raises
from toolfault.hooks.langgraph import ToolfaultHandler
from toolfault.hooks.langgraph_runs import RUNS
from toolfault.hooks.langgraph_wrapper import Execute, ExecuteAsync, Result, Wrapper, root_of
from toolfault.hooks.models import stop_at_limit

__all__ = ["ToolfaultMiddleware"]


def _merged(kept: dict[str, Any] | None, changes: dict[str, Any] | None) -> dict[str, Any]:
    return {**(kept or {}), **(changes or {})}


class BudgetState(AgentState[Any]):
    """An agent's state with the failure budget, which only an acting middleware keeps there."""

    toolfault_failures: NotRequired[  # type: ignore[valid-type]
        Annotated[dict[str, Any], _merged, PrivateStateAttr]
    ]


class ToolfaultMiddleware(AgentMiddleware[Any, Any]):
    """Sees every tool call of an agent. Put it first: it must be around those that repeat tools.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._handler = ToolfaultHandler(**options)
        acts = self._handler.calls.observer.act
        self._wrapper = Wrapper(self._handler.calls, self._handler, on_state=acts)
        if acts:
            self.state_schema = BudgetState

    def wrap_tool_call(self, request: ToolCallRequest, handler: Execute) -> Result:
        """Around a tool call."""
        return self._wrapper.wrap(request, handler)

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ExecuteAsync) -> Result:
        """Around a tool call of an async run."""
        return await self._wrapper.awrap(request, handler)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]
    ) -> Any:
        """What the model reads tells of calls that never ran."""
        self._read(request)
        stop_at_limit()
        return handler(request)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[Any]],
    ) -> Any:
        """`wrap_model_call` of an async run."""
        self._read(request)
        stop_at_limit()
        return await handler(request)

    @never_raises
    def _read(self, request: ModelRequest[Any]) -> None:
        calls = self._handler.calls
        calls.declare(tool for tool in request.tools if isinstance(tool, BaseTool))
        root = root_of(get_config())
        RUNS.watch(root, calls.run_ended)
        calls.read(root, request.messages)
