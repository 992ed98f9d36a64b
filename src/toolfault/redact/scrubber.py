"""The scan: every rule over every view of the text, again and again until nothing is found."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from toolfault.redact.engines import SHORT, Candidate, Engine, Hit, Search
from toolfault.redact.headers import decode_base64
from toolfault.redact.rules import Rule, all_rules
from toolfault.redact.spans import Span, View
from toolfault.redact.values import WINDOW
from toolfault.redact.views import ESCAPE, Decoded, unescape, with_plain_blanks

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

#: the characters of base64 as one, and all others as a blank
_RUNS = bytes(97 if re.match(rb"[A-Za-z0-9+/_-]", bytes((c,))) else 32 for c in range(256))
#: Runs of fewer hide nothing.
_SHORTEST_RUN = b"a" * 16
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

    def scrub(self, text: str) -> str:
        """`text` with every secret replaced by its class; scrubbing the result changes nothing."""
        data = text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")
        given = data
        known: list[Candidate] = []
        for _ in range(MAX_PASSES):
            data = _bounded(data)
            spans = _new(data, self._spans(data, 0, known))
            if not spans:
                is_new = data is not given
                return data.encode("latin-1").decode("utf-8", "surrogatepass") if is_new else text
            data = _replace(data, spans)
        raise NotSettledError

    def _spans(self, data: str, depth: int, known: list[Candidate]) -> list[Span]:
        """What to hide in `data`. `known` is filled in the first pass: no replacement brings a keyword with it."""
        spans: list[Span] = []
        if "[REDACTED:" in data:
            data = _without_classes(data)
        view = View.of(data)
        decoded = self._decoded(view)
        if decoded and decoded.is_cut:
            spans.append((decoded.origins[-1], len(data), EXCESS))
            view = view.cut(decoded.origins[-1])
            known = []  # a later pass may read further
        # inside a value odd blanks are part of it, around its name they are blanks: read in both ways
        plain = with_plain_blanks(view.data)
        is_odd = plain != view.data
        plain_view = View.of(plain) if is_odd else view
        if not known:  # no keyword has an odd blank in it
            known.extend(self._present(plain_view))
        spans += self._found(view, known)
        size = len(view.data)
        # what is hidden to the end may still tell what a secret before it is: credentials by their host
        needed = min((start for start, end, _ in spans if end == size), default=size) + WINDOW
        if size > SHORT and needed < size:
            view = view.cut(needed)
            decoded = self._decoded(view)
        if is_odd:
            spans += self._found(plain_view.cut(len(view.data)), known)
        spans += self._encoded(view)
        if decoded:
            inner, origin = decoded.text, decoded.origin
            found = (
                self._spans(inner, depth + 1, []) if depth < MAX_DEPTH else self._found_in(inner)
            )
            spans += [(origin(start), origin(end), kind) for start, end, kind in found]
        return spans

    def _decoded(self, view: View) -> Decoded | None:
        has_mark = "\\" in view.data or "%" in view.data or "&" in view.data
        return unescape(view.data, self._escapes(view, ())) if has_mark else None

    def _found_in(self, data: str) -> list[Span]:
        view = View.of(data)
        return self._found(view, self._present(view))

    def _found(self, view: View, present: list[Candidate]) -> list[Span]:
        spans: list[Span] = []
        most = _most_hits(view)
        for number, words in present:
            rule = self._rules[number]
            if rule.also not in view.low:
                continue
            search = self._searches.get(number)
            if search is None:
                search = self._searches[number] = self._engine.compile(rule)
            hits = search(view, words)
            if not hits:
                continue
            hidden = _hidden(rule, view, hits, most)
            spans += hidden
            if hidden and hidden[-1][1] == len(view.data) > SHORT:
                # the rest is hidden: other rules look at no more of it than they may read ahead
                view = view.cut(hidden[-1][0] + WINDOW)
        return spans

    def _encoded(self, view: View) -> list[Span]:
        """Base64 that hides what would be hidden in plain."""
        spans: list[Span] = []
        most = _most_hits(view)
        for count, (start, end) in enumerate(_blobs(view)):
            if count == most:
                spans.append((start, len(view.data), EXCESS))
                break
            blob = view.data[start : min(end, start + MAX_BLOB)]
            if not _MAYBE_TEXT.search(blob) or _PLAIN.fullmatch(blob):
                continue
            for part in (blob, *_PARTS.split(blob)):
                inner = decode_base64(part) if _MAYBE_TEXT.match(part) else None
                if inner and (end - start > MAX_BLOB or self._found_in(inner)):
                    filled = view.data[end : end + 2]
                    spans.append((start, end + len(filled) - len(filled.lstrip("=")), "encoded"))
                    break
        return spans


def _without_classes(data: str) -> str:
    """`data` without the names of classes, which say nothing: "[REDACTED:token]: x" is no token."""
    pieces = _REPLACEMENT.split(data)
    pieces[1::2] = [f"[REDACTED:{'#' * len(kind)}]" for kind in pieces[1::2]]
    return "".join(pieces)


def _bounded(data: str) -> str:
    """`data` to the last replacement that is counted."""
    pieces = data.split("[REDACTED:", MAX_MADE)
    if len(pieces) <= MAX_MADE:
        return data
    return "[REDACTED:".join((*pieces[:MAX_MADE], f"{EXCESS}]"))


def _hidden(rule: Rule, view: View, hits: Iterable[Hit], most: int) -> list[Span]:
    """What `rule` hides around its `hits`."""
    spans: list[Span] = []
    at, size = 0, len(view.data)
    is_again = rule.looks_ahead and "[REDACTED:" in view.data
    for count, (start, end) in enumerate(hits):
        if count == most:
            spans.append((max(at, start), size, EXCESS))
            break
        if start < at or (is_again and _DONE.match(view.data, end)):
            continue
        at = end
        for span in rule.find(view, start, end) if rule.find else ((start, end, rule.kind),):
            if span[1] > span[0]:
                spans.append(span)
                at = max(at, span[1])
        if at >= size:
            break
    return spans


def _most_hits(view: View) -> int:
    return MAX_HITS if len(view.raw) <= SHORT else MAX_HITS_IN_LONG


def _blobs(view: View) -> Iterator[Hit]:
    """Runs of at least 16 characters of base64."""
    runs = view.raw.translate(_RUNS)
    start = runs.find(_SHORTEST_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        if end < 0:
            end = len(runs)
        yield start, end
        start = runs.find(_SHORTEST_RUN, end)


def _new(data: str, spans: list[Span]) -> list[Span]:
    """`spans` without what an earlier pass has replaced: no replacement is torn, none is replaced alone."""
    if not spans or "[REDACTED:" not in data:
        return [span for span in spans if _SAYS.search(data, span[0], span[1])]
    made = [found.span() for found in _REPLACEMENT.finditer(data)]
    ends = [end for _, end in made]
    new: list[Span] = []
    for start, end, kind in spans:
        first = bisect_right(ends, start)
        if first < len(made) and made[first][0] < start:
            start = made[first][1]  # noqa: PLW2901
        last = bisect_right(ends, end - 1)
        if last < len(made) and made[last][0] < end < made[last][1]:
            end = made[last][0]  # noqa: PLW2901
        if _SAYS.search(_REPLACEMENT.sub("", data[start:end])):
            new.append((start, end, kind))
    return new


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
    return span[0], -span[1]


def _on_characters(data: str, span: Span) -> Span:
    """`span` widened so that no UTF-8 sequence is torn."""
    start, end, kind = span
    while start > 0 and "\x80" <= data[start : start + 1] < "\xc0":
        start -= 1
    while end < len(data) and "\x80" <= data[end] < "\xc0":
        end += 1
    return start, end, kind
