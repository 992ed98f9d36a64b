"""From batches to commits: bounded, fair, and never later than told.

`submit` returns after COMMIT. What waits is written together (group commit) without a delay of its
own: while one transaction runs, the next one gathers; a second one runs beside it when it is large
enough, or has waited a moment. A writer that fails closes the entrance: those
who wait are told to come again, new ones are told so at once, until a probe has reached the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from toolfault.ingest.errors import StoreUnavailable
from toolfault.ingest.metrics import Metrics
from toolfault.ingest.queue import RETRY_AFTER, Queue, Waiting
from toolfault.ingest.select import Batch
from toolfault.ingest.writing import FULL, NOT_STORABLE, WriteError, WriterThread, Written

_log = logging.getLogger(__name__)
#: Rows written together; more gains little and makes everybody wait longer.
GROUP_ROWS = 5_000
#: Beside a running transaction, fewer rows wait for company: one of 500 costs twice as much a row.
_WORTHWHILE_ROWS = 2_500
_COMPANY_SECONDS = 0.1
_PROBE_SECONDS = 0.5
_DRAIN_SECONDS = 10.0


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
        limits = limits or Limits()
        self._writers = [WriterThread(url, limits.write_seconds) for _ in range(limits.writers)]
        self._queue = Queue(limits.max_bytes, limits.max_rows)
        self._writing = 0
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
                while (self._queue.rows or self._writing) and self._problem is None:
                    await asyncio.sleep(0.01)
        self._queue.turn_away(StoreUnavailable("the service is stopping", RETRY_AFTER))
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
            raise StoreUnavailable(problem, RETRY_AFTER)

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

        Raises:
            Overloaded: there is no room for them.
        """
        self._queue.hold(client, size)
        self.metrics.queue_bytes.set(self._queue.held_bytes)

    async def submit(self, batch: Batch, client: str = "") -> int:
        """Write a batch; returns after COMMIT how many of its rows the database refused for good.

        Raises:
            Overloaded: too many rows are waiting already.
            StoreUnavailable: the database cannot be written to.
        """
        self.check()
        if not batch.rows:
            return 0
        self._work.set()
        return await self._queue.written(batch, client)

    # --- writing ------------------------------------------------------------------------------------

    async def _run(self, writer: WriterThread) -> None:
        while True:
            await self._connect(writer)
            while self._problem is None:
                self._work.clear()
                await self._company()
                if group := self._queue.next_group(GROUP_ROWS):
                    await self._write(writer, group)
                else:
                    await self._work.wait()

    async def _company(self) -> None:
        """Let a small group become a larger one while another is being written."""
        for _ in range(10):
            if not self._writing or not 0 < self._queue.rows < _WORTHWHILE_ROWS:
                return
            await asyncio.sleep(_COMPANY_SECONDS / 10)

    async def _connect(self, writer: WriterThread) -> None:
        while True:
            try:
                await writer.connect(needs_room=self._problem == FULL)
            except WriteError as error:
                self._fail(str(error))
                await asyncio.sleep(_PROBE_SECONDS)
            else:
                if self._problem is not None:
                    _log.info("the database takes writes")
                self._problem = None
                return

    async def _write(self, writer: WriterThread, group: list[Waiting]) -> None:
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
                waiting.answer(StoreUnavailable(why, RETRY_AFTER))

    def _committed(self, group: list[Waiting], written: Written) -> None:
        for kind, amount in zip(("call", "event", "log"), written.new, strict=True):
            self.metrics.stored.labels(kind).inc(amount)
        for waiting, refused in zip(group, written.refused, strict=True):
            waiting.batch.refused[NOT_STORABLE] += refused
            waiting.answer(refused)

    def _fail(self, problem: str) -> None:
        if problem != self._problem:  # one line a change, not one a request
            _log.warning("nothing can be written: %s", problem)
        self._problem = problem
        self._queue.turn_away(StoreUnavailable(problem, RETRY_AFTER))
        self._work.set()  # wakes the other writers, so that they look again too


@contextmanager
def _telling_of_a_timeout() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        _log.warning("stopped with rows still waiting; their senders send them again")
