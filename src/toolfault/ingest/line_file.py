"""A file of OTLP JSON, one request on each line, as the Collector's file exporter writes it."""

from __future__ import annotations

import gzip
import zlib
from hashlib import blake2b
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from toolfault.ingest.receiver import GZIP_MAGIC
from toolfault.settings import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPED = 1024 * 1024


class Place(NamedTuple):
    """How far a file is read: bytes after decompression, and lines."""

    position: int = 0
    line: int = 0


class Line(NamedTuple):
    """One line, and the place after it."""

    body: bytes
    after: Place
    problem: str | None = None  # why it cannot be read, in place of its body
    ends: bool = True  # False where the file stops in the middle of it


class LineFile:
    """Lines of a file, gzip or not, from any place on.

    Raises:
        SettingError: it cannot be opened.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self._max_bytes = path, max_bytes
        try:
            self._raw: BinaryIO = path.open("rb")
            head = self._raw.read(4)
            self._raw.seek(0)
        except OSError as error:
            raise SettingError(f"{path} cannot be read ({error.strerror}).") from None
        if head == _ZSTD_MAGIC:
            self._raw.close()
            raise SettingError(
                f"{path} is compressed with zstd. Decompress it first: zstd -d {path}"
            )
        is_gzip = head.startswith(GZIP_MAGIC)
        self._file: BinaryIO = gzip.GzipFile(fileobj=self._raw) if is_gzip else self._raw  # type: ignore[assignment]

    def __enter__(self) -> LineFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._raw.close()

    @property
    def bytes_read(self) -> int:
        """How much of the file itself is read, for a progress bar."""
        return self._raw.tell()

    def identity(self) -> str:
        """Tells this file from another one that takes its name when files are rotated."""
        stat = self.path.stat()
        first = self._file.read(256)
        self._file.seek(0)
        digest = blake2b(f"{stat.st_dev} {stat.st_ino} ".encode() + first, digest_size=16)
        return digest.hexdigest()

    def lines(self, place: Place) -> Iterator[Line]:
        """The lines after a place; the last one may be a problem that ends the file."""
        self._file.seek(place.position)
        try:
            while body := self._file.readline(self._max_bytes + 1):
                is_whole = len(body) <= self._max_bytes or body.endswith(b"\n")
                size = len(body) if is_whole else len(body) + self._skip_line()
                place = Place(place.position + size, place.line + 1)
                if is_whole:
                    yield Line(body, place, ends=body.endswith(b"\n"))
                else:
                    yield Line(b"", place, f"is longer than {self._max_bytes:,} bytes")
        except (
            EOFError,
            OSError,
            zlib.error,
        ) as error:  # a file that is cut off, or no gzip inside
            after = Place(place.position, place.line + 1)
            yield Line(b"", after, f"cannot be read: {error}", ends=False)

    def _skip_line(self) -> int:
        """Passes over the rest of a line; how long it was."""
        skipped = 0
        while piece := self._file.readline(_SKIPPED):
            skipped += len(piece)
            if piece.endswith(b"\n"):
                break
        return skipped
