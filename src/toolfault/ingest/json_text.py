"""JSON for jsonb, written as text: the standard encoder costs as much as the rest of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode


def member_name(key: str) -> str:
    """The beginning of an object's member."""
    return f"{encode_basestring(key)}: "


def as_member(value: object) -> str:
    """A value as JSON; numbers must be finite."""
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return str(value)
    return _encode(value)


def as_object(members: Sequence[str]) -> str | None:
    """An object of members already written; None if there are none."""
    return f"{{{', '.join(members)}}}" if members else None


def as_json(value: dict[str, object]) -> str | None:
    """An object; None if it is empty."""
    return _encode(value) if value else None
