"""What a process says of its tools, once and then hourly: `tool_declared`.

The service needs it before the first error: a series that starts at 0 makes a first error a rise.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolfault import conventions as c
from toolfault.telemetry import events
from toolfault.telemetry.record import Attributes

_EVERY = 3600.0  # s


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What the author says of a tool.

    Attributes:
        name: as the model calls it.
        writes: whether a call can change anything.
        idempotent: whether repeating a call is harmless.
        owner: who takes a failure from here.
        owner_contact: how to reach them.
        runbook: where the next steps stand.
        reasons: declared reasons with the words for the user.
        type: OpenTelemetry's: "function", "extension" (another program runs it) or "datastore".
    """

    name: str
    writes: bool = True
    idempotent: bool = False
    owner: str | None = None
    owner_contact: str | None = None
    runbook: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    type: str = c.FUNCTION

    def attributes(self) -> Attributes:
        """The declaration as event attributes."""
        told: Attributes = {
            c.TOOL_NAME: self.name,
            c.WRITES: self.writes,
            c.IDEMPOTENT: self.idempotent,
        }
        known = {c.OWNER: self.owner, c.OWNER_CONTACT: self.owner_contact, c.RUNBOOK: self.runbook}
        told |= {key: value for key, value in known.items() if value is not None}
        if self.reasons:
            told[c.REASONS] = json.dumps(dict(self.reasons), ensure_ascii=False)
        return told


class _Announcer:
    """The tools of this process, and when each was last announced (monotonic s)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tools: dict[str, Tool] = {}
        self._told: dict[str, float] = {}
        self.due = 0.0  # monotonic s; read without the lock on every call

    def add(self, tool: Tool) -> None:
        with self._lock:
            self._tools[tool.name] = tool
            self._told.pop(tool.name, None)
            self.due = 0.0

    def known(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def all(self) -> list[Tool]:
        with self._lock:
            return list(self._tools.values())

    def announce(self) -> None:
        """Emit what is due, if events go anywhere."""
        if not events.is_on():
            return
        now = time.monotonic()
        with self._lock:
            pending = [
                t for n, t in self._tools.items() if now - self._told.get(n, -_EVERY) >= _EVERY
            ]
            self._told |= dict.fromkeys((tool.name for tool in pending), now)
            self.due = min(self._told.values(), default=now) + _EVERY
        for tool in pending:
            events.emit(c.TOOL_DECLARED, tool.attributes())

    def forget(self) -> None:
        """Announce everything again: a forked child is a process of its own."""
        self._lock = threading.Lock()
        self._told.clear()
        self.due = 0.0


_announcer = _Announcer()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_announcer.forget)


def declare(tool: Tool) -> None:
    """Register a tool; it is announced with the next call, or by `configure()`."""
    _announcer.add(tool)


def known(name: str) -> Tool | None:
    """What has been declared of a tool."""
    return _announcer.known(name)


def tools() -> list[Tool]:
    """Every tool of this process."""
    return _announcer.all()


def announce(*, again: bool = False) -> None:
    """Emit the declarations that are due; `again` makes all of them due."""
    if again:
        _announcer.forget()
    if time.monotonic() >= _announcer.due:
        _announcer.announce()
