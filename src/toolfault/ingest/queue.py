"""What waits to be written, and how many bytes each sender holds: bounded, and fair between senders."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from toolfault.ingest.errors import Overloaded, RetryableError
from toolfault.ingest.select import Batch

RETRY_AFTER = 2  # s


@dataclass(slots=True, eq=False)
class Waiting:
    """A batch and who waits for it."""

    batch: Batch
    done: asyncio.Future[int]

    def answer(self, result: int | RetryableError) -> None:
        """Tell how it went, unless the request was given up or has its answer."""
        if self.done.done():
            return
        if isinstance(result, RetryableError):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)


@dataclass(slots=True, eq=False)
class _Client:
    """What one sender has here."""

    held_bytes: int = 0
    waiting: deque[Waiting] = field(default_factory=deque)


class Queue:
    """Used on the event loop only.

    Args:
        max_bytes: decoded bytes of all requests that are under way.
        max_rows: rows that wait to be written.
    """

    def __init__(self, max_bytes: int, max_rows: int) -> None:
        self._max_bytes, self._max_rows = max_bytes, max_rows
        self._clients: dict[str, _Client] = {}
        self._turns: deque[_Client] = deque()  # clients with something waiting, next one first
        self.held_bytes = self.rows = 0

    def hold(self, client: str, size: int) -> None:
        """Account for bytes; a negative size gives them back.

        A client may hold as much as is still free: alone it gets half of the room, and however
        much it sends, there is room for the next one.
        """
        known = self._known(client)
        free = self._max_bytes - self.held_bytes
        if size > 0 and known.held_bytes + size > free:
            self._forget(client, known)
            raise Overloaded("more is waiting than the service may hold", RETRY_AFTER)
        known.held_bytes += size
        self.held_bytes += size
        self._forget(client, known)

    async def written(self, batch: Batch, client: str) -> int:
        """Wait until a batch is written; says how many of its rows the database refused for good."""
        waiting = self._add(batch, client)
        try:
            return await waiting.done
        finally:
            self._forget(client, self._known(client))

    def _add(self, batch: Batch, client: str) -> Waiting:
        if self.rows and self.rows + batch.rows > self._max_rows:
            raise Overloaded("more rows are waiting than the service may hold", RETRY_AFTER)
        known = self._known(client)
        waiting = Waiting(batch, asyncio.get_running_loop().create_future())
        if not known.waiting:
            self._turns.append(known)
        known.waiting.append(waiting)
        self.rows += batch.rows
        return waiting

    def _known(self, client: str) -> _Client:
        return self._clients.get(client) or self._clients.setdefault(client, _Client())

    def _forget(self, client: str, known: _Client) -> None:
        if not known.held_bytes and not known.waiting:
            self._clients.pop(client, None)

    def next_group(self, most_rows: int) -> list[Waiting]:
        """One batch of each client in turn, until the group is full."""
        group: list[Waiting] = []
        rows = 0
        while self._turns and (
            not group or rows + self._turns[0].waiting[0].batch.rows <= most_rows
        ):
            client = self._turns.popleft()
            group.append(client.waiting.popleft())
            rows += group[-1].batch.rows
            if client.waiting:
                self._turns.append(client)
        self.rows -= rows
        return group

    def turn_away(self, why: RetryableError) -> None:
        """Everybody who waits is told to come again."""
        while self._turns:
            client = self._turns.popleft()
            for waiting in client.waiting:
                waiting.answer(why)
            client.waiting.clear()
        self.rows = 0
