"""The model calls of LangChain, of the runs that are hooked.

Each attempt is a run of its own to LangChain, whoever repeats it: a middleware, `with_retry`,
`with_fallbacks`. So one that fails waits until the run around it has ended: what is asked there
meanwhile is another attempt of the same call.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from toolfault.hooks.base import keep, never_raises
from toolfault.hooks.langgraph_runs import RUNS, Root
from toolfault.hooks.models import ModelCalls
from toolfault.run import Run, RunLimitExceededError

_Key = tuple[UUID | None, UUID]  # the run around it, and the one of its first attempt


class RaisesTheLimit(BaseCallbackHandler):
    """A handler of which LangChain lets one error through, that of `max_model_calls`."""

    @property
    def raise_error(self) -> bool:  # type: ignore[override]
        """Asked while an error of the handler is looked at."""
        return isinstance(sys.exception(), RunLimitExceededError)


class Models(RaisesTheLimit):
    """Hears of every model of the process."""

    run_inline = True  # in the agent's own context, also in async runs
    ignore_retriever = True

    def __init__(self) -> None:
        self._calls = ModelCalls()
        self._wanted: OrderedDict[UUID, bool] = OrderedDict()  # by a handler that was asked first
        self._passed: OrderedDict[UUID, bool] = OrderedDict()  # nobody had wanted it yet
        self._keys: OrderedDict[UUID, _Key] = OrderedDict()  # of attempts that are under way
        self._failed: OrderedDict[UUID, _Key] = OrderedDict()  # by the run around it

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **told: Any,
    ) -> None:
        """A model is asked.

        Raises:
            RunLimitExceededError: the application's run may make no more model calls.
        """
        root = RUNS.root(parent_run_id or run_id)
        if self._wanted.pop(run_id, False) or RUNS.is_watched(root):
            self._asks(root, run_id, parent_run_id, name_of(serialized, told))
        else:
            keep(self._passed, run_id, True)

    on_llm_start = on_chat_model_start

    def wants(self, run_id: UUID, parent: UUID | None, name: object) -> None:
        """A handler sees the same start; before or after this one, for their order is not fixed.

        Raises:
            RunLimitExceededError: the application's run may make no more model calls.
        """
        if self._passed.pop(run_id, False):
            self._asks(RUNS.root(parent or run_id), run_id, parent, name)
        elif run_id not in self._keys:
            keep(self._wanted, run_id, True)

    def _asks(self, root: Root, run_id: UUID, parent: UUID | None, name: object) -> None:
        run = Run(root.conversation_id, run_id=root.run_id, agent=root.agent)
        self._calls.asks(self._key(run_id, parent), name, run)

    def _key(self, run_id: UUID, parent: UUID | None) -> _Key:
        waiting = self._failed.pop(parent, None) if parent is not None else None
        key = waiting or (parent, run_id)
        keep(self._keys, run_id, key)
        return key

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Output has reached the application."""
        self._calls.emitted(self._keys.get(run_id))

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """The model has answered."""
        self._passed.pop(run_id, None)
        self._calls.answered(self._keys.pop(run_id, None))

    @never_raises
    def on_llm_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """The attempt failed; for good, where there is nothing around it that could repeat it."""
        self._passed.pop(run_id, None)
        key = self._keys.pop(run_id, None)
        self._calls.failed(key, error)
        if parent_run_id is None:
            self._calls.over(key)
        elif key is not None and isinstance(error, Exception):
            self._calls.over(self._failed.get(parent_run_id))  # one that ran beside it
            keep(self._failed, parent_run_id, key)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Nobody repeats what this run has asked."""
        self._run_ended(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Nobody repeats what this run has asked."""
        self._run_ended(run_id)

    @never_raises
    def _run_ended(self, run_id: UUID) -> None:
        self._failed.pop(run_id, None)
        for key in self._calls.keys(run_id):
            self._calls.over(key)


@never_raises
def name_of(serialized: Any, told: dict[str, Any]) -> object:
    """The model's name, else that of its class."""
    asked, known = told.get("invocation_params") or {}, told.get("metadata") or {}
    named = known.get("ls_model_name") or asked.get("model") or asked.get("model_name")
    return named or told.get("name") or (serialized or {}).get("name")


MODELS = Models()
register_configure_hook(ContextVar("toolfault_models", default=MODELS), inheritable=True)
