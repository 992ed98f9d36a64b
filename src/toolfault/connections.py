"""HTTP/1.1 connections that end when a client is slow or silent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from typing import ClassVar

#: A connection without a request is kept for this long: exporters send every five seconds or so.
IDLE_SECONDS = 55


class TimedProtocol(H11Protocol):
    """uvicorn's protocol with limits on how long a request may take to arrive.

    uvicorn's own limit is for connections that say nothing at all; one byte every other second
    would hold a connection, and a task, for ever.
    """

    header_seconds: ClassVar[float] = 50.0
    #: A little more than the receiver's own limit, which is answered by 408.
    body_seconds: ClassVar[float] = 32.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._end_in(self.header_seconds)

    def data_received(self, data: bytes) -> None:
        """Take a piece of a request; what is overdue is not put off by it."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._end_in(self.header_seconds)
        super().data_received(data)

    def handle_events(self) -> None:
        """Begin to wait for a body, or stop waiting."""
        before = self.cycle
        super().handle_events()
        cycle = self.cycle
        if cycle is None:
            return
        if not cycle.more_body and not cycle.response_complete:
            self._keep()
        elif cycle is not before:
            self._end_in(self.body_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._keep()
        super().connection_lost(exc)

    def _end_in(self, seconds: float) -> None:
        self._keep()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _keep(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
