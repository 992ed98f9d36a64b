"""Text of programs inside messages: SQL with its parameters, stack frames, command lines."""

# ruff: noqa: ARG001 - every rule has the same three arguments

from __future__ import annotations

import re

from toolfault.redact.spans import Spans, View
from toolfault.redact.values import looks_random, starts_remark, value_at, whole

_CONTINUES = re.compile(
    r"(?:\r?\n|\\r\\n|\\n)(?:[ \t]+[^\s]|[ \t]*(?:FROM|WHERE|AND|OR|JOIN|LEFT|RIGHT|INNER|OUTER|SET|VALUES|ORDER|GROUP|HAVING|LIMIT|OFFSET|"
    r"ON|RETURNING|UNION|SELECT|INSERT|UPDATE|DELETE|from|where|and|or|join|left|right|inner|set|values|order by|group by|limit|returning|union)\b|[ \t]*[()])",
    re.ASCII,
)
_LINE = re.compile(r"[^\r\n\\]*(?:\\+(?:[^nr\r\n]|[nr][a-z])[^\r\n\\]*)*")
_KEPT_TAIL = re.compile(r"\s*\(Background on this error at: [^)\n]*\)\s*\Z", re.ASCII)
_BRACKET_END = re.compile(r"\]\s*(?:\r?\n|\\n|\(Background|\[|\"|'|\Z)", re.ASCII)


def _end_of_line(data: str, at: int) -> int:
    found = _LINE.match(data, at)
    return found.end() if found else at


def sql(view: View, start: int, end: int) -> Spans:
    """A statement to the end of its last line; what follows it on the line are its parameters."""
    at = _end_of_line(view.data, end)
    for _ in range(200):
        following = _CONTINUES.match(view.data, at, at + 200)
        if not following:
            break
        at = _end_of_line(view.data, following.end())
    tail = _KEPT_TAIL.search(view.data, max(start, at - 120), at)
    yield start, tail.start() if tail else at, "sql"


def sql_bracket(view: View, start: int, end: int) -> Spans:
    """SQLAlchemy's `[SQL: ...]` and `[parameters: ...]`, over several lines."""
    found = _BRACKET_END.search(view.data, end, end + 16384)
    yield end, found.start() if found else min(len(view.data), end + 16384), "sql"


_SPEAKS_SQL = re.compile(
    r"\bsql|select |insert |update |delete |psycopg|statement|postgres|mysql|sqlite|query|\[redacted:sql|ora-\d|integrityerror|execute",
    re.ASCII,
)


def sql_parameters(view: View, start: int, end: int) -> Spans:
    """`params=(...)` beside a statement."""
    around = view.low[max(0, start - 600) : start]
    if _SPEAKS_SQL.search(around) and not view.data.startswith("[REDACTED", end - 1):
        yield end - 1, _end_of_line(view.data, end), "sql"


def near(view: View, start: int, end: int) -> Spans:
    """MySQL quotes the rest of the statement from the error on."""
    begin, stop = start + len("near '"), end - len("' at line")
    if " " in view.data[begin:stop]:
        yield begin, stop, "sql"


_PLAIN_VALUE = re.compile(
    r"(?i)\d{1,12}|[0-9a-f]{8}-[0-9a-f-]{27}|\[REDACTED:\w+\]|null|true|false",
    re.ASCII,
)


def row_value(view: View, start: int, end: int) -> Spans:
    """`Key (email)=(value)` and `Duplicate entry 'value' for key`: numbers and uuids stay."""
    close = {"(": ")", "'": "'", '"': '"'}[view.data[end - 1]]
    stop = view.data.find(close, end, end + 1000)
    stop = stop if stop >= 0 else _end_of_line(view.data, end)
    if not _PLAIN_VALUE.fullmatch(view.data[end:stop]):
        yield end, stop, "sql"


def failing_row(view: View, start: int, end: int) -> Spans:
    """`Failing row contains (...)`."""
    if not view.data.startswith("[REDACTED", end):
        yield end, _end_of_line(view.data, end), "sql"


_SOURCE = re.compile(r"(?:\r?\n|\\n)[ \t]{4,}[^\r\n]*(?:(?:\r?\n)[ \t]{4,}[~^ ]+)?")


def python_frame(view: View, start: int, end: int) -> Spans:
    """A frame's place and the source line below it."""
    source = _SOURCE.match(view.data, end, end + 1000)
    yield start, source.end() if source else end, "stack"


def short_password(view: View, start: int, end: int) -> Spans:
    """`mysql -u root -phunter2`, `sshpass -p hunter2`: what `-p` means depends on the program."""
    value = value_at(view.data, end)
    text = view.data[value.start : value.end] if value else ""
    if value is None or not text or text.startswith(("[REDACTED", "-")):
        return
    is_port = view.data[end - 1] == " " and text.isdigit()
    if not is_port or "sshpass" in view.low[start:end]:
        yield value.start, whole(view.data, value).end, "password"


def user_flag(view: View, start: int, end: int) -> Spans:
    """`curl -u user:password`."""
    value = value_at(view.data, end)
    if value is None:
        return
    text = view.data[value.start : value.end][:400]
    user, colon, password = text.partition(":")
    if (
        colon
        and password
        and not (user.isdigit() and password.isdigit())
        and "[REDACTED" not in text
    ):
        yield value.start, whole(view.data, value).end, "credentials"


def auth_pair(view: View, start: int, end: int) -> Spans:
    """`auth=('user', 'password')`, `HTTPBasicAuth('user', 'password')`."""
    if "[REDACTED" not in view.data[start:end]:
        quote = min(
            i for i in (view.data.find("'", start, end), view.data.find('"', start, end)) if i >= 0
        )
        yield quote, end, "credentials"


def positional(view: View, start: int, end: int) -> Spans:
    """The word after a fixed phrase (`IDENTIFIED BY`, `requirepass`, netrc's `password`)."""
    value = value_at(view.data, end)
    if value is None or view.data.startswith("[REDACTED", value.start):
        return
    text = view.data[value.start : value.end][:400]
    said = view.low.startswith(("identified", "with"), start)  # words that prose uses as well
    if text and (value.quoted or looks_random(text, 6) or not (said or starts_remark(text))):
        yield value.start, whole(view.data, value).end, "password"
