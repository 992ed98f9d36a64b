"""What a rule reads and yields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class View(NamedTuple):
    """The text as one character per byte, and the same in lower case; both as bytes too."""

    data: str
    low: str
    raw: bytes
    folded: bytes

    @classmethod
    def of(cls, data: str) -> View:
        """All four forms of `data`, whose characters are below U+0100."""
        raw = data.encode("latin-1")
        folded = raw.lower()
        return cls(data, data if folded == raw else folded.decode("latin-1"), raw, folded)

    def cut(self, at: int) -> View:
        """The view of what stands before `at`."""
        return View(self.data[:at], self.low[:at], self.raw[:at], self.folded[:at])


#: where the characters to hide begin and end, and the class to print instead
Span = tuple[int, int, str]
Spans = Iterator[Span]

#: What ends a word. Not `str.split()` or `\s`: of UTF-8 read byte by byte they cut "à" and "Р" in two.
BLANKS = " \t\r\n"


def run_start(data: str, at: int, least: int, characters: str) -> int:
    """Where the run of `characters` before `at` begins, at most `least` back."""
    left = max(0, at - least)
    return left + len(data[left:at].rstrip(characters))


def words(text: str) -> frozenset[str]:
    """A set written as a line of words."""
    return frozenset(text.split())
