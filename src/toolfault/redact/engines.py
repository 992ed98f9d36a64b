"""The two engines that find hits: Python's `re`, and RE2 where it is installed. They must agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol

_GRAM = 3
#: `search(text, folded, position)` -> span of the next hit, or None
Search = Callable[[str, bytes, int], "tuple[int, int] | None"]


class Engine(Protocol):
    """What the scan needs: which keywords are there, and where a pattern hits next."""

    def keywords(self, words: Iterable[str]) -> Callable[[str, bytes], Iterable[int]]:
        """A function from a text to the indices of the words in it."""
        ...

    def compile(self, pattern: str) -> Search:
        """A function to the span of the next hit."""
        ...


class PythonEngine:
    """`re` on one character per byte; needs nothing but the standard library."""

    def keywords(self, words: Iterable[str]) -> Callable[[str, bytes], Iterable[int]]:
        """By the first three characters of each word: one set instead of hundreds of substring tests."""
        by_start: dict[str, list[tuple[int, str]]] = {}
        short: list[tuple[int, str]] = []
        for number, word in enumerate(words):
            (short if len(word) < _GRAM else by_start.setdefault(word[:_GRAM], [])).append((number, word))
        starts = frozenset(by_start)

        def present(text: str, _: bytes) -> list[int]:
            seen = starts.intersection({text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)})
            found = [number for number, word in short if word in text]
            found += [number for start in seen for number, word in by_start[start] if word in text]
            return found

        return present

    def compile(self, pattern: str) -> Search:
        """`re.ASCII`, for RE2 knows no other classes."""
        compiled = re.compile(pattern, re.ASCII)

        def search(text: str, _: bytes, at: int) -> tuple[int, int] | None:
            found = compiled.search(text, at)
            return found.span() if found else None

        return search


class Re2Engine:
    """google-re2 on bytes: linear in the text whatever the pattern, and one pass for all keywords."""

    def __init__(self) -> None:
        import re2  # the server's extra; an agent has no need of it

        self._re2 = re2
        self._options = re2.Options()
        self._options.encoding = re2.Options.Encoding.LATIN1
        self._options.log_errors = False

    def keywords(self, words: Iterable[str]) -> Callable[[str, bytes], Iterable[int]]:
        """One automaton for all of them."""
        found = self._re2.Set.SearchSet(self._options)
        for word in words:
            found.Add(self._re2.escape(word.encode("latin-1")))
        found.Compile()
        return lambda _, raw: found.Match(raw) or ()

    def compile(self, pattern: str) -> Search:
        """The same pattern, byte by byte."""
        compiled = self._re2.compile(pattern.encode("latin-1"), self._options)

        def search(_: str, raw: bytes, at: int) -> tuple[int, int] | None:
            found = compiled.search(raw, at)
            return found.span() if found else None

        return search


def best_engine() -> Engine:
    """RE2 if it can be imported."""
    try:
        return Re2Engine()
    except ImportError:
        return PythonEngine()
