"""Keys told by their shape together with what stands around them."""

from __future__ import annotations

import re

from toolfault.redact.spans import Spans, View, run_start
from toolfault.redact.values import WINDOW, looks_random

_PEM_LINE = re.compile(r"(?:\s|\\+[rn])*(?:\n|\\+n)[A-Za-z0-9+/=]{2,}", re.ASCII)
_PEM_BODY = re.compile(
    r"(?:(?:[\s\"'+]|\\+[nr])*(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset)[^\n\\]{0,100})*(?:(?:[\s\"'+,]|\\+[nr])*[A-Za-z0-9+/=:,-]{12,})+(?:(?:[\s\"'+]|\\+[nr])*[A-Za-z0-9+/]*={1,2})?",
    re.ASCII,
)
_PEM_BACKWARDS = re.compile(
    r"\s+|[nr]\\+|={0,2}[A-Za-z0-9+/]+?(?=[^A-Za-z0-9+/]|[nr]\\|\Z)", re.ASCII
)
_WORD = re.compile(r"[A-Za-z]{1,15}")
_JWT = re.compile(
    r"[A-Za-z0-9_-]*+\.(?:eyJ|[A-Za-z0-9_-]{8})[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){0,3}"
)
_JWT_REST = re.compile(r"[A-Za-z0-9_.-]*")
_PEM_END = re.compile(r"-END[A-Z \n]{0,40}-{0,5}")


def private_key(view: View, start: int, end: int) -> Spans:
    """From BEGIN to END; a truncated one to where its base64 ends."""
    close = view.data.find("-END", end, end + 8192)
    if close >= 0:
        found = _PEM_END.match(view.data, close)
        yield start, found.end() if found else close + 4, "private_key"
        return
    body = _PEM_BODY.match(view.data, end, end + 8192) or _PEM_LINE.match(view.data, end, end + 200)
    if body:
        yield start, body.end(), "private_key"


def private_key_tail(view: View, start: int, end: int) -> Spans:
    """What is left of a key whose beginning was cut off."""
    backwards = view.data[max(0, start - 8192) : start][::-1]
    length = 0
    for part in _PEM_BACKWARDS.finditer(backwards):
        if part.start() > length or _WORD.fullmatch(part[0]):
            break
        length = part.end()
    yield start - length, end, "private_key"


def dashed_key(view: View, start: int, end: int) -> Spans:
    """`sk-` with dashes inside: a key has digits and capitals, a name in kebab case has not."""
    if looks_random(view.data[start + 3 : end][:600], 20) and re.search(
        r"[A-Z]", view.data[start + 3 : end][:600]
    ):
        yield start, end, "openai_key"


def telegram(view: View, start: int, end: int) -> Spans:
    """A bot's number, of which the hit has the last digit, and its token."""
    begin = run_start(view.data, start + 1, 12, "0123456789")
    if start + 1 - begin >= 6:
        yield begin, end, "telegram_token"


def jwt(view: View, start: int, end: int) -> Spans:
    """Two to five parts with dots between them."""
    parts = _JWT.match(view.data, end, end + WINDOW)
    if parts:
        rest = _JWT_REST.match(view.data, parts.end()) if parts.end() == end + WINDOW else None
        yield start, rest.end() if rest else parts.end(), "jwt"


def after_last_colon(view: View, start: int, end: int) -> Spans:
    """`.pgpass`: host, port, database, user, password."""
    yield view.data.rindex(":", start, end) + 1, end, "password"


def datadog(view: View, start: int, end: int) -> Spans:
    """Datadog's keys are plain hex: told by the name of the service and the word key beside them."""
    around = view.low[max(0, start - 120) : end + 60]
    if (
        "datadog" in around or "ddog" in around or "dd_" in around or "dd-" in around
    ) and "key" in around:
        yield start, end, "datadog_key"


def aws_secret(view: View, start: int, end: int) -> Spans:
    """Forty characters of base64 near the word AWS or an access key id."""
    text = view.data[start:end]
    if len(text) != 40 or text.count("/") > 5 or not looks_random(text, 40):
        return
    if not (
        any(c.isupper() for c in text)
        and any(c.islower() for c in text)
        and any(c.isdigit() for c in text)
    ):
        return
    around = view.low[max(0, start - 200) : end + 200]
    if re.search(r"aws|akia|asia|secret|amazon|s3|\[redacted:aws_key\]", around):
        yield start, end, "aws_key"
