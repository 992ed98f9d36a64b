"""Secrets told by their name: `key=value` in all its spellings, elements, flags, and plain sentences.

A function gets the view and the span of a locator's hit, and yields the spans to hide. It reads a bounded window
around the hit, so that hostile text costs no more than its length.
"""

from __future__ import annotations

import re
import string

from toolfault.redact.headers import header
from toolfault.redact.keys import kind_of
from toolfault.redact.spans import BLANKS, Spans, View, run_start, words
from toolfault.redact.values import REMARK, WINDOW, Value, is_secret, looks_random, value_at, whole

_KEY_CHARACTERS = (
    string.ascii_letters + string.digits + "_.$-" + "".join(map(chr, range(0x80, 0x100)))
)
_KEY_AFTER = re.compile(r"[\w.\x80-\xff-]*", re.ASCII)
_PAIR_BEFORE = re.compile(
    r"(?:api|access|secret|private|auth|client|account|signing|encryption|master|shared|pass|refresh|session|"
    r"license|subscription|app|application|ssh|bot|webhook|user|db|database|admin|authorization|verification)[ _-]\Z"
)
_GRAMMAR_BEFORE = re.compile(
    r"(?:unexpected|illegal|stop|next|special|missing|expected|syntax|unknown|unrecognized|pad|end|start|eos|bos|max|"
    r"continuation|page|per|every|each|last|first|invalid json)[ _-]{1,2}[\"'<]?\Z"
)
#: the wide colon and equals sign and the arrows, in UTF-8, and what follows them
_WIDE = re.compile(r"(?:\xef\xbc[\x9a\x9d]|\xe2[\x86\x87]\x92).*")
_JOINTS = (" ", "_", "-")
_QUERY_BEFORE = re.compile(r"(?:[?&#;]|%3f|%26|%23|amp;)\Z")
_EOL = re.compile(r"[\r\n]|\\+[rn]")
_WORD_OF_SENTENCE = re.compile(r"[a-z]+ [a-z]")
_TYPE = re.compile(
    r"(?:str|bytes|SecretStr|Optional\[\w+\]|string|String|&str|char\s?\*)(?: \| None)?[ \t]*=[ \t]*|string\(\d+\)[ \t]*|[\"'][ \t]{0,3}\+[ \t]{0,3}(?=[\"'])",
    re.ASCII,
)
_SESSION_KEYS = words(
    "session session_id sessionid sid sess connect.sid asp.net_sessionid sig signature credential googleaccessid "
    "awsaccesskeyid"
)
_QUERY_KEYS = words("code state key auth nonce ticket hash hmac se assertion")
_PROVIDER = re.compile(r"\A_*(?:x-(?:amz|goog|oss)-)?")
_SIGNED = re.compile(r"[A-Za-z0-9+/=%_-]{16,}")
_LOCATION = re.compile(
    r"loc[\"']?[ ]?[:=][ ]?[\[(][^\])]{0,200}?[\"']([\w.-]+)[\"'][\])]", re.ASCII
)
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_ARGUMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_NOT_ALNUM = re.compile(r"[\W_]", re.ASCII)
_HEX_KEY = re.compile(r"[0-9A-Fa-f]{32,64}")
_FIRST_WORD = re.compile(r"[a-z']+(?=[\s.,:;!?)]|\Z)", re.ASCII)


def key_at(view: View, start: int) -> tuple[int, str]:
    """Where the key around `start` begins, and the key with a word before it that belongs to it."""
    begin = run_start(view.data, start, 80, _KEY_CHARACTERS)
    after = _KEY_AFTER.match(view.data, start, start + 80)
    key = view.data[begin : after.end() if after else start]
    pair = (
        _PAIR_BEFORE.search(view.low, max(0, begin - 20), begin)
        if view.data[begin - 1 : begin] in (" ", "_")
        else None
    )
    return begin, (view.data[pair.start() : begin] + key if pair else key)


def assignment(view: View, start: int, end: int) -> Spans:
    """`key=value`, `"key": "value"`, `key => value`, `("key", "value")` and their relatives."""
    begin, key = key_at(view, start)
    if not key.isascii():
        key = _WIDE.sub("", key[: end - begin])
    kind = kind_of(key)
    if kind is None:
        yield from _weak(view, begin, key, end)
        return
    if kind == "token" and _is_grammar(view, begin):
        return
    value = value_at(view.data, _past_type(view.data, end))
    if value is None or (not value.quoted and _is_sentence(view, kind, end, value)):
        return
    said = view.data[start:end]
    text = view.data[value.start : value.end][:600]
    if "," in said and _is_listed(view.data[begin], said, text, quoted=value.quoted):
        return
    if kind in ("cookie", "authorization"):
        yield from header(view, key, kind, value)
        return
    if not value.quoted and key.lower().endswith(("phrase", "mnemonic")):
        line = _EOL.search(view.data, value.start, value.start + WINDOW)
        value = Value(value.start, line.start() if line else len(view.data), quoted=True)
        text = view.data[value.start : value.end][:600]
    if "|" in said and _is_pipe(view, begin, said, text):
        return
    found = is_secret(key, text, quoted=value.quoted)
    if found:
        value = whole(view.data, value)
        yield value.start, value.end, found


def _is_grammar(view: View, begin: int) -> bool:
    """Whether the word before says that a token of a text or a page is meant."""
    before = view.low[max(0, begin - 24) : begin]
    return before.rstrip("\"'<")[-1:] in _JOINTS and bool(_GRAMMAR_BEFORE.search(before))


def _is_listed(first: str, said: str, text: str, *, quoted: bool) -> bool:
    """Whether `"password", "email"` is a list of names; a pair's value looks made, or follows a flag."""
    if said.rstrip(" \t")[-1] in ":=":
        return False
    return not quoted or not (first == "-" or looks_random(text, 6) or _NOT_ALNUM.search(text))


def _is_pipe(view: View, begin: int, said: str, text: str) -> bool:
    """Whether a bar is one of a shell or of a table's head, and not the one before a secret in a table's row."""
    if not said.rstrip(" \t").endswith("|"):
        return False
    before = view.data[max(0, begin - 40) : begin].rstrip(" \t*\"'`")
    return not before.endswith("|") or not looks_random(text, 6)


def _is_sentence(view: View, kind: str, end: int, value: Value) -> bool:
    """Whether `token: could not be read` goes on in words."""
    if kind == "password" or ":" not in view.data[max(0, end - 4) : end]:
        return False
    return bool(_WORD_OF_SENTENCE.match(view.data, value.start, value.end + 2))


def _past_type(data: str, at: int) -> int:
    """Over a type annotation, PHP's `string(8)` or the `" + "` of a source line."""
    typed = _TYPE.match(data, at, at + 60)
    return typed.end() if typed else at


def _weak(view: View, begin: int, key: str, end: int) -> Spans:
    """Names that hold a secret only in a URL's query, or only if the value was made by a generator."""
    name = _PROVIDER.sub("", key.lower())
    is_query = bool(_QUERY_BEFORE.search(view.low, max(0, begin - 4), begin))
    if name not in _SESSION_KEYS and not (is_query and name in _QUERY_KEYS):
        return
    value = value_at(view.data, end)
    if value is None:
        return
    text = view.data[value.start : value.end][:600]
    least = 6 if is_query else 12
    if name in ("sig", "signature") and _SIGNED.fullmatch(text) and any(c.isdigit() for c in text):
        yield value.start, value.end, "signature"
    elif (
        "%" in text
        or looks_random(text, least)
        or (is_query and name in ("sig", "code") and len(text) > 15)
    ):
        kind = "oauth_code" if is_query else "session"
        yield value.start, value.end, "signature" if name.startswith("sig") else kind


def element(view: View, start: int, end: int) -> Spans:
    """`<password>value</password>`, `<entry key="password">value</entry>`."""
    begin, key = key_at(view, start)
    if view.data[begin - 1 : begin] not in ("<", ":", '"', "'") or kind_of(key) is None:
        return
    closing = "<"
    if view.data.startswith("<![CDATA[", end):
        end, closing = end + 9, "]]>"
    close = view.data.find(closing, end, end + 4096)
    if (close < 0 and len(view.data) > end + 4096) or (
        close >= 0 and view.data[close : close + 2] not in ("</", "]]")
    ):
        return
    stop = close if close >= 0 else len(view.data)
    value = view.data[end:stop].strip(BLANKS)
    found = is_secret(key, value[:600], quoted=True) if value else None
    if found:
        yield end, stop, found


def rejected_input(view: View, start: int, end: int) -> Spans:
    """Pydantic's `input_value='...'` and FastAPI's `"input": "..."`, whose field is named before them."""
    place = _place_before(view.data[max(0, start - 400) : start])
    value = value_at(view.data, end) if place else None
    if value is None:
        return
    found = is_secret(place, view.data[value.start : value.end][:600], quoted=value.quoted)
    if found:
        yield value.start, whole(view.data, value).end, found


def _place_before(text: str) -> str:
    """The field named on the line before the last one, or in the last line's `loc=("body", "password")`."""
    lines, newline, last = text.rpartition("\n")
    if not newline:
        lines, newline, last = text.partition("\\n")
    name = lines.rstrip(BLANKS)
    name = name[run_start(name, len(name), 400, _NAME_CHARACTERS) :]
    if newline and name:
        return name
    place = _LOCATION.search(last or text)
    return place[1] if place else ""


def flag(view: View, start: int, end: int) -> Spans:
    """`--password value`, `-password value`, `ENV API_KEY value`."""
    key = view.data[start:end].split()[-1]  # the hit is ASCII
    if kind_of(key) is None:
        return
    value = value_at(view.data, end)
    if value is None or view.data[value.start : value.start + 2] in ("--", "is"):
        return
    found = is_secret(key, view.data[value.start : value.end][:600], quoted=value.quoted)
    if found:
        yield value.start, whole(view.data, value).end, found


def prose(view: View, start: int, end: int) -> Spans:
    """`password is hunter2`, `api key 3f9a0c... was revoked`: a remark unless the word looks made."""
    word = _FIRST_WORD.match(view.low, end, end + 40)
    if word and word[0] in REMARK:
        return
    begin, key = key_at(view, start)
    kind = kind_of(key)
    if kind is None or _is_grammar(view, begin):
        return
    value = value_at(view.data, end)
    if value is None:
        return
    text = view.data[value.start : value.end][:600]
    found = None if _ARGUMENT.match(text) else is_secret(key, text, quoted=value.quoted)
    if not found or (" " in text and value.quoted and kind != "password"):
        return
    if _is_made(view.low[start:end].rstrip(), kind, text, quoted=value.quoted):
        yield value.start, whole(view.data, value).end, found


def _is_made(said: str, kind: str, text: str, *, quoted: bool) -> bool:
    """Whether the word after a secret's name is no word of the sentence."""
    if kind == "password":
        return (
            quoted
            or said.endswith((" is", " was", "=", ":", " of"))
            or looks_random(text, 6)
            or (text.isdigit() and len(text) > 4)
        )
    return looks_random(text) or (kind == "api_key" and bool(_HEX_KEY.fullmatch(text)))
