"""The scan: every rule over every view of the text, again and again until nothing is found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from toolfault.redact.engines import SHORT, Engine, Search
from toolfault.redact.headers import decode_base64
from toolfault.redact.rules import Rule, all_rules
from toolfault.redact.spans import Span, View
from toolfault.redact.views import ESCAPE, unescape, with_plain_blanks

#: Hits of one rule in one text. Text behind more of them is dropped: hostile, and too long to be kept.
MAX_HITS = 400
#: The same in a text of which most is dropped anyway, so that each hit may cost what it does in a short one.
MAX_HITS_IN_LONG = 100
#: Replacements in one text, for the same reason.
MAX_MADE = 2000
#: A replacement may complete what was no secret before; four passes settle every known case.
MAX_PASSES = 6

EXCESS = "excess"

#: Base64 is decoded this far; longer text of printable characters is hidden unread.
MAX_BLOB = 4096
#: Escapes of escapes that are undone.
MAX_DEPTH = 2

_BLOB = r"[A-Za-z0-9+/_-]{16,}={0,2}"
#: leaves the characters of base64 and makes the others blanks
_RUNS = bytes(c if re.match(rb"[A-Za-z0-9+/_-]", bytes((c,))) else 32 for c in range(256))
_REPLACEMENT = re.compile(r"\[REDACTED:(\w{1,40})\]", re.ASCII)
#: behind a hit: its value was replaced in an earlier pass
_DONE = re.compile(r"[\\\"'`(\[{ ]{0,4}\[REDACTED:#{1,40}\](?![A-Za-z0-9\x80-\xff])")
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
        self._escapes = engine.compile(Rule("encoded", (), ESCAPE, starts=(), folded=False))
        self._blobs = engine.compile(Rule("encoded", (), _BLOB, starts=(), folded=False))

    def scrub(self, text: str) -> str:
        """`text` with every secret replaced by its class; scrubbing the result changes nothing."""
        data = text.encode("utf-8", "surrogatepass").decode("latin-1")
        for _ in range(MAX_PASSES):
            data = _bounded(data)
            spans = list(_new(data, self._spans(data, depth=0)))
            if not spans:
                return data.encode("latin-1").decode("utf-8", "surrogatepass")
            data = _replace(data, spans)
        raise NotSettledError

    def _spans(self, data: str, depth: int) -> Iterator[Span]:
        if "[REDACTED:" in data:
            # "[REDACTED:token]: x" is no token: the names of classes say nothing
            data = _REPLACEMENT.sub(lambda found: f"[REDACTED:{'#' * len(found[1])}]", data)
        view = View.of(data)
        has_mark = "\\" in data or "%" in data or "&" in data
        decoded = unescape(data, self._escapes(view, ())) if has_mark else None
        if decoded and decoded.is_cut:
            yield Span(decoded.starts[-1], len(data), EXCESS)
            view = view.cut(decoded.starts[-1])
        yield from self._found(view)
        plain = with_plain_blanks(view.data)
        if plain != view.data:
            # inside a value they are part of it, around its name they are blanks: read in both ways
            yield from self._found(View.of(plain))
        yield from self._encoded(view)
        if decoded is None:
            return
        found = (
            self._spans(decoded.text, depth + 1)
            if depth < MAX_DEPTH
            else self._found(View.of(decoded.text))
        )
        for span in found:
            yield Span(decoded.starts[span.start], decoded.starts[span.end], span.kind)

    def _found(self, view: View) -> Iterator[Span]:
        for number, words in self._present(view):
            rule = self._rules[number]
            if rule.also not in view.low:
                continue
            search = self._searches.get(number)
            if search is None:
                search = self._searches[number] = self._engine.compile(rule)
            hits = search(view, words)
            if not hits:
                continue
            for span in _hidden(rule, view, hits):
                yield span
                if span.kind == EXCESS:  # the rest is dropped: no other rule need look at it
                    view = view.cut(span.start)

    def _encoded(self, view: View) -> Iterator[Span]:
        """Base64 that hides what would be hidden in plain."""
        if len(view.raw) <= SHORT and not _may_encode(view.raw):
            return
        most = _most_hits(view)
        for count, (start, at) in enumerate(self._blobs(view, ())):
            if count == most:
                yield Span(start, len(view.data), EXCESS)
                return
            blob = view.data[start : min(at, start + MAX_BLOB)]
            if not _MAYBE_TEXT.search(blob) or _PLAIN.fullmatch(blob):
                continue
            for part in (blob, *_PARTS.split(blob)):
                inner = decode_base64(part) if _MAYBE_TEXT.match(part) else None
                if inner and (at - start > MAX_BLOB or self._is_secret(inner)):
                    yield Span(start, at, "encoded")
                    break

    def _is_secret(self, inner: str) -> bool:
        return next(self._found(View.of(inner)), None) is not None


def _bounded(data: str) -> str:
    """`data` to the last replacement that is counted."""
    pieces = data.split("[REDACTED:", MAX_MADE)
    if len(pieces) <= MAX_MADE:
        return data
    return "[REDACTED:".join((*pieces[:MAX_MADE], f"{EXCESS}]"))


def _hidden(rule: Rule, view: View, hits: Iterable[tuple[int, int]]) -> Iterator[Span]:
    """What `rule` hides around its `hits`."""
    at, most = 0, _most_hits(view)
    is_again = rule.looks_ahead and "[REDACTED:" in view.data
    for count, (start, end) in enumerate(hits):
        if count == most:
            yield Span(max(at, start), len(view.data), EXCESS)
            return
        if start < at or (is_again and _DONE.match(view.data, end)):
            continue
        at = end
        if rule.find is None:
            yield Span(start, end, rule.kind)
            continue
        for span in rule.find(view, start, end):
            if span.end > span.start:
                yield span
                at = max(at, span.end)
        if at >= len(view.data):
            return


def _most_hits(view: View) -> int:
    return MAX_HITS if len(view.raw) <= SHORT else MAX_HITS_IN_LONG


def _may_encode(raw: bytes) -> bool:
    """Whether a run of 16 characters may be text in base64."""
    runs = raw.translate(_RUNS).decode("latin-1").split()
    return any(len(run) >= 16 and _MAYBE_TEXT.search(run) for run in runs)


def _new(data: str, spans: Iterator[Span]) -> Iterator[Span]:
    """`spans` without what an earlier pass has replaced: no replacement is torn, none is replaced alone."""
    made = [found.span() for found in _REPLACEMENT.finditer(data)] if "[REDACTED:" in data else []
    if not made:
        yield from (span for span in spans if _SAYS.search(data, span.start, span.end))
        return
    ends = [end for _, end in made]
    for start, end, kind in spans:
        first = bisect_right(ends, start)
        if first < len(made) and made[first][0] < start:
            start = made[first][1]  # noqa: PLW2901
        last = bisect_right(ends, end - 1)
        if last < len(made) and made[last][0] < end < made[last][1]:
            end = made[last][0]  # noqa: PLW2901
        if _SAYS.search(_REPLACEMENT.sub("", data[start:end])):
            yield Span(start, end, kind)


def _replace(data: str, spans: list[Span]) -> str:
    """Overlapping spans become one, named after the first and widest, of equal ones after the first rule."""
    if not data.isascii():
        spans = [_on_characters(data, span) for span in spans]
    pieces: list[str] = []
    at = 0
    for start, end, kind in sorted(spans, key=_order):
        if start >= at:
            pieces += (data[at:start], f"[REDACTED:{kind}]")
        at = max(at, end)
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
