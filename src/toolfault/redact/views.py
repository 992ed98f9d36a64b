"""Texts behind the text: percent, backslash and entity escapes undone, blanks made spaces.

A decoded view knows where each of its characters came from, so that what is found in it is hidden in the original.
"""

from __future__ import annotations

import html
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

#: each alternative begins with one character: `re` looks for nothing else
ESCAPE = r"%[0-9A-Fa-f]{2}|\\\\{0,7}(?:u00[0-9A-Fa-f]{2}|x[0-9A-Fa-f]{2}|[nrt\"'/\\])|&(?:#[0-9]{1,4}|#[xX][0-9A-Fa-f]{1,3}|quot|amp|lt|gt|apos|nbsp);"
_CONTROL = {"n": "\n", "r": "\r", "t": "\t"}
#: blanks beyond space, tab and the ends of lines, in UTF-8, by their first byte: of the control characters, and of Unicode
_BLANKS_BY_START: dict[str, list[str]] = {}
for _point in (
    0x0B, 0x0C, *range(0x1C, 0x20), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C), 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF,
):  # fmt: skip
    _blank = chr(_point).encode().decode("latin-1")
    _BLANKS_BY_START.setdefault(_blank[0], []).append(_blank)
#: escapes undone in one text; what lies behind more of them is cut off
MAX_ESCAPES = 2000


class Decoded(NamedTuple):
    """A text without its escapes."""

    text: str
    resumes: list[int]  # where it goes on as it was, behind each escape
    origins: list[int]  # and where that is in the text with escapes
    is_cut: bool  # more escapes than are undone

    def origin(self, at: int) -> int:
        """Where the character `at` began in the text with escapes."""
        last = bisect_right(self.resumes, at) - 1
        return self.origins[last] + at - self.resumes[last]


def unescape(data: str, escapes: Iterable[tuple[int, int]]) -> Decoded | None:
    """`data` with its `escapes` undone, or None if it has none."""
    pieces: list[str] = []
    resumes, origins = [0], [0]
    rest = len(data)
    for start, end in escapes:
        at = origins[-1]
        if len(origins) > MAX_ESCAPES:
            rest = at
            break
        pieces += (data[at:start], _plain(data[start:end]))
        resumes.append(resumes[-1] + start - at + 1)
        origins.append(end)
    if not pieces:
        return None
    pieces.append(data[origins[-1] : rest])
    return Decoded("".join(pieces), resumes, origins, rest < len(data))


def with_plain_blanks(data: str) -> str:
    """`data` with spaces for every other kind of blank, as long as before; itself if it has none."""
    for start, blanks in _BLANKS_BY_START.items():
        if start in data:
            for blank in blanks:
                data = data.replace(blank, " " * len(blank))
    return data


@lru_cache(maxsize=1024)
def _plain(escape: str) -> str:
    """The one character an escape stands for."""
    if escape[0] == "%":
        return chr(int(escape[1:], 16))
    if escape[0] == "&":
        plain = (html.unescape(escape).encode("latin-1", "replace").decode("latin-1") + "?")[0]
        return " " if plain == "\xa0" else plain
    bare = escape.lstrip("\\")
    if len(bare) > 1:
        return chr(int(bare[1:], 16))
    return _CONTROL.get(bare, bare or "\\")
