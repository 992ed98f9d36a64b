"""The two engines that find hits: Python's `re`, and RE2 where it is installed. They must agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from toolfault.redact.rules import Rule

_GRAM = 3
#: Bytes for which no pattern of ours is slow, whatever the text.
_SHORT = 512
#: `search(text, the same as bytes)` -> spans of the hits
Search = Callable[[str, bytes], Iterator[tuple[int, int]]]


#: `present(text in lower case, the same as bytes)` -> numbers of the rules that may hit
Present = Callable[[str, bytes], Sequence[int]]


class Engine(Protocol):
    """What the scan needs: which rules may hit, and where a pattern hits next."""

    def gate(self, rules: Sequence[Rule]) -> Present:
        """A function from a text to the rules whose keywords are in it, in the order of the rules."""
        ...

    def compile(self, pattern: str) -> Search:
        """A function to the spans of the hits, left to right, none overlapping."""
        ...


class PythonEngine:
    """`re` on one character per byte; needs nothing but the standard library."""

    def gate(self, rules: Sequence[Rule]) -> Present:
        """By the first three characters of each word: one set instead of hundreds of substring tests."""
        by_start: dict[str, list[tuple[int, str]]] = {}
        short: list[tuple[int, str]] = []
        for number, rule in enumerate(rules):
            for word in rule.keywords:
                (short if len(word) < _GRAM else by_start.setdefault(word[:_GRAM], [])).append(
                    (number, word)
                )
        starts = frozenset(by_start)

        def present(text: str, _: bytes) -> list[int]:
            seen = starts.intersection(
                [text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)]
            )
            found = {number for number, word in short if word in text}
            found.update(
                number for start in seen for number, word in by_start[start] if word in text
            )
            return sorted(found)

        return present

    def compile(self, pattern: str) -> Search:
        """`re.ASCII`, for RE2 knows no other classes."""
        compiled = re.compile(pattern, re.ASCII)
        return lambda text, _: (found.span() for found in compiled.finditer(text))


class Re2Engine:
    """google-re2 on bytes: linear in the text whatever the pattern, and one pass for all keywords."""

    def __init__(self) -> None:
        import re2  # noqa: PLC0415 - the server's extra; an agent has no need of it

        self._re2 = re2
        self._options = re2.Options()
        self._options.encoding = re2.Options.Encoding.LATIN1
        self._options.log_errors = False

    def gate(self, rules: Sequence[Rule]) -> Present:
        """One automaton for all keywords, or for a rule's narrower gate where its keywords are everywhere."""
        found = self._re2.Set.SearchSet(self._options)
        owners: list[int] = []
        for number, rule in enumerate(rules):
            for word in (rule.gate,) if rule.gate else map(re.escape, rule.keywords):
                found.Add(word.encode("latin-1"))
                owners.append(number)
        found.Add(b"^")  # matches any text: its absence means that the automaton ran out of memory
        found.Compile()
        everything = range(len(rules))
        canary = len(owners)

        def present(_: str, raw: bytes) -> Sequence[int]:
            hits = found.Match(raw)
            if not hits or canary not in hits:
                return everything
            return sorted({owners[hit] for hit in hits if hit != canary})

        return present

    def compile(self, pattern: str) -> Search:
        """The same pattern, byte by byte; `re` on short text, where its calls cost less than RE2's."""
        in_short = PythonEngine().compile(pattern)
        compiled = self._re2.compile(pattern.encode("latin-1"), self._options)

        def search(text: str, raw: bytes) -> Iterator[tuple[int, int]]:
            if len(raw) <= _SHORT:
                return in_short(text, raw)
            return (found.span() for found in compiled.finditer(raw))

        return search


def best_engine() -> Engine:
    """RE2 if it can be imported."""
    try:
        return Re2Engine()
    except ImportError:
        return PythonEngine()
