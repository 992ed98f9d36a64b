"""`toolfault import`: what the Collector wrote to files goes into the store.

Harmless to repeat, for rows that are there already change nothing. After each transaction the place
in the file is noted, so that an import that was ended goes on where it stopped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from toolfault.ingest.errors import MalformedError
from toolfault.ingest.line_file import Line, LineFile, Place
from toolfault.ingest.pipeline import GROUP_ROWS
from toolfault.ingest.receiver import SIGNALS
from toolfault.ingest.select import Batch
from toolfault.ingest.writing import WriteError, WriterThread
from toolfault.settings import StartError
from toolfault.store import partitions
from toolfault.store.connect import connect
from toolfault.store.rows import Loaded

_WRITE_SECONDS = 60.0
_KIND = re.compile(rb'\s*\{\s*"resource(Spans|Logs|Metrics)"')
_SIGNALS = dict(zip((b"Spans", b"Logs", b"Metrics"), SIGNALS, strict=True))
_NO_LINE = "is no request in OTLP's JSON encoding"


class BadLine(NamedTuple):
    """A line that is skipped, or whose records are not all stored."""

    file: str
    line: int
    problem: str


class Imported(NamedTuple):
    """What became of the lines of a file that were read now."""

    lines: int
    new: Loaded
    known: int  # rows that were there already
    ignored: int  # records that are not about tools
    bad: tuple[BadLine, ...]


class Notes:
    """Where an import stands, by file and database."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        to = urlsplit(url)
        self._database = f"{to.hostname}:{to.port}{to.path}"

    def read(self, file: str) -> Place:
        """The place after what is imported already."""
        try:
            return Place(*json.loads(self._path(file).read_text()))
        except (OSError, ValueError, TypeError):
            return Place()  # from the beginning, which is harmless

    def write(self, file: str, place: Place) -> None:
        """Note a place, whole or not at all."""
        path = self._path(file)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(".new")
            written.write_text(json.dumps(place))
            written.replace(path)
        except OSError as error:
            raise StartError(
                f"{path} cannot be written ({error.strerror}); it notes how far the import is. "
                "Choose another folder with --data-dir or TOOLFAULT_DATA_DIR."
            ) from None

    def _path(self, file: str) -> Path:
        key = blake2b(f"{self._database} {file}".encode(), digest_size=16).hexdigest()
        return self._folder / f"{key}.json"


async def import_files(
    files: Sequence[LineFile],
    url: str,
    notes: Notes,
    *,
    again: bool = False,
    advanced: Callable[[LineFile], None] = lambda _: None,
) -> list[Imported]:
    """Import files one after another.

    Args:
        files: open, in their order.
        url: of the database.
        notes: where to go on, and where to note it.
        again: whether to begin at the beginning in spite of the notes.
        advanced: told of the file whenever a part of it is stored.

    Raises:
        StartError: the database takes nothing; what is stored by then stays.
    """
    _require_partitions(url)
    writer = WriterThread(url, _WRITE_SECONDS, imports=True)
    try:
        await writer.connect()
        return [await _File(file, writer, notes, advanced).run(again) for file in files]
    except WriteError as error:
        raise StartError(
            f"The import has stopped: {error}. The same command goes on from here."
        ) from None
    finally:
        await writer.close()


def _require_partitions(url: str) -> None:
    with closing(connect(url)) as conn:
        if not partitions.ahead(conn, datetime.now(UTC).date()):
            raise StartError(
                "The database has no partitions for today. Start the service once, it makes them: "
                "toolfault up"
            )


class _File:
    """One file on its way."""

    def __init__(
        self,
        file: LineFile,
        writer: WriterThread,
        notes: Notes,
        advanced: Callable[[LineFile], None],
    ) -> None:
        self._file, self._writer, self._notes, self._advanced = file, writer, notes, advanced
        self._name = str(file.path)
        self._gathered: list[tuple[int, Batch]] = []  # with the number of the line
        self._lines = self._known = self._ignored = 0
        self._new = Loaded(0, 0, 0)
        self._bad: list[BadLine] = []

    async def run(self, again: bool) -> Imported:
        """Import what is not imported yet."""
        identity = self._file.identity()
        done = Place() if again else self._notes.read(identity)
        for line in self._file.lines(done):
            self._lines += 1
            self._gather(line)
            if line.ends:  # one that is cut off is read again
                done = line.after
            if sum(batch.rows for _, batch in self._gathered) >= GROUP_ROWS:
                await self._store(identity, done)
        await self._store(identity, done)
        return Imported(self._lines, self._new, self._known, self._ignored, tuple(self._bad))

    def _gather(self, line: Line) -> None:
        number = line.after.line
        if line.problem is not None:
            self._complain(number, line.problem)
        elif line.body.strip():
            try:
                self._gathered += [(number, batch) for batch in _batches(line.body)]
            except MalformedError as error:
                self._complain(number, str(error))

    def _complain(self, number: int, problem: str) -> None:
        self._bad.append(BadLine(self._name, number, problem))

    async def _store(self, identity: str, done: Place) -> None:
        batches = [batch for _, batch in self._gathered]
        written = await self._writer.write(batches)
        self._new = Loaded(*map(sum, zip(self._new, written.new, strict=True)))
        self._known += (
            sum(batch.rows for batch in batches) - sum(written.new) - sum(written.refused)
        )
        for (number, batch), refused in zip(self._gathered, written.refused, strict=True):
            self._ignored += batch.ignored
            if total := refused + batch.refused.total():
                self._complain(number, f"{total} of its records cannot be stored")
        self._gathered = []
        self._notes.write(identity, done)
        self._advanced(self._file)


def _batches(body: bytes) -> list[Batch]:
    """All of a line or, where any of it is malformed, nothing."""
    kind = _KIND.match(body)
    if kind is None:
        raise MalformedError(_NO_LINE)
    return list(_SIGNALS[kind[1]].batches(body, True, datetime.now(UTC)))
