"""Cursors: where a page of a list ended, opaque to whoever carries it on."""

from __future__ import annotations

import base64
import binascii
import json
from datetime import datetime
from typing import Any

from toolfault.web.problems import ProblemError

_LONGEST = 2000
Key = tuple[Any, ...]


def encode(*key: datetime | bytes | str) -> str:
    """The key of a page's last row as a text."""
    parts = [_written(part) for part in key]
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def decode(cursor: str | None, *kinds: type) -> Key | None:
    """The key inside a cursor.

    Raises:
        ProblemError: 422 when the text is no cursor of that list.
    """
    if cursor is None:
        return None
    try:
        padded = cursor[:_LONGEST] + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        return tuple(_read(kind, part) for kind, part in zip(kinds, parts, strict=True))
    except (binascii.Error, ValueError, TypeError, AttributeError):
        raise ProblemError(
            422, "This cursor is not one of this list. Start from its first page."
        ) from None


def _written(part: datetime | bytes | str) -> str:
    if isinstance(part, datetime):
        return part.isoformat()
    return part.hex() if isinstance(part, bytes) else part


def _read(kind: type, part: str) -> datetime | bytes | str:
    if kind is datetime:
        at = datetime.fromisoformat(part)
        if at.tzinfo is None:
            raise ValueError
        return at
    if "\x00" in part:
        raise ValueError
    return bytes.fromhex(part) if kind is bytes else part
