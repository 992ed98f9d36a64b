"""The run scope: which conversation a call belongs to, how long it may take, what has run.

Held in a context variable: tasks inherit it, threads started with the context do too
(`asyncio.to_thread`, `contextvars.copy_context().run`).
"""

from __future__ import annotations

import threading
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


class RunLimitExceededError(Exception):
    """The run has made all the model calls it may: usually a loop around a tool that keeps failing.

    Args:
        limit: the run's `max_model_calls`.
        run_id: id of the run.
        agent: name of the agent.
    """

    def __init__(self, limit: int, run_id: str, agent: str | None = None) -> None:
        self.limit = limit
        self.run_id = run_id
        self.agent = agent
        super().__init__(limit, run_id, agent)

    def __str__(self) -> str:
        return (
            f"run {self.run_id} has made its {self.limit} model calls; look for a tool whose error "
            "the model believes it can fix"
        )


class Run:
    """One run of an agent; use it through `toolfault.run(...)`.

    Ids that are numbers or UUIDs are taken as text.

    Args:
        conversation_id: the conversation the run belongs to; the failure budget counts in it.
        run_id: id of the run; by default a new one.
        agent: name of the agent.
        deadline: seconds from now until the run must be done; None for no limit.
        max_tool_attempts: retries one tool may use in the run; afterwards one attempt per call.
        max_model_calls: model calls the run may make, retries of one not counted; None for no limit.
        policy: `CONTINUE` or `FAIL_RUN`; wins over a guard's `on_error` where given.
        state: mapping that holds the failure budget, such as a framework's session state.

    Attributes:
        calls: the last 1,000 finished calls: tool, outcome, effect, reference.
        forgotten: finished calls that `calls` no longer holds.
        under_way: calls that have not finished, by tool.
        model_calls: steps that asked a model.
        model_attempts: what the provider was asked, retries included.

    Raises:
        ValueError: an option that does not fit, said with what to give.
    """

    def __init__(
        self,
        conversation_id: str | None = None,
        *,
        run_id: str | None = None,
        agent: str | None = None,
        deadline: float | None = None,
        max_tool_attempts: int = MAX_TOOL_ATTEMPTS,
        max_model_calls: int | None = None,
        policy: ToolFailurePolicy | None = None,
        state: MutableMapping[str, Any] | None = None,
    ) -> None:
        if deadline is not None and not (isinstance(deadline, int | float) and deadline > 0):
            raise ValueError(f"deadline is {deadline!r}; give seconds from now, more than 0")
        if not _is_number(max_tool_attempts, 0):
            raise ValueError(f"max_tool_attempts is {max_tool_attempts!r}; give 0 or more")
        if max_model_calls is not None and not _is_number(max_model_calls, 1):
            raise ValueError(f"max_model_calls is {max_model_calls!r}; give 1 or more, or None")
        self.conversation_id = None if conversation_id is None else str(conversation_id)
        self.run_id = str(run_id or uuid4().hex)
        self.agent = None if agent is None else str(agent)
        self.max_tool_attempts = max_tool_attempts
        self.max_model_calls = max_model_calls
        self.model_calls = self.model_attempts = 0
        if policy is not None and policy not in set(ToolFailurePolicy):
            raise ValueError(f"policy is {policy!r}; write ToolFailurePolicy.CONTINUE or FAIL_RUN")
        if state is not None and not hasattr(type(state), "__setitem__"):
            raise ValueError(f"state is {state!r}; give a mapping, such as a session's state")
        self.policy = None if policy is None else ToolFailurePolicy(policy)
        self.state = state
        self.calls: list[RanTool] = []
        self.forgotten = 0
        self.under_way: Counter[str] = Counter()
        self._ends = None if deadline is None else time.monotonic() + deadline
        self._retries: Counter[str] = Counter()
        self._lock = threading.Lock()  # branches of a run may be threads

    def remaining(self) -> float:
        """Seconds until the deadline, infinite without one, never less than 0."""
        return float("inf") if self._ends is None else max(self._ends - time.monotonic(), 0.0)

    def use_retry(self, tool: str) -> bool:
        """Use one of the tool's retries; False where it has none left in this run."""
        with self._lock:
            if self._retries[tool] >= self.max_tool_attempts:
                return False
            self._retries[tool] += 1
            return True

    def began(self, tool: str) -> None:
        """A call of the tool is under way."""
        with self._lock:
            self.under_way[tool] += 1

    def dropped(self, tool: str) -> None:
        """A call that began waits for somebody and has not run."""
        with self._lock:
            self.under_way[tool] -= 1

    def finished(self, call: RanTool) -> None:
        """Remember a finished call; a run keeps its last 1,000."""
        with self._lock:
            self.under_way[call.tool] -= 1
            self.calls.append(call)
            if len(self.calls) > _KEPT_CALLS:
                del self.calls[0]
                self.forgotten += 1

    def count_model_call(self) -> int:
        """One more step asks a model; how many there are now, the one refused included."""
        with self._lock:
            self.model_calls += 1
            return self.model_calls

    def __enter__(self) -> Self:
        _scopes.set((*_scopes.get(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Scopes may be left in any order; one that this context has not entered is not there.
        left = list(_scopes.get())
        for place in reversed(range(len(left))):
            if left[place] is self:
                del left[place]
                break
        _scopes.set(tuple(left))

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


#: The runs that this code is inside of, the innermost last.
_scopes: ContextVar[tuple[Run, ...]] = ContextVar("toolfault_runs", default=())

run = Run


def current_run() -> Run | None:
    """The run this code belongs to, or None."""
    scopes = _scopes.get()
    return scopes[-1] if scopes else None


def set_current(run: Run) -> Token[tuple[Run, ...]]:
    """Make a framework's run the current one; undone with `reset_current`."""
    return _scopes.set((run,))


reset_current = _scopes.reset
