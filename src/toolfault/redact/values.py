"""Where the value after a secret's name ends, and whether it is a value at all.

Shared by both engines: what runs here is Python's `re` on a bounded window, so that RE2 and `re` cannot differ.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolfault.redact.keys import is_function, kind_of
from toolfault.redact.spans import BLANKS, words

#: How far a value is read. Longer ones are hidden to their end, found by one forward search.
WINDOW = 4096


class Value(NamedTuple):
    """A value and how it was written."""

    start: int
    end: int
    quoted: bool


_PREFIX = re.compile(
    r"(?:[A-Za-z_][A-Za-z_.]{0,40}\()?(?:\\{0,4}[brfu])?(\\{0,4}(?:\"\"\"|'''|[\"'`]|&quot;|&#39;))"
)
_WRAPPERS = ("SecretStr(", "SecretBytes(", "Secret(", "str(", "bytes(", "Masked(", "Sensitive(")
_BARE_ENDS = (*BLANKS, '"', "'", "<", ">", "`")
_BARE_END = re.compile(f"[{''.join(_BARE_ENDS)}]")
#: Most values end within so many characters.
_NEAR = 128
#: No following key is looked for beyond so many: what is longer is hidden with what is behind its separators.
_FAR = 1024
_ESCAPED_END = re.compile(r"\\+[\"'nrt`]")
#: a following key shows that the separator before it was one, and not part of the value
_NEXT_KEY = re.compile(
    r"[,;&)|](?:[ \t]{0,3}[\"']?[A-Za-z_][\w .-]{0,40}[\"']?\]?[=:]|(?<=&)amp;)", re.ASCII
)
_BLOCK = re.compile(r"[|>][+-]?[ \t]*\r?\n((?:[ \t]+[^\n]*\n?)+)")
_QUOTED_ENDS = ('"', "'", "`", "\n")
_BLOCK_MARKS = ("|", ">")
_CLOSERS = ")]},;:."

_NULL_WORDS = words(
    "none null nil undefined nan true false yes no n/a na empty unset not-set not_set on off 0 1 - redacted filtered hidden masked removed "
    "scrubbed str string int integer bytes bool boolean number object array any secretstr"
)
#: what a placeholder begins with: the pattern below is tried on nothing else
_PLACEHOLDER_STARTS = (
    *".?*x#\xe2<[(${%:", "optional", "env", "os.", "getenv", "process.env", "vault:", "arn:aws:",
)  # fmt: skip
_PLACEHOLDER = re.compile(
    r"\.{2,}|\?|\*{2,}|x{4,}|#{3,}|(?:\xe2\x80\xa2)+|<[^<>\n]{0,40}>|\[(?:redacted|filtered|hidden|masked|secret|removed|scrubbed)[^\]\n]{0,40}\]"
    r"|\((?:redacted|filtered|hidden|masked|removed|scrubbed)\)|\$\{[^}\n]{0,80}\}?|\$\([^)\n]{0,80}\)?|\$[a-z_]\w{0,60}|\{\{[^}\n]{0,80}(?:\}\})?"
    r"|\{[\w.]{0,40}\}|%\(?[\w.]{0,40}\)?[sdr]|:[a-z_]\w{0,40}|optional.{0,40}|env(?:iron)?[\[.(].{0,80}|os\.environ.{0,80}|os\.getenv.{0,80}"
    r"|getenv.{0,80}|process\.env.{0,80}|vault:.{0,80}|arn:aws:.{0,200}",
    re.ASCII,
)
#: words that begin a remark about a secret where a secret could stand
REMARK = words(
    "a an and are at as bad be because but by can cannot can't check contains could denied does doesn't "
    "deprecated disabled does enter exceeded exceeds expected expiration expired expires failed failure field fields for format from "
    "got has have header if illegal in incorrect input invalid invalidated is isn't it lacks length limit "
    "malformed maximum may minimum mismatch mismatched missing must needs needed no not of only or parameter parse please "
    "provide provided reached read rejected request required requires reset refresh refreshed revoked rotated "
    "should the this to too unauthorized unexpected unknown unsupported unauthenticated unavailable use used uses using validation value values was "
    "were when while will with without wrong you your absent blank denied error ok okay valid verified accepted "
    "string type int bool optional include omit same-origin needed ignored generated created updated changed sent "
    "passed default present configured unset none null count usage used limit per remaining basic bearer digest ntlm "
    "negotiate oauth oauth2 ldap saml sasl plain kerberos hmac anonymous disabled enabled auto auth authentication "
    "permission access operation timeout timed unable server service internal connection network call calls retry retries cancelled "
    "forbidden exception httperror valueerror typeerror minimum shorter longer short long least most between again already "
    "authorization credentials password token tokens secret key keys scheme page screen form account user login"
)
_HEX_ID = re.compile(
    r"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}"
)
_WORDS = re.compile(r"[a-z']+")
_LOWER = re.compile(r"[a-z\xaa\xb5\xba\xdf-\xf6\xf8-\xff]")
_UPPER = re.compile(r"[A-Z\xc0-\xd6\xd8-\xde]")
_DIGIT = re.compile(r"[0-9\xb2\xb3\xb9]")
_REPLACED = re.compile(r"\[REDACTED:\w+\]", re.ASCII)
_SOLID = re.compile(r"[\w+/=\x80-\xff-]+", re.ASCII)


def value_at(data: str, at: int) -> Value | None:
    """The value that begins at `at`, the character after the separator; read for `WINDOW` characters."""
    limit = min(len(data), at + WINDOW)
    block = _BLOCK.match(data, at, limit) if data[at : at + 1] in _BLOCK_MARKS else None
    if block:
        return Value(block.start(1), block.end(1), quoted=True)
    opened = _PREFIX.match(data, at, at + 120)
    if opened:
        return Value(opened.end(), _closing(data, opened.end(), limit, opened[1]), quoted=True)
    if data.startswith(_WRAPPERS, at):
        at = data.index("(", at) + 1
    if data[at : at + 1] in ("[", "(", "{"):
        return _container(data, at, limit)
    end = _bare_end(data, at, limit)
    return Value(at, end, quoted=False) if end > at else None


def whole(data: str, value: Value) -> Value:
    """`value` to its real end, where the window ended first."""
    if value.end - value.start < WINDOW - 200:
        return value
    marks = _QUOTED_ENDS if value.quoted else _BARE_ENDS
    return value._replace(end=_first_of(marks, data, value.end, len(data)))


def _closing(data: str, at: int, limit: int, opener: str) -> int:
    """The index of the quote that closes `opener`; without one, the end of the line or of the window."""
    close = data.find(opener, at, limit)
    while close >= 0 and len(opener) == 1 and _is_escaped(data, at, close):
        close = data.find(opener, close + 1, limit)
    if close >= 0:
        return close
    line = data.find("\n", at, limit)
    return line if line >= 0 else limit


def _is_escaped(data: str, start: int, at: int) -> bool:
    slashes = 0
    while at - 1 - slashes >= start and data[at - 1 - slashes] == "\\" and slashes < 64:
        slashes += 1
    return slashes % 2 == 1


def _container(data: str, at: int, limit: int) -> Value | None:
    """A list of quoted strings, or `{...}` of ODBC; mappings are left to their own keys."""
    close = {"[": "]", "(": ")", "{": "}"}[data[at]]
    end = data.find(close, at, limit)
    inner = data[at + 1 : end if end >= 0 else limit]
    if data[at] == "{" and (not inner or ":" in inner or "=" in inner or "{" in inner):
        return None
    if data[at] != "{" and inner[:1] not in ("'", '"'):
        return None
    return Value(at + 1, at + 1 + len(inner), quoted=True)


def _bare_end(data: str, at: int, limit: int) -> int:
    found = _BARE_END.search(data, at, at + _NEAR)
    end = found.start() if found else _first_of(_BARE_ENDS, data, at, limit)
    if data.find("\\", at, end) >= 0:
        escaped = _ESCAPED_END.search(data, at, end + 1)
        end = escaped.start() if escaped else end
    following = _NEXT_KEY.search(data, at, min(end + 44, at + _FAR))
    if following and following.start() < end:
        end = following.start()
    while end > at and data[end - 1] in _CLOSERS:
        end -= 1
    return end


def _first_of(marks: tuple[str, ...], data: str, at: int, limit: int) -> int:
    """Where the first of `marks` is, by a search for each: one for a class of characters takes ten times as long."""
    end = limit
    for mark in marks:
        found = data.find(mark, at, end)
        end = found if found >= 0 else end
    return end


def _is_null(lowered: str) -> bool:
    """Nothing, a type, or a placeholder."""
    if not lowered or lowered in _NULL_WORDS:
        return True
    return lowered.startswith(_PLACEHOLDER_STARTS) and bool(_PLACEHOLDER.fullmatch(lowered))


def is_remark(value: str) -> bool:
    """Whether `value` speaks about a secret ("must be at least 12 characters") instead of being one."""
    lowered = value.strip(BLANKS).strip(".,:;!'\"`\\").lower()
    if _is_null(lowered):
        return True
    return lowered.count(" ") > 1 and not REMARK.isdisjoint(_WORDS.findall(lowered[:200]))


def starts_remark(word: str) -> bool:
    """Whether a bare word after a separator begins a remark."""
    bare = word.strip(".,:;!?()[]").lower()
    return bare in REMARK or _is_null(bare)


def looks_random(value: str, least: int = 8) -> bool:
    """Letters and digits mixed as a generator mixes them; not a uuid, a trace id, a sha or a number."""
    if len(value) < least or _HEX_ID.fullmatch(value) or " " in value:
        return False
    has_lower, has_upper = bool(_LOWER.search(value)), bool(_UPPER.search(value))
    if (has_lower or has_upper) and _DIGIT.search(value):
        return True
    return has_lower and has_upper and len(value) >= 20


def is_secret(key: str, value: str, *, quoted: bool) -> str | None:
    """The class to print in the value's place, or None if there is nothing to hide."""
    kind = kind_of(key)
    if kind is None or is_remark(value) or ("[REDACTED:" in value[:400] and not _hides(value)):
        return None
    if not quoted and (starts_remark(value) or (is_function(key) and not looks_random(value, 6))):
        return None
    return None if _is_harmless(kind, key.lower(), value) else kind


def _is_harmless(kind: str, name: str, value: str) -> bool:
    """Counts and paths under a secret's name: `pass=12`, `token: 5`, `PWD=/srv`."""
    if kind == "pin":
        return not (value.strip(BLANKS).isdigit() or looks_random(value, 4))
    if value.isdigit():
        return (kind == "token" and len(value) < 6) or (name == "pass" and len(value) < 5)
    return name in ("pwd", "oldpwd") and value[:1] in ("/", "~")


def _hides(value: str) -> bool:
    """Whether anything but replacements and scheme words is left in `value`."""
    left = _REPLACED.sub("", value)
    return any(len(word) > 3 and word.lower() not in REMARK for word in _SOLID.findall(left))
