"""What runs in a process that uses LangChain: which run belongs to which, and where tools start.

One handler hears of everything. It is the last of all handlers, so that where a tool starts it sees
the span that another instrumentation has just opened; those of `toolfault.hooks.langgraph` are the
first, so that where a tool ends they still find it open.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook
from opentelemetry.trace import Span

from toolfault.hooks.base import keep, never_raises
from toolfault.joined import JoinedCall
from toolfault.telemetry import current

_OPENINFERENCE = "openinference.instrumentation.langchain"


class Root(NamedTuple):
    """The run that the application started: what toolfault calls a run."""

    run_id: str
    conversation_id: str | None
    agent: str | None

    @property
    def scope(self) -> str:
        """Where ids of calls are unique, also when a run goes on after a pause."""
        return self.conversation_id or self.run_id


Watcher = Callable[[Root, Any, BaseException | None], None]


class Runs(BaseCallbackHandler):
    """Hears of every chain and tool of the process."""

    run_inline = True  # in the agent's own context, also in async runs
    ignore_llm = ignore_chat_model = ignore_retriever = True

    def __init__(self) -> None:
        self._roots: OrderedDict[UUID, Root] = OrderedDict()
        self._watchers: OrderedDict[str, list[Watcher]] = OrderedDict()

    def root(self, run_id: UUID | None) -> Root:
        """The run that this one belongs to."""
        found = self._roots.get(run_id) if run_id is not None else None
        return found or Root(str(run_id or uuid4()), None, None)

    def watch(self, root: Root, watcher: Watcher) -> None:
        """Tell `watcher` once how the run ended."""
        watchers = self._watchers.get(root.run_id, [])
        if watcher not in watchers:
            keep(self._watchers, root.run_id, [*watchers, watcher])

    def is_watched(self, root: Root) -> bool:
        """Whether somebody wants to be told."""
        return root.run_id in self._watchers

    @never_raises
    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Remember where a run belongs."""
        root = self._roots.get(parent_run_id) if parent_run_id is not None else None
        keep(self._roots, run_id, root or _root(run_id, metadata or {}))

    @never_raises
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Tell those who watch."""
        self._ended(run_id, outputs, None)

    @never_raises
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Tell those who watch."""
        self._ended(run_id, None, error)

    @never_raises
    def on_tool_start(
        self,
        serialized: Any,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take the span that others have opened for this tool, or open ours."""
        self.on_chain_start(
            serialized, None, run_id=run_id, parent_run_id=parent_run_id, metadata=metadata
        )
        call = current.current_call()
        if not isinstance(call, JoinedCall) or call.call_id != kwargs.get("tool_call_id"):
            return
        if (span := openinference_span(run_id)) is not None:
            call.adopt(span)
        if span is not None or not openinference_is_on():
            call.open_span()

    @never_raises
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Forget it."""
        self._roots.pop(run_id, None)

    @never_raises
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Forget it."""
        self._roots.pop(run_id, None)

    def _ended(self, run_id: UUID, outputs: Any, error: BaseException | None) -> None:
        root = self._roots.pop(run_id, None)
        if root is not None and root.run_id == str(run_id):
            for watcher in self._watchers.pop(root.run_id, ()):
                watcher(root, outputs, error)


def _root(run_id: UUID, metadata: dict[str, Any]) -> Root:
    thread = metadata.get("thread_id")
    return Root(str(run_id), None if thread is None else str(thread), metadata.get("lc_agent_name"))


def openinference_span(run_id: UUID) -> Span | None:
    """OpenInference's span of a run; it makes none of its spans the current one."""
    if not openinference_is_on():
        return None
    span: Span | None = sys.modules[_OPENINFERENCE].LangChainInstrumentor().get_span(run_id)
    return span


def openinference_is_on() -> bool:
    """Whether OpenInference opens spans in this process."""
    module = sys.modules.get(_OPENINFERENCE)
    return module is not None and bool(
        module.LangChainInstrumentor().is_instrumented_by_opentelemetry
    )


RUNS = Runs()
register_configure_hook(ContextVar("toolfault_runs", default=RUNS), inheritable=True)
