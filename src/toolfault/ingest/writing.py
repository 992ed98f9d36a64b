"""One connection and the thread that waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple, TypeVar

import psycopg

from toolfault.ingest.select import Batch
from toolfault.store.errors import DatabaseUnreachableError
from toolfault.store.rows import Call, Event, Loaded, Log
from toolfault.store.write import Writer

#: Why a row is refused that came this far: the database will never take it.
NOT_STORABLE = "not_storable"
READ_ONLY = "the database is read-only"
FULL = "the database's disk is full"
# Four megabytes of a temporary table, which is emptied at once. A full disk takes connections and
# small changes: without this readiness would turn green between two batches that fail.
_ROOM = """INSERT INTO stage_log_record (body)
    SELECT repeat('x', 1900) FROM generate_series(1, 2000)"""
_CONNECT_SECONDS = 6.0  # a little more than the driver's own limit
_DATA, _INTEGRITY, _PROGRAM_LIMIT = "22", "23", "54"  # classes of SQLSTATE that blame the row

Row = Call | Event | Log
_T = TypeVar("_T")


class WriteError(Exception):
    """The database does not take writes; the message quotes nothing of a row."""


class Written(NamedTuple):
    """What became of a group of batches."""

    new: Loaded
    refused: list[int]  # rows of each batch that the database will never take


class WriterThread:
    """A `Writer` used from the event loop.

    Args:
        url: of the database.
        write_seconds: after which a transaction counts as failed and its connection is dropped.
        imports: whether what it writes is imported, and moves no total that an alert reads.
    """

    def __init__(self, url: str, write_seconds: float, *, imports: bool = False) -> None:
        self._url, self._write_seconds, self._imports = url, write_seconds, imports
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolfault-writer")
        self._writer: Writer | None = None

    async def connect(self, *, needs_room: bool = False) -> None:
        """Reach the database anew; also tells whether it takes writes.

        Args:
            needs_room: whether its disk was full, so that it has to be seen that it is not.
        """
        await self._run(lambda: self._connect(needs_room=needs_room), _CONNECT_SECONDS)

    async def write(self, batches: Sequence[Batch]) -> Written:
        """Commit the batches together."""
        return await self._run(lambda: self._write(batches), self._write_seconds)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        with contextlib.suppress(WriteError):
            await self._run(self._close, _CONNECT_SECONDS)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], _T], most_seconds: float) -> _T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        done, _ = await asyncio.wait({future}, timeout=most_seconds)
        if not done:
            # A stopped server answers no cancel request: only the end of its socket ends the wait.
            self._cut()
            raise WriteError(f"the database has not answered for {most_seconds:g} s")
        return future.result()

    def _cut(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError, psycopg.Error):
                cut = socket.socket(fileno=os.dup(self._writer.conn.fileno()))
                with cut:
                    cut.shutdown(socket.SHUT_RDWR)

    # --- in the thread ------------------------------------------------------------------------------

    def _connect(self, *, needs_room: bool) -> None:
        self._close()
        try:
            writer = Writer.open(self._url, imports=self._imports)
            self._writer = writer
            read_only = writer.conn.execute("SHOW transaction_read_only").fetchone()
            if needs_room:
                writer.conn.execute(_ROOM)
        except DatabaseUnreachableError as error:
            raise WriteError(str(error)) from None
        except psycopg.Error as error:
            raise WriteError(_sentence(error)) from None
        if read_only == ("on",):
            raise WriteError(READ_ONLY)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _write(self, batches: Sequence[Batch]) -> Written:
        try:
            return Written(self._load(*_together(batches)), [0] * len(batches))
        except psycopg.Error as error:
            if not _blames_a_row(error):
                raise WriteError(_sentence(error)) from None
        except (ValueError, TypeError, OverflowError):  # the driver cannot encode a row
            pass
        if len(batches) > 1:  # only one of them may pay
            apart = [self._write([batch]) for batch in batches]
            new = Loaded(*map(sum, zip(*(written.new for written in apart), strict=True)))
            return Written(new, [written.refused[0] for written in apart])
        return self._write_halves(list(chain(*_together(batches))))

    def _write_halves(self, rows: list[Row]) -> Written:
        """Finds the rows that cannot be stored, and stores the others."""
        if len(rows) == 1:
            return Written(Loaded(0, 0, 0), [1])
        middle = len(rows) // 2
        halves = [self._write([_batch(half)]) for half in (rows[:middle], rows[middle:])]
        first, second = halves
        new = Loaded(*map(sum, zip(first.new, second.new, strict=True)))
        return Written(new, [first.refused[0] + second.refused[0]])

    def _load(self, calls: Sequence[Call], events: Sequence[Event], logs: Sequence[Log]) -> Loaded:
        if self._writer is None:
            raise WriteError("the database is not connected")
        return self._writer.load(calls, events, logs)


def _together(batches: Sequence[Batch]) -> tuple[list[Call], list[Event], list[Log]]:
    if len(batches) == 1:
        return batches[0].calls, batches[0].events, batches[0].logs
    return (
        [call for batch in batches for call in batch.calls],
        [event for batch in batches for event in batch.events],
        [log for batch in batches for log in batch.logs],
    )


def _batch(rows: list[Row]) -> Batch:
    return Batch(
        [row for row in rows if isinstance(row, Call)],
        [row for row in rows if isinstance(row, Event)],
        [row for row in rows if isinstance(row, Log)],
    )


def _blames_a_row(error: psycopg.Error) -> bool:
    state = error.sqlstate
    # Errors of the driver's own encoding have no SQLSTATE.
    return (
        state[:2] in (_DATA, _INTEGRITY, _PROGRAM_LIMIT)
        if state
        else isinstance(error, psycopg.DataError)
    )


def _sentence(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return READ_ONLY
    if isinstance(error, psycopg.errors.DiskFull):
        return FULL
    # Not the server's words: they quote values.
    return f"the database does not take writes ({type(error).__name__})"
