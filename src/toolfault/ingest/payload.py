"""The payload of a dead letter: JSON that its caller chose, scrubbed value by value."""

from __future__ import annotations

import json
from typing import Any

from toolfault import conventions as c
from toolfault.ingest import wire
from toolfault.redact import scrub_attributes


def payload(value: bytes) -> dict[str, Any] | None:
    """The object, scrubbed as its sender has done already; None for what is none or too long."""
    told = wire.text(value)
    if len(told) > c.MAX_TEXT:
        return None
    try:
        read = json.loads(told, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    scrubbed = scrub_attributes(read) if isinstance(read, dict) else None
    return _storable(scrubbed) if isinstance(scrubbed, dict) else None


def _refused(constant: str) -> Any:
    raise ValueError(constant)  # NaN and the infinities, which jsonb does not take


def _storable(value: Any) -> Any:
    """Without U+0000 and lone surrogates, which jsonb does not take either."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return list(map(_storable, value)) if isinstance(value, list) else value
