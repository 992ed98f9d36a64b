"""From batches to commits: bounded, fair, and never later than told.

`submit` returns after COMMIT. What waits is written together (group commit) without a delay of its
own: while one transaction runs, the next one gathers. A writer that fails closes the entrance: those
who wait are told to come again, new ones are told so at once, until a probe has reached the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from toolfault.ingest.errors import Overloaded, RetryableError, StoreUnavailable
from toolfault.ingest.metrics import Metrics
from toolfault.ingest.select import Batch
from toolfault.ingest.writing import NOT_STORABLE, WriteError, WriterThread, Written

_log = logging.getLogger(__name__)
#: Rows written together; more gains little and makes everybody wait longer.
GROUP_ROWS = 5_000
_PROBE_SECONDS = 0.5
_DRAIN_SECONDS = 10.0
_RETRY_AFTER = 2  # s


@dataclass(slots=True, eq=False)
class _Waiting:
    batch: Batch
    done: asyncio.Future[int]


@dataclass(slots=True, eq=False)
class _Client:
    """What one sender has here."""

    held_bytes: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque)


class Admission:
    """The bytes a request holds, from its first one to its answer."""

    def __init__(self, pipeline: Pipeline, client: str) -> None:
        self._pipeline, self.client, self.held = pipeline, client, 0

    def grow(self, size: int) -> None:
        """Hold `size` bytes more.

        Raises:
            Overloaded: more would be held than is allowed, in all or by this client.
        """
        self._pipeline.hold(self.client, size)
        self.held += size

    def shrink(self, size: int) -> None:
        """Give `size` bytes back."""
        self._pipeline.hold(self.client, -size)
        self.held -= size


class Limits(NamedTuple):
    """What the pipeline may hold."""

    max_bytes: int = 256 * 1024 * 1024  # decoded bytes of all requests that are under way
    max_rows: int = 100_000  # rows that wait to be written
    writers: int = 2  # connections, each with a thread
    write_seconds: float = 8.0  # after which a transaction counts as failed


class Pipeline:
    """Takes batches on the event loop, writes them in threads.

    Args:
        url: of the database.
        registry: where its metrics go; by default one of its own.
        limits: what it may hold.
    """

    def __init__(
        self,
        url: str,
        registry: CollectorRegistry | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.metrics = Metrics(registry or CollectorRegistry())
        self._limits = limits = limits or Limits()
        self._writers = [WriterThread(url, limits.write_seconds) for _ in range(limits.writers)]
        self._clients: dict[str, _Client] = {}
        self._turns: deque[_Client] = deque()  # clients with something waiting, next one first
        self._held_bytes = self._waiting_rows = self._writing = 0
        self._work = asyncio.Event()
        self._problem: str | None = "the database has not been reached yet"
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    # --- life ---------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Reach the database and begin to write.

        A database that cannot be reached is not an error here: the pipeline keeps trying.
        """
        self._tasks = [asyncio.create_task(self._run(writer)) for writer in self._writers]
        async with asyncio.timeout(_DRAIN_SECONDS):
            while self._problem == "the database has not been reached yet":
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        """Take nothing more, write what waits, close the connections."""
        self._stopping = True
        with _telling_of_a_timeout():
            async with asyncio.timeout(_DRAIN_SECONDS):
                while (self._waiting_rows or self._writing) and self._problem is None:
                    await asyncio.sleep(0.01)
        self._turn_away(StoreUnavailable("the service is stopping", _RETRY_AFTER))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            await writer.close()

    async def __aenter__(self) -> Pipeline:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def problem(self) -> str | None:
        """Why nothing can be written at the moment; None if all is well."""
        return "the service is stopping" if self._stopping else self._problem

    # --- the entrance -------------------------------------------------------------------------------

    def check(self) -> None:
        """Turn a request away before its body is read.

        Raises:
            StoreUnavailable: nothing can be written at the moment.
        """
        if (problem := self.problem()) is not None:
            raise StoreUnavailable(problem, _RETRY_AFTER)

    @contextmanager
    def admit(self, client: str) -> Iterator[Admission]:
        """Account for a request of a client, from its first byte to its answer."""
        self.check()
        admission = Admission(self, client)
        try:
            yield admission
        finally:
            admission.shrink(admission.held)

    def hold(self, client: str, size: int) -> None:
        """Account for bytes; a negative size gives them back.

        A client may hold as much as is still free: alone it gets half of the room, and however
        much it sends, there is room for the next one.
        """
        known = self._clients.get(client) or self._clients.setdefault(client, _Client())
        free = self._limits.max_bytes - self._held_bytes
        if size > 0 and known.held_bytes + size > free:
            self._forget(client, known)
            raise Overloaded("more is waiting than the service may hold", _RETRY_AFTER)
        known.held_bytes += size
        self._held_bytes += size
        self.metrics.queue_bytes.set(self._held_bytes)
        self._forget(client, known)

    def _forget(self, client: str, known: _Client) -> None:
        if not known.held_bytes and not known.waiting:
            self._clients.pop(client, None)

    async def submit(self, batch: Batch, client: str = "") -> int:
        """Write a batch; returns after COMMIT how many of its rows the database refused for good.

        Raises:
            Overloaded: too many rows are waiting already.
            StoreUnavailable: the database cannot be written to.
        """
        self.check()
        if not batch.rows:
            return 0
        if self._waiting_rows and self._waiting_rows + batch.rows > self._limits.max_rows:
            raise Overloaded("more rows are waiting than the service may hold", _RETRY_AFTER)
        known = self._clients.get(client) or self._clients.setdefault(client, _Client())
        waiting = _Waiting(batch, asyncio.get_running_loop().create_future())
        if not known.waiting:
            self._turns.append(known)
        known.waiting.append(waiting)
        self._waiting_rows += batch.rows
        self._work.set()
        try:
            return await waiting.done
        finally:
            self._forget(client, known)

    # --- writing ------------------------------------------------------------------------------------

    def _next_group(self) -> list[_Waiting]:
        """One batch of each client in turn, until the group is full."""
        group: list[_Waiting] = []
        rows = 0
        while self._turns and (
            not group or rows + self._turns[0].waiting[0].batch.rows <= GROUP_ROWS
        ):
            client = self._turns.popleft()
            group.append(client.waiting.popleft())
            rows += group[-1].batch.rows
            if client.waiting:
                self._turns.append(client)
        self._waiting_rows -= rows
        return group

    async def _run(self, writer: WriterThread) -> None:
        while True:
            await self._connect(writer)
            while self._problem is None:
                self._work.clear()
                if group := self._next_group():
                    await self._write(writer, group)
                else:
                    await self._work.wait()

    async def _connect(self, writer: WriterThread) -> None:
        while True:
            try:
                await writer.connect()
            except WriteError as error:
                self._fail(str(error))
                await asyncio.sleep(_PROBE_SECONDS)
            else:
                if self._problem is not None:
                    _log.info("the database takes writes")
                self._problem = None
                return

    async def _write(self, writer: WriterThread, group: list[_Waiting]) -> None:
        why = "the service is stopping"
        self._writing += 1
        try:
            written = await writer.write([waiting.batch for waiting in group])
        except WriteError as error:
            why = str(error)
            self._fail(why)
        else:
            self._committed(group, written)
        finally:
            self._writing -= 1
            for waiting in group:  # those who have no answer yet
                _answer(waiting, StoreUnavailable(why, _RETRY_AFTER))

    def _committed(self, group: list[_Waiting], written: Written) -> None:
        for kind, amount in zip(("call", "event", "log"), written.new, strict=True):
            self.metrics.stored.labels(kind).inc(amount)
        for waiting, refused in zip(group, written.refused, strict=True):
            waiting.batch.refused[NOT_STORABLE] += refused
            _answer(waiting, refused)

    def _fail(self, problem: str) -> None:
        if problem != self._problem:  # one line a change, not one a request
            _log.warning("nothing can be written: %s", problem)
        self._problem = problem
        self._turn_away(StoreUnavailable(problem, _RETRY_AFTER))
        self._work.set()  # wakes the other writers, so that they look again too

    def _turn_away(self, why: RetryableError) -> None:
        while self._turns:
            client = self._turns.popleft()
            for waiting in client.waiting:
                _answer(waiting, why)
            client.waiting.clear()
        self._waiting_rows = 0


def _answer(waiting: _Waiting, result: int | RetryableError) -> None:
    if waiting.done.done():  # the request was given up meanwhile
        return
    if isinstance(result, RetryableError):
        waiting.done.set_exception(result)
    else:
        waiting.done.set_result(result)


@contextmanager
def _telling_of_a_timeout() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        _log.warning("stopped with rows still waiting; their senders send them again")
