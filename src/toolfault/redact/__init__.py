"""Hides secrets, personal data and internals in free text, by class: `[REDACTED:aws_key]`.

The second line of defence: the first is that messages are written by the author. Every function here is pure,
deterministic and idempotent, takes any `str`, never raises, and fails closed: what cannot be scrubbed becomes
`[unscrubbable]` and is counted by `faults()`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from toolfault.conventions import MAX_MESSAGE, MAX_TEXT
from toolfault.redact.keys import is_secret_key, kind_of

if TYPE_CHECKING:
    from toolfault.redact.scrubber import Scrubber

__all__ = [
    "UNSCRUBBABLE",
    "cap",
    "faults",
    "is_secret_key",
    "scrub",
    "scrub_attributes",
    "scrub_stack",
    "scrub_value",
]

UNSCRUBBABLE = "[unscrubbable]"
#: The longest secret that is recognised whole at the end of a window; a key in PEM is recognised cut as well.
LONGEST = 1024
_MAX_DEPTH = 8
#: Characters of a text whose result is kept: with 512 of them at most 1 MiB.
_REMEMBERED = 512

_lock = threading.Lock()
_faults = 0


@cache
def _scrubber(*, keeps_frames: bool = False) -> Scrubber:
    # Here, and not above: their patterns cost tens of milliseconds, which a process without an error need not pay.
    from toolfault.redact.engines import best_engine  # noqa: PLC0415
    from toolfault.redact.scrubber import Scrubber  # noqa: PLC0415

    return Scrubber(best_engine(), keeps_frames=keeps_frames)


def scrub(text: str) -> str:
    """`text` with every secret replaced; for messages: SQL and stack frames go as well. Linear in its length."""
    return _closed(text, keeps_frames=False)


def scrub_stack(text: str) -> str:
    """The same for a stack trace, which keeps its frames: file, function and line."""
    return _closed(text, keeps_frames=True)


def cap(text: str, limit: int = MAX_MESSAGE, *, keeps_frames: bool = False) -> str:
    """`text` scrubbed and at most `limit` characters long, for text of any size.

    A window is cut first, so that a page of 2 MB costs no more than 5 KiB; what could be half a secret at the
    window's end is dropped, and the last cut never goes through a replacement.
    """
    window = max(limit, MAX_TEXT) + LONGEST
    shown = _closed(text[:window], keeps_frames=keeps_frames)
    if len(text) > window:
        shown = _cut(shown, max(0, len(shown) - LONGEST))
    return _cut(shown, limit)


def scrub_value(key: str, value: object, *, depth: int = 0) -> object:
    """An attribute's value: hidden whole if its key names a secret, else every string in it scrubbed."""
    kind = kind_of(key)
    if (
        kind
        and value not in ("", b"")
        and isinstance(value, str | bytes | int | float)
        and not isinstance(value, bool)
    ):
        return f"[REDACTED:{kind}]"
    if isinstance(value, str | bytes):
        return scrub(value if isinstance(value, str) else value.decode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return scrub_attributes(value, depth=depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        within = depth < _MAX_DEPTH
        return (
            [scrub_value(key, item, depth=depth + 1) for item in value] if within else UNSCRUBBABLE
        )
    return value


def scrub_attributes(
    attributes: Mapping[str, object], *, depth: int = 0
) -> dict[str, object] | str:
    """Keys and values scrubbed; mappings nested deeper than eight levels are not shown."""
    if depth > _MAX_DEPTH:
        return UNSCRUBBABLE
    return {
        scrub(str(key)): scrub_value(str(key), value, depth=depth)
        for key, value in attributes.items()
    }


def faults() -> int:
    """How many texts of this process became `[unscrubbable]`."""
    return _faults


def _scrubbed(text: str, keeps_frames: bool) -> str:
    return _scrubber(keeps_frames=keeps_frames).scrub(text)


#: The same error comes again and again, and is scrubbed for the envelope, the span and the log.
_remembered = lru_cache(maxsize=512)(_scrubbed)


def _closed(text: str, *, keeps_frames: bool) -> str:
    global _faults  # noqa: PLW0603 - one count per process
    try:
        text = str.__str__(text)  # a subclass would be remembered, and given to everybody
        scrubbed = _remembered if len(text) <= _REMEMBERED else _scrubbed
        return scrubbed(text, keeps_frames)
    except Exception:  # noqa: BLE001 - a fault of ours must hide the text, and never reach the agent
        with _lock:
            _faults += 1
        return UNSCRUBBABLE


def _cut(text: str, limit: int) -> str:
    """The first `limit` characters, less a replacement that would be torn."""
    if len(text) <= limit:
        return text
    shown = text[:limit]
    opened = shown.rfind("[REDACTED:")
    if opened >= 0 and "]" not in shown[opened:]:
        return shown[:opened]
    for size in range(min(len("[REDACTED:") - 1, limit), 0, -1):
        if "[REDACTED:".startswith(shown[-size:]) and text.startswith("[REDACTED:", limit - size):
            return shown[:-size]
    return shown
