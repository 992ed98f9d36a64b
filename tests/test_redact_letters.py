"""Redaction of secrets and names with letters beyond ASCII, and of blanks beyond the ASCII ones.

The scan reads UTF-8 byte by byte: no byte of a letter may be taken for a blank or for the end of a word.
"""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest

import toolfault.redact
from toolfault.redact.engines import PythonEngine, Re2Engine
from toolfault.redact.scrubber import Scrubber

PURE, WITH_RE2 = Scrubber(PythonEngine()), Scrubber(Re2Engine())
NBSP = "\u00a0"
BASE64 = "YXBwOkZha2VQdzk5w6BGYWtlUHc5OA=="  # app:FakePw99àFakePw98

EXAMPLES = (
    ("password=Città2024Segreta user=app", "password=[REDACTED:password] user=app"),
    ("DB_PASSWORD=Città2024Segreta", "DB_PASSWORD=[REDACTED:password]"),
    ("https://x.example.com/?password=Città2024Segreta&x=1", "https://x.example.com/?password=[REDACTED:password]&x=1"),
    ("tool --password Città2024Segreta -v", "tool --password [REDACTED:password] -v"),
    ("curl -u app:Città2024Segreta x", "curl -u [REDACTED:credentials] x"),
    ("mysql -pCittà2024Segreta app", "mysql -p[REDACTED:password] app"),
    ("token: Åke2024Hemlig", "token: [REDACTED:token]"),
    ("Пароль: Россия2024Тайна x", "Пароль: [REDACTED:password] x"),
    ("password='[REDACTED:ip]ЖЖЖЖЖЖ'", "password='[REDACTED:password]'"),
    ("password=$cittõsegreta", "password=[REDACTED:password]"),
    ("postgresql://app:Città2024Segreta@10.0.0.5/db", "postgresql://[REDACTED:credentials]@[REDACTED:ip]/db"),
    ("redis://:CittàSegreta2024@cache:6379/0", "redis://[REDACTED:credentials]@[REDACTED:host]:6379/0"),
    ("login Città:Segreta2024@db.example.com:5432", "login [REDACTED:credentials]:5432"),
    ("sent Bearer FakeTok99àFakeTok98 x", "sent Bearer [REDACTED:bearer] x"),
    (f"sent Basic {BASE64} x", "sent Basic [REDACTED:basic_auth] x"),
    ("C:\\Users\\Àlex Ådal\\x", "C:\\Users\\[REDACTED:user]\\x"),
    ("~àlex/x", "~[REDACTED:user]/x"),
    # blanks
    (f"password:{NBSP}FakePw99", "password:[REDACTED:password]"),
    (f"api_key={NBSP}FakeKey99 x", "api_key=[REDACTED:api_key] x"),
    (f"password{NBSP}: FakePw99", f"password{NBSP}: [REDACTED:password]"),
    (f"password{NBSP}is{NBSP}FakePw99", f"password{NBSP}is{NBSP}[REDACTED:password]"),
    ("tool --password\u2003FakePw99 -v", "tool --password\u2003[REDACTED:password] -v"),
    ("password&nbsp;:&nbsp;FakePw99", "password&nbsp;:&nbsp;[REDACTED:password]"),
    ("password: \x0bFakePw99 x", "password: [REDACTED:password] x"),
    ("password: \x0cFakePw99 x", "password: [REDACTED:password] x"),
    ("password=\x1cFakePw99 x", "password=[REDACTED:password] x"),
    # tables, lists and documents
    ('{"name":"DB_PASSWORD","value":"FakePw99"}', '{"name":"DB_PASSWORD","value":"[REDACTED:password]"}'),
    ('{"name": "X-Api-Key", "value": "FakeKey99"}', '{"name": "X-Api-Key", "value": "[REDACTED:api_key]"}'),
    ('{"password":{"value":"FakePw99"}}', '{"password":{"value":"[REDACTED:password]"}}'),
    ("password → FakePw99", "password → [REDACTED:password]"),
    ("**password**: FakePw99", "**password**: [REDACTED:password]"),
    ("**Password:** FakePw99", "**Password:** [REDACTED:password]"),
    ("| password | FakePw99 |", "| password | [REDACTED:password] |"),
)  # fmt: skip

KEPT = (
    "echo $password | sha256sum",
    "| password | token | user |",
    "| password | string | yes |",
    'names: "password", "email"',
    "tomorrow’s token → expired",
    "Bearer токен недействителен",
    "Bearer authentication—failed",
    f"slot{NBSP}10:00 is{NBSP}taken",
)

#: Latin-1, Latin Extended, Greek, Cyrillic, Hebrew, Arabic, general punctuation with its blanks, kana, CJK, Hangul,
#: emoji, and the controls that `str.split()` takes for blanks; every byte that continues a character is among them
CODE_POINTS = (
    *range(0xA0, 0x180), *range(0x370, 0x530), *range(0x5D0, 0x5F0), *range(0x620, 0x650), *range(0x2000, 0x2070),
    *range(0x20A0, 0x20C0), *range(0x3000, 0x3100), *range(0x4E00, 0x4E80), *range(0xAC00, 0xAC40),
    *range(0xFF00, 0xFF60), *range(0x1F600, 0x1F680), 0x0B, 0x0C, 0x1C, 0x1D, 0x1E, 0x1F, 0x85,
)  # fmt: skip
FRAMES = (
    "password={} user=app", "token: {}", "?api_key={}&x=1", "tool --password {} -v", "curl -u app:{} x", "mysql -p{} app",
    "sshpass -p {} ssh x", "postgresql://app:{}@db.example.com/x", "password='{}'", '{{"password": "{}"}}', "<password>{}</password>",
    "Authorization: Bearer {}", "sent Bearer {} x", "Пароль: {} x", "requirepass {}",
)  # fmt: skip


@pytest.mark.parametrize(("message", "shown"), EXAMPLES)
def test_letters_and_blanks_beyond_ascii_neither_cut_nor_hide_a_secret(message, shown):
    assert PURE.scrub(message) == shown
    assert WITH_RE2.scrub(message) == shown


@pytest.mark.parametrize("message", KEPT)
def test_tables_pipes_and_blanks_without_a_secret_stay(message):
    assert PURE.scrub(message) == message
    assert WITH_RE2.scrub(message) == message


@pytest.mark.parametrize("frame", FRAMES)
def test_no_part_of_a_secret_is_left_whatever_character_is_in_it(frame):
    left = []
    for point in CODE_POINTS:
        message = frame.format(f"Zq7R{chr(point)}Lm9Xw4Tb")
        shown = PURE.scrub(message)
        if "Zq7R" in shown or any("Lm9Xw4Tb"[at : at + 4] in shown for at in range(5)):
            left.append((hex(point), shown))

    assert left == []


@pytest.mark.parametrize("point", [0x85, 0xA0, 0xE0, 0xC5, 0x405, 0x420, 0x2005, 0x2020, 0x1F620])
@pytest.mark.parametrize("frame", FRAMES)
def test_both_engines_hide_the_same_in_short_and_in_long_text(frame, point):
    message = frame.format(f"Zq7R{chr(point)}Lm9Xw4Tb")

    for text in (message, message + " ." * 10_000):
        assert WITH_RE2.scrub(text) == PURE.scrub(text)


@pytest.mark.parametrize("point", [0x85, 0xA0, 0xE0, 0x420, 0x2005])
def test_a_value_longer_than_the_window_is_hidden_to_its_end(point):
    shown = PURE.scrub("password=" + f"Zq7R{chr(point)}Lm9Xw4Tb" * 1000 + " user=app")

    assert shown == "password=[REDACTED:password] user=app"


def test_every_pattern_of_the_scan_that_names_a_class_knows_ascii_only():
    modules = [
        importlib.import_module(f"toolfault.redact.{module.name}")
        for module in pkgutil.iter_modules(toolfault.redact.__path__)
    ]
    patterns = {
        f"{module.__name__}.{name}": pattern
        for module in modules
        for name, pattern in vars(module).items()
        if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str)
    }
    named = re.compile(r"\\[swbdSWBD]")

    assert len(patterns) > 50
    assert [
        name
        for name, pattern in patterns.items()
        if named.search(pattern.pattern) and not pattern.flags & re.ASCII
    ] == []
