"""The reference id: what a user reads out to support.

Twelve symbols of Crockford's base 32, printed 4-4-4: 42 random bits, 13 bits for the UTC day of
issue (days since 2024-01-01) and a check symbol. With symbol values d1..d12 in GF(32) over
x^5 + x^2 + 1 and a = 2, the sum of a^i * d_i is 0: every wrong symbol and every swap is caught.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from datetime import UTC, date, datetime, timedelta
from itertools import combinations

from toolfault.conventions import MAX_REFERENCE

_SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {symbol: value for value, symbol in enumerate(_SYMBOLS)} | {"O": 0, "I": 1, "L": 1}
_SEPARATORS = re.compile(r"[\s\-‐-―−_.]+")
_LENGTH = 12
_RANDOM_BITS, _DAY_BITS = 42, 13
_EPOCH = date(2024, 1, 1)


def _powers() -> list[int]:
    powers, power = [], 1
    for _ in range(31):
        powers.append(power)
        power <<= 1
        if power & 32:
            power ^= 0b100101
    return powers


_POWERS = _powers()
_LOGS = {value: exponent for exponent, value in enumerate(_POWERS)}


def _times_power(value: int, exponent: int) -> int:
    return _POWERS[(_LOGS[value] + exponent) % 31] if value else 0


# One list per position, so that making or checking a reference multiplies nothing.
_WEIGHTED = [
    [_times_power(value, position) for value in range(32)] for position in range(1, _LENGTH + 1)
]


def _syndrome(values: list[int]) -> int:
    total = 0
    for weights, value in zip(_WEIGHTED, values, strict=False):
        total ^= weights[value]
    return total


def new(*, random: int | None = None, day: date | None = None) -> str:
    """A new reference such as `938N-KRKA-S18P`.

    Args:
        random: 42 random bits; by default from the system's generator.
        day: the UTC day of issue; by default today.
    """
    bits = secrets.randbits(_RANDOM_BITS) if random is None else random
    issued = datetime.now(UTC).date() if day is None else day
    number = bits << _DAY_BITS | (issued - _EPOCH).days
    values = [number >> shift & 31 for shift in range(50, -5, -5)]
    return _printed([*values, _times_power(_syndrome(values), -_LENGTH)])


def _printed(values: list[int]) -> str:
    text = "".join(map(_SYMBOLS.__getitem__, values))
    return f"{text[:4]}-{text[4:8]}-{text[8:]}"


def _plain(text: str) -> str:
    """Full-width and other compatibility forms as the letters they stand for."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _values(text: str) -> list[int] | None:
    """Symbol values of a text that has the form of a reference, read tolerantly."""
    if len(text) > 4 * _LENGTH:
        return None
    symbols = _SEPARATORS.sub("", _plain(text)).upper()
    if len(symbols) != _LENGTH or not _VALUES.keys() >= set(symbols):
        return None
    return [_VALUES[symbol] for symbol in symbols]


def canonical(text: str) -> str | None:
    """`text` as a reference is printed, or None if it does not have the form of one.

    Case, width, dashes and spaces do not matter; O is read as 0, I and L as 1. The check is not made.
    """
    values = _values(text)
    return None if values is None else _printed(values)


def is_valid(text: str) -> bool:
    """Whether `text` has the form of a reference and its check symbol fits."""
    values = _values(text)
    return values is not None and _syndrome(values) == 0


def day_of(text: str) -> date | None:
    """The UTC day of issue, or None if `text` is not a valid reference."""
    values = _values(text)
    if values is None or _syndrome(values) != 0:
        return None
    number = 0
    for value in values[:-1]:
        number = number << 5 | value
    return _EPOCH + timedelta(days=number & 2**_DAY_BITS - 1)


def near_misses(text: str) -> list[str]:
    """Every valid reference one wrong symbol or one swap away from a mistyped one."""
    values = _values(text)
    if values is None or (syndrome := _syndrome(values)) == 0:
        return []
    found = [
        [*values[:i], values[i] ^ _times_power(syndrome, -(i + 1)), *values[i + 1 :]]
        for i in range(_LENGTH)
    ]
    for i, j in combinations(range(_LENGTH), 2):
        swapped = values.copy()
        swapped[i], swapped[j] = values[j], values[i]
        if _syndrome(swapped) == 0:
            found.append(swapped)
    return list(dict.fromkeys(map(_printed, found)))


_NAMED = re.compile(
    r"\bref(?:erence)?(?:[ _]?(?:id|no|number))?\b\W{0,4}([\w.:/-]{1,64})", re.IGNORECASE
)
_GROUPED = re.compile(r"(?<![\w-])[0-9A-Za-z]{4}([-‐-― ])[0-9A-Za-z]{4}\1[0-9A-Za-z]{4}(?![\w-])")
_SOLID = re.compile(r"(?<![\w-])[0-9A-Za-z]{12}(?![\w-])")
_UUID = re.compile(r"(?<![\w-])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![\w-])")
#: A text is read this far, in characters.
LONGEST_PASTE = 65_536


def candidates(text: str) -> list[str]:
    """What to look up for a text a person pasted, most likely first.

    The text as given, then its canonical form, then references found inside a sentence or an
    envelope: those whose check fits, then those that follow the word "ref", then any of the form.
    Empty when nothing in it can be a reference.
    """
    given = text.strip()
    found = [given] if is_foreign(given) else []
    if (form := canonical(given)) is not None:
        return [*dict.fromkeys([*found, form])]
    pasted = _plain(text[:LONGEST_PASTE])
    shaped = [match.group() for match in (*_GROUPED.finditer(pasted), *_SOLID.finditer(pasted))]
    forms = [form for form in map(canonical, shaped) if form is not None]
    named = [match.group(1).rstrip(".:/-") for match in _NAMED.finditer(pasted)]
    uuids = [match.group() for match in _UUID.finditer(pasted)]
    ranked = [
        *filter(is_valid, forms),
        *(canonical(name) or name for name in named),
        *uuids,
        *forms,
    ]
    return [*dict.fromkeys([*found, *filter(None, ranked)])]


def all_in(text: str) -> list[str]:
    """Every reference in a text whose check fits, as it is printed, in the order of the text."""
    pasted = _plain(text[:LONGEST_PASTE])
    shaped = [*_GROUPED.finditer(pasted), *_SOLID.finditer(pasted)]
    ordered = [match.group() for match in sorted(shaped, key=re.Match.start)]
    return [*dict.fromkeys(filter(None, map(canonical, filter(is_valid, ordered))))]


def is_foreign(text: str) -> bool:
    """Whether `text` can be kept as a reference made elsewhere: printable, 1 to 64 characters."""
    return 0 < len(text) <= MAX_REFERENCE and text.isprintable()
