"""The scan: every rule over every view of the text, again and again until nothing is found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from toolfault.redact.engines import Engine, Search
from toolfault.redact.headers import decode_base64
from toolfault.redact.rules import all_rules
from toolfault.redact.spans import Span, View
from toolfault.redact.views import unescape

#: Hits of one rule in one text. Text behind more of them is dropped: hostile, and too long to be kept.
MAX_HITS = 400
#: A replacement may complete what was no secret before; four passes settle every known case.
MAX_PASSES = 6

EXCESS = "excess"

#: Base64 is decoded this far; longer text of printable characters is hidden unread.
MAX_BLOB = 4096
#: Escapes of escapes that are undone.
MAX_DEPTH = 2

_BLOB = r"[A-Za-z0-9+/_-]{16,}={0,2}"
_REPLACEMENT = re.compile(r"\[REDACTED:(\w{1,40})\]", re.ASCII)
#: behind a hit: its value was replaced in an earlier pass
_DONE = re.compile(r"[\\\"'`(\[{ ]{0,4}\[REDACTED:#{1,40}\](?![A-Za-z0-9])")
_SAYS = re.compile(r"[A-Za-z0-9\x80-\xff]")
_PLAIN = re.compile(r"[0-9a-fA-F-]*|[a-z]*|[A-Z]?[a-z]+")
#: the first of four characters holds the upper bits of an ASCII byte
_MAYBE_TEXT = re.compile(r"(?:\A|[/_-])(?:[C-Za-f][A-Za-z0-9+/_-]{3}){3}")
_PARTS = re.compile(r"[/_-]")


class NotSettledError(Exception):
    """The replacements keep making new matches."""


class Scrubber:
    """All rules compiled for one engine."""

    def __init__(self, engine: Engine, *, keeps_frames: bool = False) -> None:
        self._rules = [r for r in all_rules() if not (keeps_frames and r.is_message_only)]
        self._searches: dict[int, Search] = {}
        self._engine = engine
        self._present = engine.gate(self._rules)
        self._blob = engine.compile(_BLOB)

    def scrub(self, text: str) -> str:
        """`text` with every secret replaced by its class; scrubbing the result changes nothing."""
        raw = text.encode("utf-8", "surrogatepass")
        data = raw.decode("latin-1")
        for _ in range(MAX_PASSES):
            spans = list(_new(data, self._spans(data, raw, depth=0)))
            if not spans:
                return raw.decode("utf-8", "surrogatepass")
            data = _replace(data, spans)
            raw = data.encode("latin-1")
        raise NotSettledError

    def _spans(self, data: str, raw: bytes, depth: int) -> Iterator[Span]:
        if (
            "[REDACTED:" in data
        ):  # "[REDACTED:token]: x" is no token: the names of classes say nothing
            data = _REPLACEMENT.sub(lambda found: f"[REDACTED:{'#' * len(found[1])}]", data)
            raw = data.encode("latin-1")
        decoded = unescape(data)
        if decoded and decoded.is_cut:
            yield Span(decoded.starts[-1], len(data), EXCESS)
            data, raw = data[: decoded.starts[-1]], raw[: decoded.starts[-1]]
        yield from self._found(data, raw)
        yield from self._encoded(data, raw)
        if decoded is None:
            return
        inner = decoded.text.encode("latin-1")
        found = (
            self._spans(decoded.text, inner, depth + 1)
            if depth < MAX_DEPTH
            else self._found(decoded.text, inner)
        )
        for span in found:
            yield Span(decoded.starts[span.start], decoded.starts[span.end], span.kind)

    def _found(self, data: str, raw: bytes) -> Iterator[Span]:
        folded = raw.lower()
        view = View(data, folded.decode("latin-1") if folded != raw else data)
        for number in self._present(view.low, folded):
            if self._rules[number].also not in view.low:
                continue
            for span in self._hits(number, view, raw, folded):
                yield span
                if span.kind == EXCESS:  # the rest is dropped: no other rule need look at it
                    view = View(view.data[: span.start], view.low[: span.start])
                    raw, folded = raw[: span.start], folded[: span.start]

    def _hits(self, number: int, view: View, raw: bytes, folded: bytes) -> Iterator[Span]:
        rule = self._rules[number]
        search = self._searches.get(number)
        if search is None:
            search = self._searches[number] = self._engine.compile(rule.pattern)
        text, source = (view.low, folded) if rule.folded else (view.data, raw)
        at = 0
        for count, (start, end) in enumerate(search(text, source)):
            if count == MAX_HITS:
                yield Span(max(at, start), len(text), EXCESS)
                return
            if start < at or (rule.looks_ahead and _DONE.match(view.data, end)):
                continue
            at = end
            if rule.find is None:
                yield Span(start, end, rule.kind)
                continue
            for span in rule.find(view, start, end):
                if span.end > span.start:
                    yield span
                    at = max(at, span.end)
            if at >= len(text):
                return

    def _encoded(self, data: str, raw: bytes) -> Iterator[Span]:
        """Base64 that hides what would be hidden in plain."""
        for count, (start, at) in enumerate(self._blob(data, raw)):
            if count == MAX_HITS:
                yield Span(start, len(data), EXCESS)
                return
            blob = data[start : min(at, start + MAX_BLOB)]
            if not _MAYBE_TEXT.search(blob) or _PLAIN.fullmatch(blob):
                continue
            for part in (blob, *_PARTS.split(blob)):
                inner = decode_base64(part) if _MAYBE_TEXT.match(part) else None
                if inner and (at - start > MAX_BLOB or self._is_secret(inner)):
                    yield Span(start, at, "encoded")
                    break

    def _is_secret(self, inner: str) -> bool:
        return next(self._found(inner, inner.encode("latin-1")), None) is not None


def _new(data: str, spans: Iterator[Span]) -> Iterator[Span]:
    """`spans` without what an earlier pass has replaced: no replacement is torn, none is replaced alone."""
    made = [found.span() for found in _REPLACEMENT.finditer(data)] if "[REDACTED:" in data else []
    ends = [end for _, end in made]
    for start, end, kind in spans:
        first = bisect_right(ends, start)
        if first < len(made) and made[first][0] < start:
            start = made[first][1]  # noqa: PLW2901
        last = bisect_right(ends, end - 1)
        if last < len(made) and made[last][0] < end < made[last][1]:
            end = made[last][0]  # noqa: PLW2901
        if _SAYS.search(_REPLACEMENT.sub("", data[start:end]) if made else data[start:end]):
            yield Span(start, end, kind)


def _replace(data: str, spans: list[Span]) -> str:
    """Overlapping spans become one, named after the first and widest, of equal ones after the first rule."""
    pieces: list[str] = []
    at = 0
    for start, end, kind in _merged(sorted((_on_characters(data, s) for s in spans), key=_order)):
        pieces += (data[at:start], f"[REDACTED:{kind}]")
        at = end
    return "".join((*pieces, data[at:]))


def _order(span: Span) -> tuple[int, int]:
    return span.start, -span.end


def _on_characters(data: str, span: Span) -> Span:
    """`span` widened so that no UTF-8 sequence is torn."""
    start, end = span.start, span.end
    while start > 0 and "\x80" <= data[start : start + 1] < "\xc0":
        start -= 1
    while end < len(data) and "\x80" <= data[end] < "\xc0":
        end += 1
    return Span(start, end, span.kind)


def _merged(spans: list[Span]) -> Iterator[Span]:
    current = spans[0]
    for span in spans[1:]:
        if span.start < current.end:
            current = current._replace(end=max(current.end, span.end))
        else:
            yield current
            current = span
    yield current
