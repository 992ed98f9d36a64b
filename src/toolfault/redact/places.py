"""Who and where: credentials before an `@`, e-mail, cards, internal addresses and hosts, users in paths."""

# ruff: noqa: ARG001 - every rule has the same three arguments

from __future__ import annotations

import re
import string

from toolfault.redact import hosts
from toolfault.redact.spans import Spans, View, run_start, words
from toolfault.redact.values import starts_remark

_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_USERINFO_CHARACTERS = "".join(chr(c) for c in range(0x21, 0x100) if chr(c) not in "\"'<>@/=")
_BREAK = re.compile(r"[ \t\r\n\"'<>`]")
_BARE_USERINFO = re.compile(r"[\w.%+\x80-\xff-]{1,64}:[^ \t\r\n\"'<>@/:=]{1,200}\Z", re.ASCII)
_HOST_AFTER = re.compile(r"(?:tcp|unix)?\(|[A-Za-z0-9][A-Za-z0-9.-]{1,200}(?::\d{2,5}|/)", re.ASCII)
_LOCAL_CHARACTERS = (
    string.ascii_letters + string.digits + "._%+'!#$&*-^~" + "".join(map(chr, range(0x80, 0x100)))
)
_PATH = re.compile(r"[/?#]")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*/", re.ASCII)
_PORT = re.compile(r"\d{1,5}(?:[/?#]|\Z)", re.ASCII)
_PARAMETER = re.compile(r"['&]")
_TOUCHES = re.compile(r"[\w.-]", re.ASCII)
_GOES_ON = re.compile(r"\w|[.-]\w", re.ASCII)
_IN_WORD = re.compile(r"[\w:]", re.ASCII)
_ZONE = re.compile(r"(?:%|%25)[A-Za-z][A-Za-z0-9]{1,15}")
_TILDE_USER = re.compile(r"[A-Za-z_\x80-\xff][\w.\x80-\xff-]{1,63}(?=/)", re.ASCII)
_DOMAIN = re.compile(r"@(?:[a-z0-9\x80-\xff-]{1,63}\.){1,5}[a-z\x80-\xff]{2,24}")
_NO_DOMAIN = words("py js ts service whl tgz git next")
_LAST_GROUP = re.compile(r"(?:\xc2\xa0|[ .+_-])[0-9]+\Z")
_MORE_DIGITS = re.compile(r"\w|\.\d", re.ASCII)
_VERSION_BEFORE = re.compile(r"(?:version|release|ver\.?|build)[ :=/]*\Z")
_NAME_AFTER = re.compile(r"[A-Za-z0-9_.-]*")
_NETWORK = words(
    "http https ws wss tcp udp tls ssl redis rediss postgres postgresql mysql mariadb sqlserver oracle mongodb srv amqp amqps kafka nats grpc grpcs "
    "ldap ldaps ftp sftp ssh smtp smtps imap imaps memcached etcd bolt neo4j clickhouse mqtt mqtts pymysql psycopg psycopg2 asyncpg aiomysql plaintext "
    "sasl_ssl sasl_plaintext consul zookeeper thrift socks4 socks4h socks5 socks5h smb cifs nfs afp rtsp telnet rsync irc ircs"
)
_SCHEME_CHARACTERS = string.ascii_lowercase + string.digits + "_"
_USERINFO = re.compile(r"[^ \t\r\n/@\"'<>]{1,300}+@")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_USER = re.compile(
    r"[^\\/:*?\"'<>|\r\n\t ,;)\]}]+(?:(?: [A-Z\xc2-\xf4][A-Za-z\x80-\xff]{0,40}){1,2}(?=[\\/]))?"
)
_HOME = re.compile(r"/(?:home|Users)/")
#: Homes within homes; behind more of them the text is dropped.
_MAX_HOMES = 400
_IN_PATH = re.compile(r"[\w.-]\Z", re.ASCII)
_MOUNT = re.compile(r"(?:/var|/export|/mnt/[a-z]|/usr|/nfs|/net|/srv|/data|\A[a-z])\Z")
_METHOD = re.compile(r"(?:get|post|put|patch|delete|head|route|path)[ :'\"]{1,3}\Z")
_SHARED = words("public default shared all defaultuser0 linuxbrew")


def at_sign(view: View, start: int, end: int) -> Spans:
    """What stands before an `@`: a URL's user and password, the same without a scheme, or an e-mail's name."""
    before = view.data[max(0, start - 300) : start]
    scheme = before.rfind("://")
    text = before[scheme + 3 :] if scheme >= 0 else before
    if scheme >= 0 and not _BREAK.search(text):
        if _is_userinfo(text):
            yield start - len(text), start, "credentials"
        if not _PATH.search(text):
            return
    run = before[len(before.rstrip(_USERINFO_CHARACTERS)) :]
    bare = _BARE_USERINFO.search(run) if ":" in run else None
    if bare and _is_host(view.data[end : end + 254]):
        yield start - len(bare[0]), start, "credentials"
    yield from _email(view, start)


def _is_host(text: str) -> bool:
    found = _HOST_AFTER.match(text)
    return found is not None and not text.startswith("sha256") and not _VERSION.match(found[0])


def _is_userinfo(text: str) -> bool:
    """Whether `text`, between `://` and `@`, is user and password; a password may hold `/`, `#` and `@`."""
    user, colon, password = text.partition(":")
    if _PATH.search(user) or text in ("", "git", "...", "user", "hg", "svn"):
        return False
    if not colon:
        return "@" not in user
    return not _PORT.match(password) and not ("@" in password and "?" in password)


def _email(view: View, start: int) -> Spans:
    domain = _DOMAIN.match(view.low, start, start + 320)
    if not domain:
        return
    begin = run_start(view.data, start, 64, _LOCAL_CHARACTERS)
    local = _PARAMETER.split(view.data[begin:start])[-1].lstrip(".%+!#$*^~")
    if local and local != "git" and domain[0].rsplit(".", 1)[-1] not in _NO_DOMAIN:
        yield start - len(local), domain.end(), "email"


def card(view: View, start: int, end: int) -> Spans:
    """A card number standing alone: no digit, letter or dot touches it."""
    if _TOUCHES.match(view.data[start - 1 : start]):
        return
    text = view.data[start:end]
    for groups in (text, _LAST_GROUP.sub("", text)):
        stop = start + len(groups)
        alone = stop < end or not _GOES_ON.match(view.data, stop, stop + 2)
        if alone and hosts.is_card(groups):
            yield start, stop, "card"
            return


def address_v4(view: View, start: int, end: int) -> Spans:
    """A private IPv4 address that is not part of a version."""
    if view.data[start - 1 : start] == "." or _MORE_DIGITS.match(view.data, end):
        return
    if not _VERSION_BEFORE.search(view.low, max(0, start - 9), start):
        yield start, end, "ip"


def address_v6(view: View, start: int, end: int) -> Spans:
    """A unique local or link-local IPv6 address, with its zone."""
    if _IN_WORD.match(view.data[start - 1 : start]):
        return
    text = view.data[start:end]
    text = text if text.endswith("::") else text.rstrip(":.")
    if hosts.is_private_v6(text):
        zone = _ZONE.match(view.data, start + len(text))
        yield start, zone.end() if zone else start + len(text), "ip"


def host(view: View, start: int, end: int) -> Spans:
    """A dotted name around a label such as `internal` or `corp`."""
    begin = run_start(view.data, start, 200, _NAME_CHARACTERS)
    after = _NAME_AFTER.match(view.data, end, end + 100)
    name = view.data[begin : after.end() if after else end].rstrip(".-")
    stop = begin + len(name)
    if (
        name[0] == "."
        or not hosts.is_internal_name(name.lower())
        or view.data[stop : stop + 1] == "("
    ):
        return
    if "_" in name and not name.islower() and not name.isupper():
        return
    yield stop - len(name.lstrip(".-_")), stop, "host"


_HAS_DIGIT = re.compile(r"[0-9]")
_HAS_MARK = re.compile(r"[0-9.-]")
_PROSE = ("host", "name", "address", "lookup", "resolve", "server=", "address=", "addr=")
#: The last is the source that our own untrusted blocks name.
_NO_HOSTS = words(
    "localhost nginx unreachable unknown down apache cloudflare gunicorn uvicorn tool_refusal"
)


def _is_name(said: str, text: str) -> bool:
    """Whether a bare word after `lookup` or `host` is a name: digits, dots or dashes tell."""
    if said.startswith("host "):
        return bool(_HAS_DIGIT.search(text))
    prose = said.rstrip().endswith(_PROSE)
    return not prose or bool(_HAS_MARK.search(text))


def named_host(view: View, start: int, end: int) -> Spans:
    """A name where a host is certainly meant: after `host=`, `could not translate host name`, `://`."""
    is_url = view.data.startswith("://", start)
    if is_url:
        if view.low[run_start(view.low, start, 24, _SCHEME_CHARACTERS) : start] not in _NETWORK:
            return
        user = _USERINFO.match(view.data, end, end + 300)
        end = user.end() if user else end
    name = _NAME.match(view.data, end, end + 254)
    text = name[0].rstrip(".-_") if name else ""
    if not hosts.is_internal_host(text):
        return
    is_certain = is_url or view.data[end - 1 : end] in ('"', "'", "`")
    if not is_certain and not _is_name(view.low[start:end], text):
        return
    if "." in text or not (starts_remark(text) or text.lower() in _NO_HOSTS):
        yield end, end + len(text), "host"


def port_host(view: View, start: int, end: int) -> Spans:
    """`redis-main:6379`: a single label before a well-known port."""
    begin = run_start(view.data, start, 200, _NAME_CHARACTERS)
    name = view.data[begin:start]
    if (
        name[-1:].isalnum()
        and not name[:1].isdigit()
        and view.data[begin - 1 : begin] != "@"
        and hosts.is_internal_host(name)
    ):
        yield begin, start, "host"


def home(view: View, start: int, end: int) -> Spans:
    """The user's name in a path below a home folder."""
    before = view.low[max(0, start - 8) : start]
    if _IN_PATH.search(before) and not _MOUNT.search(before):
        return
    if _METHOD.search(before):
        return
    name = _USER.match(view.data, end, end + 64)
    homes = 0
    while name and name[0].lower().rstrip(".") not in _SHARED and "[REDACTED" not in name[0]:
        homes += 1
        if homes > _MAX_HOMES:
            yield name.start(), len(view.data), "excess"
            return
        yield name.start(), name.end(), "user"
        again = _HOME.match(view.data, name.end())
        name = _USER.match(view.data, again.end(), again.end() + 64) if again else None


def tilde_home(view: View, start: int, end: int) -> Spans:
    """`~alice/x`."""
    name = _TILDE_USER.match(view.data, end - 1)
    if name:
        yield end - 1, name.end(), "user"


def windows_home(view: View, start: int, end: int) -> Spans:
    r"""The same under `C:\Users\` with one or more backslashes."""
    name = _USER.match(view.data, end, end + 64)
    if name and name[0].lower() not in _SHARED and "[REDACTED" not in name[0]:
        yield end, name.end(), "user"
