"""The call that is running here: what logging, spans and inner calls need to know of it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from toolfault import reference
from toolfault.telemetry.declared import Tool
from toolfault.telemetry.spans import NOWHERE, CallSpan

if TYPE_CHECKING:
    from toolfault.telemetry.black_box import Box


class CurrentCall:
    """Identity of one running call. The reference is made when it is first asked for."""

    # Defaults of the class: what a call does not need costs it nothing.
    span: CallSpan = NOWHERE
    box: Box | None = None
    _reference_id: str | None = None

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    @property
    def reference_id(self) -> str:
        """The reference of this call."""
        if self._reference_id is None:
            self._reference_id = reference.new()
        return self._reference_id


_current: ContextVar[CurrentCall | None] = ContextVar("toolfault_call", default=None)

#: The innermost call this code runs in, or None.
current_call = _current.get
set_current = _current.set
reset_current = _current.reset
