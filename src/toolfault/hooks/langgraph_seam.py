"""One logical call of a tool, from the outermost place that sees it to its end."""

from __future__ import annotations

from collections import UserDict
from contextvars import ContextVar
from typing import Any

from langgraph.errors import GraphBubbleUp

from toolfault.envelope import Envelope
from toolfault.joined import JoinedCall


class Failures(UserDict[str, Any]):
    """The failure budget on a graph's state, which nobody may write to while a tool runs."""

    def __init__(self) -> None:
        self._changed: dict[str, Any] = {}
        super().__init__()

    def read(self, kept: dict[str, Any]) -> None:
        """What the state holds now."""
        self.data = {**kept, **self._changed}

    def changes(self) -> dict[str, Any]:
        """What the state is to hold next."""
        changed, self._changed = self._changed, {}
        return changed

    def __setitem__(self, key: str, item: Any) -> None:
        self._changed[key] = item
        super().__setitem__(key, item)

    def __bool__(self) -> bool:
        return True


class Seam:
    """One logical call.

    Args:
        calls: who sees it.
        call: the open call.
        repeatable: somebody between this seam and the tool may run the tool again.
        failures: the failure budget on the graph's state.
    """

    __slots__ = ("answer", "call", "calls", "closed", "failures", "repeatable", "started", "wait")

    def __init__(
        self, calls: Any, call: JoinedCall, *, repeatable: bool, failures: Failures | None
    ) -> None:
        self.calls = calls
        self.call = call
        self.repeatable = repeatable
        self.failures = failures
        self.started = False  # the tool itself, not only what is around it
        self.closed = False
        self.wait: float | None = None  # until the next attempt of an acting hook
        self.answer: Envelope | None = None

    def take(self, inner: Seam) -> None:
        """Go on as another hook of ours further inside would: its options are the nearer ones."""
        self.calls.observer.dropped(self.call)
        self.calls, self.call, self.failures = inner.calls, inner.call, inner.failures

    def over(self, error: BaseException | None = None) -> bool:
        """Whether the tool is not run again by us."""
        steers = isinstance(error, GraphBubbleUp) or not isinstance(error, Exception | None)
        return self.wait is None or steers


SEAM: ContextVar[Seam | None] = ContextVar("toolfault_langgraph", default=None)
