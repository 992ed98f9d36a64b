"""Text on its way into a row: repaired, scrubbed, cut.

The agent has scrubbed it already; that is not believed. A scrubber that fails withholds the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from toolfault import conventions as c
from toolfault.ingest.wire import text as text_of
from toolfault.redact import cap

#: Longer values are not remembered, so that the memory is bounded by bytes too.
_REMEMBERED = 512
_MEMORY = 8192


def clean(text: str, most: int, *, keeps_frames: bool = False) -> str:
    """`text` as it may be stored: scrubbed, at most `most` characters, without U+0000."""
    return cap(text, most, keeps_frames=keeps_frames).replace("\x00", "\ufffd")


def free_text(value: bytes | None, most: int = c.MAX_TEXT) -> str | None:
    """Scrubbed text of a value; None if there is none."""
    return clean(text_of(value), most) or None if value else None


class _Memory(dict[bytes | None, str | None]):
    """What values were read as before; a dictionary, for its look-up runs no Python."""

    def __init__(self, read: Callable[[bytes], str | None]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, value: bytes | None) -> str | None:
        if not value:
            return None
        told = self._read(value)
        if len(value) <= _REMEMBERED:
            if len(self) >= _MEMORY:
                self.clear()
            self[value] = told
        return told


def _remembering(read: Callable[[bytes], str | None]) -> Callable[[bytes | None], str | None]:
    return _Memory(read).__getitem__


#: Names: services, tools, agents, models, reasons; few and often repeated.
label = _remembering(lambda value: clean(text_of(value), c.MAX_LABEL) or None)
name = _remembering(lambda value: clean(text_of(value), c.MAX_NAME) or None)
message = _remembering(lambda value: clean(text_of(value), c.MAX_MESSAGE) or None)

# What ids look like that no secret looks like: these are new in every call, and scrubbing them
# would be a third of the work of a span.
_PLAIN_ID = re.compile(
    rb"[0-9a-f]{16,64}+"
    rb"|(?:call|toolu|tooluse)_[A-Za-z0-9_-]{16,40}+"
    rb"|(?:adk-|run[-_]|conv(?:ersation)?[-_]|session[-_]|thread[-_])?"
    rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    rb"|[A-Za-z0-9_-]{1,12}+"
).fullmatch


def new_identifier(value: bytes | None) -> str | None:
    """An id that is new in every call."""
    if not value:
        return None
    if value[0] == 0x0A and _PLAIN_ID(value, 2) and value[1] == len(value) - 2:
        return value[2:].decode()
    return name(value)


#: An id that several calls share: of a run or a conversation.
identifier = _remembering(new_identifier)


def reference(value: bytes | None) -> str | None:
    """A reference of ours as it is; one made elsewhere if it can be kept."""
    told = text_of(value).strip()
    if not told:
        return None
    if _OWN_REFERENCE.fullmatch(told):
        return told
    return clean(told, c.MAX_REFERENCE) if told.isprintable() else None


_OWN_REFERENCE = re.compile(r"[0-9A-HJKMNP-TV-Z]{4}(?:-[0-9A-HJKMNP-TV-Z]{4}){2}|[0-9a-f]{8}")


# --- what an author wrote for people to see --------------------------------------------------------

_ADDRESS = re.compile(r"(?:mailto:)?[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+){0,8}")


def contact(value: bytes | None) -> str | None:
    """An owner's contact: its e-mail address is public by its author's wish."""
    told = text_of(value)[: c.MAX_NAME]
    return told if _ADDRESS.fullmatch(told) else clean(told, c.MAX_NAME) or None


def link(value: bytes | None) -> str | None:
    """A runbook's address: it may be on an internal host, all else about it is scrubbed."""
    told = text_of(value)[: c.MAX_TEXT]
    scrubbed = clean(told, c.MAX_TEXT)
    with suppress(ValueError):
        if scrubbed.replace("[REDACTED:host]", urlsplit(told).hostname or "", 1) == told:
            return told
    return scrubbed or None
