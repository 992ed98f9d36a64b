"""The call that is running here: what logging, spans and inner calls need to know of it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import Span

from toolfault import reference

if TYPE_CHECKING:
    from toolfault.telemetry.black_box import Box


class CurrentCall:
    """Identity of one running call. The reference is made when it is first asked for."""

    __slots__ = ("_reference_id", "box", "offer", "span", "tool")

    def __init__(self, tool: str, span: Span) -> None:
        self.tool = tool
        self.span = span
        self.box: Box | None = None
        self.offer: Any = None  # the hook's call, for a guard inside to drive
        self._reference_id: str | None = None

    @property
    def reference_id(self) -> str:
        """The reference of this call."""
        if self._reference_id is None:
            self._reference_id = reference.new()
        return self._reference_id


_current: ContextVar[CurrentCall | None] = ContextVar("toolfault_call", default=None)


def current_call() -> CurrentCall | None:
    """The innermost call this code runs in, or None."""
    return _current.get()


set_current = _current.set
reset_current = _current.reset
