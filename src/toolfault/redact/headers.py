"""Credentials in headers: schemes, cookies, and base64 of `user:password`."""

# ruff: noqa: ARG001 - every rule has the same three arguments

from __future__ import annotations

import base64
import binascii
import re

from toolfault.redact.spans import BLANKS, Spans, View
from toolfault.redact.values import (
    WINDOW,
    Value,
    is_remark,
    is_secret,
    looks_random,
    starts_remark,
    value_at,
)

_SCHEME = re.compile(
    r"\s*(?:(?:basic|bearer|token|apikey|api-key|negotiate|ntlm|digest|hmac|hawk|oauth|key|splunk|genie-?key|aws4-hmac-sha256|"
    r"sharedkey|sharedaccesssignature|goog4-rsa-sha256|bot|jwt|snowflake token)(?:\s+|=|:\s*|%20|\+))",
    re.ASCII,
)
_BEARER = re.compile(r"[A-Za-z0-9._~+/|%*:\x0b\x0c\x1c-\x1f\x80-\xff-]+={0,2}")
_ASCII = re.compile(r"[\x00-\x7f]+")
_DIGIT = re.compile(r"[0-9]")
_BASIC = re.compile(r"[A-Za-z0-9+/_-]+(?:=|%3[dD]){0,2}")
_PARAMETERS = ("digest", "hawk", "oauth", "aws4", "goog4", "sharedaccess", "hmac", "snowflake")
_LINE_ENDS = ("\n", "\r", "'", "\\n", "\\r")


def header(view: View, key: str, kind: str, value: Value) -> Spans:
    """Credentials with their scheme; cookies to the end of the line, for each holds several."""
    scheme = _SCHEME.match(view.low, value.start, value.start + 60)
    start = scheme.end() if scheme else value.start
    end = value.end
    has_parameters = scheme is not None and scheme[0].strip(BLANKS).startswith(_PARAMETERS)
    if not value.quoted:
        if kind == "cookie" or has_parameters:
            end = _line_end(view.data, start)
        elif scheme:
            end = _word_end(view.data, start)
    text = view.data[start:end][:600]
    if end <= start or ("[REDACTED:" in text and not is_secret("token", text, quoted=True)):
        return
    if (not has_parameters and "=" not in text and is_remark(text)) or (
        (not value.quoted or not scheme) and starts_remark(text.strip(BLANKS).partition(" ")[0])
    ):
        return
    if (
        kind == "cookie"
        and not key.lower().endswith("cookie")
        and not value.quoted
        and "=" in text.split(";")[0]
    ):
        end = _word_end(view.data, start)
    if (
        key.lower() in ("auth", "cookies")
        and not scheme
        and not value.quoted
        and not looks_random(text, 6)
    ):
        return
    yield start, end, kind


def _line_end(data: str, at: int) -> int:
    """The end of a header's line; a longer one is hidden to the end of the window."""
    end = min(len(data), at + WINDOW)
    for mark in _LINE_ENDS:
        found = data.find(mark, at, end)
        end = found if found >= 0 else end
    return end


def _word_end(data: str, at: int) -> int:
    value = value_at(data, at)
    return value.end if value else at


def bearer(view: View, start: int, end: int) -> Spans:
    """`Bearer value` outside a header; "Bearer authentication failed" is a remark."""
    found = _BEARER.match(view.data, end)
    if not found or found.end() - end < 6 or view.data[found.end() : found.end() + 1].isalnum():
        return
    text = found[0][:600]
    head = _ASCII.match(text)
    if head and starts_remark(head[0]):
        return
    if text.isascii():
        is_made = looks_random(text, 6) or len(text) >= 16 or "." in text[:-1]
    else:  # a word of another language has no digit
        is_made = bool(_DIGIT.search(text))
    if is_made:
        yield end, found.end(), "bearer"


def basic(view: View, start: int, end: int) -> Spans:
    """`Basic` with base64 of `user:password`."""
    found = _BASIC.match(view.data, end)
    if not found:
        return
    decoded = decode_base64(found[0][:2048].replace("%3D", "=").replace("%3d", "="))
    if decoded and ":" in decoded:
        yield end, found.end(), "basic_auth"


def decode_base64(text: str) -> str | None:
    """The printable text that `text` encodes, one character per byte, or None."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    text = text[: len(text) // 4 * 4] if len(text) % 4 == 1 else text + "=" * (-len(text) % 4)
    try:
        head = base64.b64decode(text[:12] if len(text) > 12 else text)
        if _share_printable(head) < 1:
            return None
        decoded = base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None
    return decoded.decode("latin-1") if _share_printable(decoded) >= 0.95 else None


def _share_printable(raw: bytes) -> float:
    """The share of characters that print, of UTF-8 that may be cut at its end."""
    text = raw.decode("utf-8", "replace").removesuffix("\ufffd")
    shown = sum((c.isprintable() and c != "\ufffd") or c in "\r\n\t" for c in text)
    return shown / max(1, len(text))
