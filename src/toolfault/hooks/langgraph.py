"""LangGraph, and LangChain below its agents: a callback handler, and wrappers for a `ToolNode`.

from toolfault.hooks.langgraph import ToolfaultHandler, wrappers

graph.invoke(inputs, {"callbacks": [ToolfaultHandler()]})
ToolNode(tools, **wrappers())
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackManager
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest

from toolfault.hooks.langgraph_calls import ToolCalls
from toolfault.hooks.langgraph_models import MODELS, RaisesTheLimit, name_of
from toolfault.hooks.langgraph_runs import RUNS
from toolfault.hooks.langgraph_wrapper import Wrapper
from toolfault.hooks.patch import after_init, with_arguments

__all__ = ["ToolfaultHandler", "instrument", "wrappers"]


class ToolfaultHandler(RaisesTheLimit):
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
        """A model is asked; what it reads tells of calls that never ran."""
        for batch in messages:
            self.calls.read(RUNS.root(parent_run_id or run_id), batch)
        self.on_llm_start(serialized, [], run_id=run_id, parent_run_id=parent_run_id, **kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model is asked.

        Raises:
            RunLimitExceededError: the application's run may make no more model calls.
        """
        MODELS.wants(run_id, parent_run_id, name_of(serialized, kwargs))

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


def wrappers(**options: Any) -> dict[str, Any]:
    """`wrap_tool_call` and `awrap_tool_call` for a `ToolNode`.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """
    handler = ToolfaultHandler(**options)
    made = Wrapper(handler.calls, handler)
    return {"wrap_tool_call": made.wrap, "awrap_tool_call": made.awrap}


def instrument(**options: Any) -> None:
    """Give every run of this process the handler, and every `ToolNode` the wrappers."""
    handler = ToolfaultHandler(**options)
    made = Wrapper(handler.calls, handler)

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
