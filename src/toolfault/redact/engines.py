"""The two engines that find hits: Python's `re`, and RE2 where it is installed. They must agree.

Both look at a short text in the same way: at the places where a rule's words stand. Only in long text do their
searches differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from struct import unpack
from typing import Protocol

from toolfault.redact.rules import AHEAD, Rule
from toolfault.redact.spans import View

#: Bytes up to which hits are looked for where a rule's words are, and not by a search of the whole text.
SHORT = 16_384
#: Bytes up to which `re` searches faster than RE2 is called, whatever the text.
_SHORTEST = 512

#: the number of a rule that may hit, with those of its words that are there
Candidate = tuple[int, list[str]]
#: `present(view)` -> the rules that may hit, in order
Present = Callable[[View], list[Candidate]]
#: where a rule's pattern begins and ends
Hit = tuple[int, int]
#: `search(view, words)` -> the hits, left to right, none overlapping
Search = Callable[[View, Sequence[str]], Iterable[Hit]]


class Engine(Protocol):
    """What the scan needs: which rules may hit, and where a rule hits."""

    def gate(self, rules: Sequence[Rule]) -> Present:
        """A function from a text to the rules whose keywords are in it."""
        ...

    def compile(self, rule: Rule) -> Search:
        """A function to the spans of a rule's hits."""
        ...


def _by_rule(hits: Iterable[tuple[int, str]]) -> list[Candidate]:
    """`hits`, of (number of a rule, one of its words), as one row per rule."""
    rows: list[Candidate] = []
    last = -1
    for number, word in hits:
        if number == last:
            rows[-1][1].append(word)
        else:
            rows.append((number, [word]))
            last = number
    return rows


class PythonEngine:
    """`re` on one character per byte; needs nothing but the standard library."""

    def gate(self, rules: Sequence[Rule]) -> Present:
        """By the first two characters of each word: one set instead of hundreds of substring tests."""
        owners: dict[str, list[tuple[int, str]]] = {}
        for number, rule in enumerate(rules):
            for word in rule.keywords:
                owners.setdefault(word, []).append((number, word))
        single = [word for word in owners if len(word) == 1]
        by_start: dict[int, list[str]] = {}
        for word in owners:
            if len(word) > 1:
                by_start.setdefault(_pair(word), []).append(word)
        starts = frozenset(by_start)

        def present(view: View) -> list[Candidate]:
            text = view.low
            hits = [hit for word in single if word in text for hit in owners[word]]
            for start in starts.intersection(_pairs(view.folded)):
                for word in by_start[start]:
                    if word in text:
                        hits += owners[word]
            return _by_rule(sorted(hits))

        return present

    def compile(self, rule: Rule) -> Search:
        """`re.ASCII`, for RE2 knows no other classes."""
        search = re.compile(rule.pattern, re.ASCII).finditer
        return _at_words(rule, lambda view: search(view.low if rule.folded else view.data), SHORT)


class Re2Engine:
    """google-re2 on bytes: linear in the text whatever the pattern, and one pass for all keywords."""

    def __init__(self) -> None:
        import re2  # noqa: PLC0415 - the server's extra; an agent has no need of it

        self._re2 = re2
        self._options = re2.Options()
        self._options.encoding = re2.Options.Encoding.LATIN1
        self._options.log_errors = False

    def gate(self, rules: Sequence[Rule]) -> Present:
        """One automaton for all keywords and hardly more: it grows with texts not yet seen as long as they are new to it."""
        owners = [
            (number, word)
            for number, rule in enumerate(rules)
            for word in ((rule.gate,) if rule.gate else rule.keywords)
        ]
        found = self._re2.Set.SearchSet(self._options)
        for number, word in owners:
            found.Add((rules[number].gate or re.escape(word)).encode("latin-1"))
        canary = found.Add(b"^")  # matches any text: its absence means that memory ran out
        found.Compile()
        everything = _by_rule(owners)
        rows = lru_cache(maxsize=1024)(lambda hits: _by_rule(owners[hit] for hit in hits))

        def present(view: View) -> list[Candidate]:
            hits = sorted(found.Match(view.folded) or ())
            if not hits or hits.pop() != canary:
                return everything
            return rows(tuple(hits))

        return present

    def compile(self, rule: Rule) -> Search:
        """The same pattern, byte by byte; on short text `re`."""
        pattern = rule.pattern.replace(AHEAD, "").encode("latin-1")
        # compiled with the first long text: it takes a millisecond, and most texts are short
        compiled = cache(lambda: self._re2.compile(pattern, self._options))

        def whole(view: View) -> Iterable[re.Match[str]]:
            found: Iterable[re.Match[str]] = compiled().finditer(
                view.folded if rule.folded else view.raw
            )
            return found

        return _at_words(rule, whole, _SHORTEST if rule.starts == () else SHORT)


def _pair(word: str) -> int:
    return int.from_bytes(word[:2].encode("latin-1"), "little")


def _pairs(raw: bytes) -> tuple[int, ...]:
    """Each two neighbours of `raw` as one number."""
    even, odd = len(raw) // 2, max(0, len(raw) - 1) // 2
    return unpack(f"<{even}H{odd}H", raw[: 2 * even] + raw[1 : 1 + 2 * odd])


def _at_words(rule: Rule, whole: Callable[[View], Iterable[re.Match[str]]], most: int) -> Search:
    """`whole`, but in texts of up to `most` bytes `re`, only where a word stands that every hit begins with."""
    pattern = re.compile(rule.pattern, re.ASCII)
    match, starts, is_folded = pattern.match, rule.starts, rule.folded

    def search(view: View, words: Sequence[str]) -> Iterable[Hit]:
        low = view.low
        if len(low) > most:
            return (found.span() for found in whole(view))
        text = low if is_folded else view.data
        if starts == ():
            return [found.span() for found in pattern.finditer(text)]
        places: list[int] = []
        for word in starts or words:
            at = low.find(word)
            while at >= 0:
                places.append(at)
                at = low.find(word, at + 1)
        places.sort()
        hits: list[Hit] = []
        end = 0
        for start in places:
            if start >= end and (found := match(text, start)):
                end = found.end()
                hits.append((start, end))
        return hits

    return search


def best_engine() -> Engine:
    """RE2 if it can be imported."""
    try:
        return Re2Engine()
    except ImportError:
        return PythonEngine()
