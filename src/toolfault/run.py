"""The run scope: which conversation a call belongs to, how long it may take, what has run.

Held in a context variable: tasks inherit it, threads started with the context do too
(`asyncio.to_thread`, `contextvars.copy_context().run`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import MutableMapping
from contextvars import ContextVar, Token
from enum import StrEnum
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

from toolfault.retry import MAX_TOOL_ATTEMPTS
from toolfault.taxonomy import Effect, Outcome

_KEPT_CALLS = 1000


class ToolFailurePolicy(StrEnum):
    """What a failed call does to the run."""

    CONTINUE = "continue"  # the model reads the failure
    FAIL_RUN = "fail_run"  # the failure is raised


class RanTool(NamedTuple):
    """One finished call of a run."""

    tool: str
    outcome: Outcome
    effect: Effect
    reference_id: str | None


class Run:
    """One run of an agent; use it through `toolfault.run(...)`.

    Args:
        conversation_id: the conversation the run belongs to; the failure budget counts in it.
        run_id: id of the run; by default a new one.
        agent: name of the agent.
        deadline: seconds from now until the run must be done; None for no limit.
        max_tool_attempts: retries one tool may use in the run; afterwards one attempt per call.
        policy: `CONTINUE` or `FAIL_RUN`; wins over a guard's `on_error` where given.
        state: mapping that holds the failure budget, such as a framework's session state.
    """

    def __init__(
        self,
        conversation_id: str | None = None,
        *,
        run_id: str | None = None,
        agent: str | None = None,
        deadline: float | None = None,
        max_tool_attempts: int = MAX_TOOL_ATTEMPTS,
        policy: ToolFailurePolicy | None = None,
        state: MutableMapping[str, Any] | None = None,
    ) -> None:
        if deadline is not None and not deadline > 0:
            raise ValueError(f"deadline is {deadline!r}; give seconds from now, more than 0")
        if max_tool_attempts < 0:
            raise ValueError(f"max_tool_attempts is {max_tool_attempts!r}; give 0 or more")
        self.conversation_id = conversation_id
        self.run_id = run_id or uuid4().hex
        self.agent = agent
        self.max_tool_attempts = max_tool_attempts
        self.policy = policy
        self.state = state
        self.calls: list[RanTool] = []
        self._deadline = deadline
        self._ends = None if deadline is None else time.monotonic() + deadline
        self._retries: Counter[str] = Counter()
        self._tokens: list[Token[Run | None]] = []

    def remaining(self) -> float:
        """Seconds until the deadline, infinite without one, never less than 0."""
        return float("inf") if self._ends is None else max(self._ends - time.monotonic(), 0.0)

    def may_retry(self, tool: str) -> bool:
        """Whether the tool has a retry left in this run."""
        return self._retries[tool] < self.max_tool_attempts

    def count_retry(self, tool: str) -> None:
        """Use one retry of the tool."""
        self._retries[tool] += 1

    def finished(self, call: RanTool) -> None:
        """Remember a finished call; a run keeps its last 1,000."""
        self.calls.append(call)
        if len(self.calls) > _KEPT_CALLS:
            del self.calls[0]

    def __enter__(self) -> Self:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _current.reset(self._tokens.pop())

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


_current: ContextVar[Run | None] = ContextVar("toolfault_run", default=None)

run = Run


def current_run() -> Run | None:
    """The run this code belongs to, or None."""
    return _current.get()
