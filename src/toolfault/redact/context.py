"""What surrounds a hit of a rule decides where the secret begins and ends.

A function gets the view and the span of the hit and yields the spans to hide. It reads a bounded window around
the hit, so that hostile text costs no more than its length.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from toolfault.redact import hosts
from toolfault.redact.keys import kind_of
from toolfault.redact.values import (
    WINDOW,
    Value,
    is_remark,
    is_secret,
    looks_random,
    starts_remark,
    value_at,
    whole,
)


class Span(NamedTuple):
    """Characters to hide, and the class to print instead."""

    start: int
    end: int
    kind: str


class View(NamedTuple):
    """The text as one character per byte, and the same in lower case."""

    data: str
    low: str


Spans = Iterator[Span]

_KEY_CHARACTERS = string.ascii_letters + string.digits + "_.$-" + "".join(map(chr, range(0x80, 0x100)))
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_KEY_AFTER = re.compile(r"[\w.\x80-\xff-]*", re.ASCII)
_PAIR_BEFORE = re.compile(
    r"(?:api|access|secret|private|auth|client|account|signing|encryption|master|shared|pass|refresh|session|"
    r"license|subscription|app|application|ssh|bot|webhook|user|db|database|admin|authorization|verification)[ _-]\Z"
)
_GRAMMAR_BEFORE = re.compile(
    r"(?:unexpected|illegal|stop|next|special|missing|expected|syntax|unknown|unrecognized|pad|end|start|eos|bos|max|"
    r"continuation|page|per|every|each|last|first|invalid json)[ _-]{1,2}[\"'<]?\Z"
)
_QUERY_BEFORE = re.compile(r"(?:[?&#;]|%3f|%26|%23|amp;)\Z")
_EOL = re.compile(r"[\r\n]|\\+[rn]")


def _begin(data: str, at: int, least: int, characters: str) -> int:
    """Where the run of `characters` before `at` begins, at most `least` back."""
    left = max(0, at - least)
    return left + len(data[left:at].rstrip(characters))


def key_at(view: View, start: int) -> tuple[int, str]:
    """Where the key around `start` begins, and the key with a word before it that belongs to it."""
    begin = _begin(view.data, start, 80, _KEY_CHARACTERS)
    after = _KEY_AFTER.match(view.data, start, start + 80)
    key = view.data[begin : after.end() if after else start]
    pair = _PAIR_BEFORE.search(view.low, max(0, begin - 20), begin) if view.data[begin - 1 : begin] in (" ", "_") else None
    return begin, (view.data[pair.start() : begin] + key if pair else key)


def assignment(view: View, start: int, end: int) -> Spans:
    """`key=value`, `"key": "value"`, `key => value`, `("key", "value")` and their relatives."""
    begin, key = key_at(view, start)
    kind = kind_of(key)
    if kind is None:
        yield from _weak(view, begin, key, end)
        return
    if kind == "token" and _GRAMMAR_BEFORE.search(view.low, max(0, begin - 24), begin):
        return
    value = value_at(view.data, _past_type(view.data, end))
    if value is None or _is_listed(view, begin, start, end, value) or _is_sentence(view, kind, end, value):
        return
    if kind in ("cookie", "authorization"):
        yield from _header(view, key, kind, value)
        return
    if key.lower().endswith(("phrase", "mnemonic")) and not value.quoted:
        line = _EOL.search(view.data, value.start)
        value = Value(value.start, line.start() if line else len(view.data), quoted=True)
    found = is_secret(key, view.data[value.start : value.end][:600], quoted=value.quoted)
    if found:
        value = whole(view.data, value)
        yield Span(value.start, value.end, found)


def _is_listed(view: View, begin: int, start: int, end: int, value: Value) -> bool:
    """Whether `"password", "email"` is a list of names; a pair's value looks made, or follows a flag."""
    if "," not in view.data[start:end] or view.data[end - 1] in ":=":
        return False
    text = view.data[value.start : value.end][:600]
    return not value.quoted or not (view.data[begin] == "-" or looks_random(text, 6) or re.search(r"[\W_]", text))


_WORD_OF_SENTENCE = re.compile(r"[a-z]+ [a-z]")


def _is_sentence(view: View, kind: str, end: int, value: Value) -> bool:
    """Whether `token: could not be read` goes on in words."""
    if kind == "password" or value.quoted or ":" not in view.data[max(0, end - 4) : end]:
        return False
    return bool(_WORD_OF_SENTENCE.match(view.data, value.start, value.end + 2))


_TYPE = re.compile(r"(?:str|bytes|SecretStr|Optional\[\w+\]|string|String|&str|char\s?\*)(?: \| None)?[ \t]*=[ \t]*|string\(\d+\)[ \t]*")


def _past_type(data: str, at: int) -> int:
    typed = _TYPE.match(data, at, at + 60)
    return typed.end() if typed else at


_SESSION_KEYS = frozenset("session session_id sessionid sid sess connect.sid asp.net_sessionid sig signature".split())


def _weak(view: View, begin: int, key: str, end: int) -> Spans:
    """Names that hold a secret only in a URL's query, or only if the value was made by a generator."""
    name = key.lower().removeprefix("x-amz-").removeprefix("x-goog-").removeprefix("x-oss-")
    is_query = bool(_QUERY_BEFORE.search(view.low, max(0, begin - 4), begin))
    if name in ("code", "state", "key", "auth", "nonce", "ticket", "hash", "hmac", "se", "assertion"):
        if not is_query:
            return
    elif name not in _SESSION_KEYS and name not in ("credential", "googleaccessid", "awsaccesskeyid"):
        return
    value = value_at(view.data, end)
    if value is None:
        return
    text = view.data[value.start : value.end][:600]
    least = 6 if is_query else 12
    if name in ("sig", "signature") and _SIGNED.fullmatch(text) and any(c.isdigit() for c in text):
        yield Span(value.start, value.end, "signature")
    elif "%" in text or looks_random(text, least) or (is_query and name in ("sig", "code") and len(text) > 15):
        yield Span(value.start, value.end, "signature" if name.startswith("sig") else "oauth_code" if is_query else "session")


_SIGNED = re.compile(r"[A-Za-z0-9+/=%_-]{16,}")
_SCHEME = re.compile(
    r"\s*(?:(?:basic|bearer|token|apikey|api-key|negotiate|ntlm|digest|hmac|hawk|oauth|key|splunk|genie-?key|aws4-hmac-sha256|"
    r"sharedkey|sharedaccesssignature|goog4-rsa-sha256|bot|jwt|snowflake token)(?:\s+|=|:\s*|%20|\+))"
)
_PARAMETERS = ("digest", "hawk", "oauth", "aws4", "goog4", "sharedaccess", "hmac", "snowflake")


def _header(view: View, key: str, kind: str, value: Value) -> Spans:
    """Credentials with their scheme; cookies to the end of the line, for each holds several."""
    scheme = _SCHEME.match(view.low, value.start, value.start + 60)
    start = scheme.end() if scheme else value.start
    end = value.end
    has_parameters = scheme is not None and scheme[0].strip().startswith(_PARAMETERS)
    if not value.quoted:
        many = kind == "cookie" or has_parameters
        end = _line_end(view.data, start) if many else _word_end(view.data, start)
    text = view.data[start:end][:600]
    if end <= start or "[REDACTED:" in text and not is_secret("token", text, quoted=True):
        return
    if not has_parameters and "=" not in text and is_remark(text) or (not value.quoted or not scheme) and starts_remark(text.split()[0] if text.split() else ""):
        return
    if kind == "cookie" and not key.lower().endswith("cookie") and not value.quoted and "=" in text.split(";")[0]:
        end = _word_end(view.data, start)
    if key.lower() in ("auth", "cookies") and not scheme and not value.quoted and not looks_random(text, 6):
        return
    yield Span(start, end, kind)


_HEADER_END = re.compile(r"[\r\n']|\\+[rn']")


def _line_end(data: str, at: int) -> int:
    """The end of a header's line; a longer one is hidden to the end of the window."""
    limit = min(len(data), at + WINDOW)
    found = _HEADER_END.search(data, at, limit)
    return found.start() if found else limit


def _word_end(data: str, at: int) -> int:
    value = value_at(data, at)
    return value.end if value else at


_ELEMENT_END = re.compile(r"</|<!|\Z")


def element(view: View, start: int, end: int) -> Spans:
    """`<password>value</password>`, `<entry key="password">value</entry>`."""
    begin, key = key_at(view, start)
    if view.data[begin - 1 : begin] not in ("<", ":", '"', "'") or kind_of(key) is None:
        return
    closing = "<"
    if view.data.startswith("<![CDATA[", end):
        end, closing = end + 9, "]]>"
    close = view.data.find(closing, end, end + 4096)
    if close < 0 and len(view.data) > end + 4096 or close >= 0 and view.data[close : close + 2] not in ("</", "]]"):
        return
    stop = close if close >= 0 else len(view.data)
    value = view.data[end:stop].strip()
    found = is_secret(key, value[:600], quoted=True) if value else None
    if found:
        yield Span(end, stop, found)


_LOCATION = re.compile(r"([\w.-]+)\s*(?:\r?\n|\\n)[^\n]*\Z|loc[\"']?[ ]?[:=][ ]?[\[(][^\])]{0,200}?[\"']([\w.-]+)[\"'][\])][^\n]*\Z")


def rejected_input(view: View, start: int, end: int) -> Spans:
    """Pydantic's `input_value='...'` and FastAPI's `"input": "..."`, whose field is named before them."""
    place = _LOCATION.search(view.data, max(0, start - 400), start)
    value = value_at(view.data, end)
    if place is None or value is None:
        return
    found = is_secret(place[1] or place[2], view.data[value.start : value.end][:600], quoted=value.quoted)
    if found:
        yield Span(value.start, value.end, found)


def flag(view: View, start: int, end: int) -> Spans:
    """`--password value`, `-password value`, `ENV API_KEY value`."""
    key = view.data[start:end].split()[-1]
    if kind_of(key) is None:
        return
    value = value_at(view.data, end)
    if value is None or view.data[value.start : value.start + 2] in ("--", "is"):
        return
    found = is_secret(key, view.data[value.start : value.end][:600], quoted=value.quoted)
    if found:
        yield Span(value.start, value.end, found)


def prose(view: View, start: int, end: int) -> Spans:
    """`password is hunter2`, `api key 3f9a0c... was revoked`: a remark unless the word looks made."""
    begin, key = key_at(view, start)
    kind = kind_of(key)
    if kind is None or _GRAMMAR_BEFORE.search(view.low, max(0, begin - 24), begin):
        return
    value = value_at(view.data, end)
    if value is None:
        return
    text = view.data[value.start : value.end][:600]
    found = is_secret(key, text, quoted=value.quoted)
    if not found or (" " in text and value.quoted and kind != "password"):
        return
    stated = view.low[start:end].rstrip().endswith((" is", " was", "=", ":", " of", " identified by"))
    if kind == "password" and text.isdigit() and len(text) > 4:
        yield Span(value.start, value.end, found)
    elif looks_random(text, 6 if kind == "password" else 8) or (kind == "password" and (value.quoted or stated)):
        yield Span(value.start, value.end, found)


def bearer(view: View, start: int, end: int) -> Spans:
    """`Bearer value` outside a header; "Bearer authentication failed" is a remark."""
    at = end
    text = view.data[at : at + 600].split(None, 1)[0] if view.data[at : at + 600].split() else ""
    found = re.compile(r"[A-Za-z0-9._~+/|%*:-]+={0,2}").match(view.data, at)
    if not found or view.data[found.end() : found.end() + 1].isalnum() or starts_remark(text) or len(found[0]) < 6:
        return
    if looks_random(found[0][:600], 6) or len(found[0]) >= 16 or "." in found[0][:-1]:
        yield Span(at, found.end(), "bearer")


def basic(view: View, start: int, end: int) -> Spans:
    """`Basic` with base64 of `user:password`."""
    found = re.compile(r"[A-Za-z0-9+/_-]+(?:=|%3[dD]){0,2}").match(view.data, end)
    if not found:
        return
    decoded = decode_base64(found[0][:2048].replace("%3D", "=").replace("%3d", "="))
    if decoded and ":" in decoded:
        yield Span(end, found.end(), "basic_auth")


def decode_base64(text: str) -> str | None:
    """The printable ASCII text that `text` encodes, or None."""
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    text = text[: len(text) // 4 * 4] if len(text) % 4 == 1 else text + "=" * (-len(text) % 4)
    try:
        head = base64.b64decode(text[:12] if len(text) > 12 else text)
        if not head.isascii() or not _is_printable(head.decode("ascii")):
            return None
        decoded = base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None
    shown = decoded.decode("latin-1")
    return shown if sum(c.isprintable() or c in "\r\n\t" for c in shown) >= len(shown) * 0.95 else None


def _is_printable(text: str) -> bool:
    return all(c.isprintable() or c in "\r\n\t" for c in text)


_PEM_BODY = re.compile(r"(?:(?:[\s\"'+]|\\+[nr])*(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset)[^\n\\]{0,100})*(?:(?:[\s\"'+,]|\\+[nr])*[A-Za-z0-9+/=:,-]{12,})+(?:(?:[\s\"'+]|\\+[nr])*[A-Za-z0-9+/]*={1,2})?")
_PEM_END = re.compile(r"-END[A-Z \n]{0,40}-{0,5}")


def private_key(view: View, start: int, end: int) -> Spans:
    """From BEGIN to END; a truncated one to where its base64 ends."""
    close = view.data.find("-END", end, end + 32768)
    if close >= 0:
        found = _PEM_END.match(view.data, close)
        yield Span(start, found.end() if found else close + 4, "private_key")
        return
    body = _PEM_BODY.match(view.data, end, end + 32768)
    if body:
        yield Span(start, body.end(), "private_key")


_PEM_TAIL = re.compile(r"(?:[A-Za-z0-9+/=]{4,}(?:\s|\\+[nr])*)+\Z")


def private_key_tail(view: View, start: int, end: int) -> Spans:
    """What is left of a key whose beginning was cut off."""
    window = max(0, start - 8192)
    text = view.data[window:start]
    lines = re.split(r"(\s+|\\+[nr])", text)
    length = 0
    for part in reversed(lines):
        if part and not re.fullmatch(r"\s+|(?:\\+[nr])+|[A-Za-z0-9+/]+={0,2}|", part):
            break
        if re.fullmatch(r"[A-Za-z]{1,15}", part):
            break
        length += len(part)
    yield Span(start - length, end, "private_key")


def at_sign(view: View, start: int, end: int) -> Spans:
    """What stands before an `@`: a URL's user and password, the same without a scheme, or an e-mail's name."""
    before = view.data[max(0, start - 300) : start]
    scheme = before.rfind("://")
    text = before[scheme + 3 :] if scheme >= 0 else before
    if scheme >= 0 and not _BREAK.search(text):
        if _is_userinfo(text):
            yield Span(start - len(text), start, "credentials")
        if not re.search(r"[/?#]", text):
            return
    bare = _BARE_USERINFO.search(before)
    if bare and _is_host(view.data[end : end + 254]):
        yield Span(start - len(bare[0]), start, "credentials")
    yield from _email(view, start)


_BREAK = re.compile(r"[\s\"'<>`]")
_BARE_USERINFO = re.compile(r"[\w.%+-]{1,64}:[^\s\"'<>@/:=]{1,200}\Z")
_HOST_AFTER = re.compile(r"(?:tcp|unix)?\(|[A-Za-z0-9][A-Za-z0-9.-]{1,200}(?::\d{2,5}|/)")


def _is_host(text: str) -> bool:
    found = _HOST_AFTER.match(text)
    return found is not None and not text.startswith("sha256") and not re.match(r"v?\d+(?:\.\d+)*/", found[0])


def _is_userinfo(text: str) -> bool:
    """Whether `text`, between `://` and `@`, is user and password; a password may hold `/`, `#` and `@`."""
    user, colon, password = text.partition(":")
    if re.search(r"[/?#]", user) or text in ("", "git", "...", "user", "hg", "svn"):
        return False
    if not colon:
        return "@" not in user
    return not re.match(r"\d{1,5}(?:[/?#]|\Z)", password) and not ("@" in password and "?" in password)


def dashed_key(view: View, start: int, end: int) -> Spans:
    """`sk-` with dashes inside: a key has digits and capitals, a name in kebab case has not."""
    if looks_random(view.data[start + 3 : end][:600], 20) and re.search(r"[A-Z]", view.data[start + 3 : end][:600]):
        yield Span(start, end, "openai_key")


def after_last_colon(view: View, start: int, end: int) -> Spans:
    """`.pgpass`: host, port, database, user, password."""
    yield Span(view.data.rindex(":", start, end) + 1, end, "password")


def bare_userinfo(view: View, start: int, end: int) -> Spans:
    """`user:password@tcp(host)` and `user:password@host.name:5432/db`, without a scheme."""
    text = view.data[start:end]
    at = text.rfind("@")
    host = text[at + 1 :]
    if host.startswith("sha256") or re.match(r"v?\d+(?:\.\d+)*\Z", host) or "[REDACTED:" in text:
        return
    yield Span(start, start + at, "credentials")


_LOCAL_CHARACTERS = string.ascii_letters + string.digits + "._%+'!#$&*-^~" + "".join(map(chr, range(0x80, 0x100)))
_DOMAIN = re.compile(r"@(?:[a-z0-9\x80-\xff-]{1,63}\.){1,5}[a-z\x80-\xff]{2,24}")
_NO_DOMAIN = frozenset("py js ts service whl tgz git next".split())


def _email(view: View, start: int) -> Spans:
    domain = _DOMAIN.match(view.low, start, start + 320)
    if not domain:
        return
    begin = _begin(view.data, start, 64, _LOCAL_CHARACTERS)
    local = re.split(r"['&]", view.data[begin:start])[-1].lstrip(".%+!#$*^~")
    if local and local != "git" and domain[0].rsplit(".", 1)[-1] not in _NO_DOMAIN:
        yield Span(start - len(local), domain.end(), "email")


def card(view: View, start: int, end: int) -> Spans:
    """A card number standing alone: no digit, letter or dot touches it."""
    if re.match(r"[\w.-]", view.data[start - 1 : start], re.ASCII):
        return
    text = view.data[start:end]
    for groups in (text, _LAST_GROUP.sub("", text)):
        stop = start + len(groups)
        if not re.match(r"\w|[.-]\w", view.data[stop : stop + 2], re.ASCII) or stop < end:
            if hosts.is_card(groups):
                yield Span(start, stop, "card")
                return


_LAST_GROUP = re.compile(r"(?:\xc2\xa0|[ .+_-])[0-9]+\Z")


def address_v4(view: View, start: int, end: int) -> Spans:
    """A private IPv4 address that is not part of a version."""
    before, after = view.low[max(0, start - 9) : start], view.data[end : end + 2]
    if re.search(r"[\w.]\Z", before) or re.match(r"[\w]|\.\d", after) or re.search(r"(?:version|release|ver\.?|build)[ :=/]*\Z", before):
        return
    if hosts.is_private_v4(view.data[start:end]):
        yield Span(start, end, "ip")


def address_v6(view: View, start: int, end: int) -> Spans:
    """A unique local or link-local IPv6 address, with its zone."""
    if re.search(r"[\w:]\Z", view.data[max(0, start - 1) : start]):
        return
    text = view.data[start:end].rstrip(":.") if not view.data[start:end].endswith("::") else view.data[start:end]
    if hosts.is_private_v6(text):
        zone = re.compile(r"(?:%|%25)[A-Za-z][A-Za-z0-9]{1,15}").match(view.data, start + len(text))
        yield Span(start, zone.end() if zone else start + len(text), "ip")


_NAME_AFTER = re.compile(r"[A-Za-z0-9_.-]*")


def host(view: View, start: int, end: int) -> Spans:
    """A dotted name around a label such as `internal` or `corp`."""
    begin = _begin(view.data, start, 200, _NAME_CHARACTERS)
    after = _NAME_AFTER.match(view.data, end, end + 100)
    stop = begin + len(view.data[begin : after.end() if after else end].rstrip(".-"))
    name = view.data[begin:stop]
    offset = len(name) - len(name.lstrip(".-_"))
    if name.startswith(".") or view.data[stop : stop + 1] == "(" or not hosts.is_internal_name(name.lower()):
        return
    if any(c.isupper() for c in name) and any(c.islower() for c in name) and "_" in name:
        return
    yield Span(begin + offset, stop, "host")


_NETWORK = re.compile(
    r"(?:https?|wss?|tcp|udp|tls|ssl|rediss?|postgres(?:ql)?|mysql|mariadb|sqlserver|oracle|mongodb|amqps?|kafka|nats|grpcs?|ldaps?|s?ftp|ssh|smtps?|"
    r"imaps?|memcached|etcd|bolt|neo4j|clickhouse|mqtts?|pymysql|psycopg2?|asyncpg|aiomysql|plaintext|sasl_ssl|sasl_plaintext|consul|zookeeper|thrift|socks[45]h?|smb|cifs|nfs|afp|rtsp|telnet|rsync|s?irc)\Z"
)
_USERINFO = re.compile(r"[^\s/@\"'<>]{1,300}@")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def named_host(view: View, start: int, end: int) -> Spans:
    """A name where a host is certainly meant: after `host=`, `could not translate host name`, `://`."""
    user = _USERINFO.match(view.data, end, end + 300) if view.data.startswith("://", start) else None
    end = user.end() if user else end
    name = _NAME.match(view.data, end, end + 254)
    if not name:
        return
    text = name[0].rstrip(".-_")
    if view.data.startswith("://", start) and not _NETWORK.search(view.low, max(0, start - 24), start):
        return
    quoted = view.data[end - 1 : end] in ('"', "'", "`")
    said = view.low[start:end].rstrip("\"'` ").endswith(("host", "name", "address", "lookup", "resolve"))
    if said and not quoted and not re.search(r"[\d.-]", text):
        return
    if view.low.startswith("host ", start) and not quoted and not re.search(r"\d", text):
        return
    if starts_remark(text) or text.lower() in ("nginx", "unreachable", "not", "unknown", "down", "apache", "cloudflare", "gunicorn", "uvicorn"):
        return
    if hosts.is_internal_host(text):
        yield Span(end, end + len(text), "host")


def port_host(view: View, start: int, end: int) -> Spans:
    """`redis-main:6379`: a single label before a well-known port."""
    colon = view.data.rfind(":", start, end)
    begin = _begin(view.data, colon, 200, _NAME_CHARACTERS)
    name = view.data[begin:colon]
    if name and not name[:1].isdigit() and view.data[begin - 1 : begin] != "@" and hosts.is_internal_host(name):
        yield Span(begin, colon, "host")


_USER = re.compile(r"[^\\/:*?\"'<>|\r\n\t ,;)\]}]+(?:(?: [A-Z][A-Za-z]{0,20}){1,2}(?=[\\/]))?")
_SHARED = frozenset("public default shared all defaultuser0 linuxbrew".split())


def home(view: View, start: int, end: int) -> Spans:
    """The user's name in a path below a home folder."""
    before = view.low[max(0, start - 8) : start]
    if re.search(r"[\w.-]\Z", before) and not re.search(r"(?:/var|/export|/mnt/[a-z]|/usr|/nfs|/net|/srv|/data|\A[a-z])\Z", before):
        return
    if re.search(r"(?:get|post|put|patch|delete|head|route|path)[ :'\"]{1,3}\Z", before):
        return
    name = _USER.match(view.data, end, end + 64)
    if name and name[0].lower().rstrip(".") not in _SHARED and "[REDACTED" not in name[0]:
        yield Span(end, name.end(), "user")


def tilde_home(view: View, start: int, end: int) -> Spans:
    """`~alice/x`."""
    name = re.compile(r"[A-Za-z_][\w.-]{1,31}(?=/)").match(view.data, end - 1)
    if name:
        yield Span(end - 1, name.end(), "user")


def windows_home(view: View, start: int, end: int) -> Spans:
    """The same under `C:\\Users\\` with one or more backslashes."""
    name = _USER.match(view.data, end, end + 64)
    if name and name[0].lower() not in _SHARED and "[REDACTED" not in name[0]:
        yield Span(end, name.end(), "user")
