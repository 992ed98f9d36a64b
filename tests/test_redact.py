"""Redaction: the promises that hold for any text, and the helpers around it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolfault.conventions import MAX_MESSAGE
from toolfault.redact import (
    UNSCRUBBABLE,
    cap,
    faults,
    is_secret_key,
    scrub,
    scrub_attributes,
    scrub_stack,
    scrub_value,
)
from toolfault.redact.engines import PythonEngine, Re2Engine
from toolfault.redact.rules import all_rules
from toolfault.redact.scrubber import MAX_HITS, MAX_MADE, Scrubber
from toolfault.redact.spans import View
from toolfault.redact.views import with_plain_blanks

PURE, WITH_RE2 = Scrubber(PythonEngine()), Scrubber(Re2Engine())
TOKEN = "gh" + "p_" + "FakeZq7Rk2Lm9Xw4Tb6Yv1Nc8Jh3Gd5Sf0Pa"
CLASSES = {
    "aws_key": "AK" + "IA" + "FAKEIOSFODNN7EXA",
    "github_token": TOKEN,
    "stripe_key": "sk_" + "live_" + "FakeZq7Rk2Lm9Xw4",
    "email": "alice.fake@example.com",
    "ip": "10.20.30.40",
    "card": "4242 4242 " + "4242 4242",
    "host": "db.internal",
}
PIECES = (
    "password", "token", "api_key", "secret", "cookie", "Authorization", "Bearer ", "Basic ", "=", ": ", '"', "'", "\\", "\\n", "\n", " ", ",", ";",
    "&", "%3D", "%", "://", "@", "a", "hunter2", "x.internal", "10.0.0.1", "fe80::1", "4242424242424242", TOKEN, "-----BEGIN " + "PRIVATE KEY-----",
    "-----END " + "PRIVATE KEY-----", "SELECT a FROM b", "[SQL: ", "/home/", "C:\\Users\\", "[REDACTED:token]", "[REDACTED:", "]", "é", "à", "Р", "\u00a0", "\u2003", "\x0b", "→", "**", " | ", "密码", "\x00",
    "\ud800", "cGFzc3dvcmQ9aHVudGVyMg==", "<", ">", "{", "}", "(", ")", "-p", "--", "alice@example.com", "File \"a\", line 1", "$2b$",
)  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
any_text = st.text(st.characters(), max_size=200) | hostile
SHAPES = (
    "a", "a.", "1.", "a@", "a@a.", "eyJ.", "eyJa.eyJ", "key=", "token:", "password ", 'password="', "\"'", "://", "http://a:", "https://a@",
    "-----BEGIN " + "PRIVATE KEY-----", "-", "1 2 3 4 ", "4242 4242 ", "10.0.0.", "fe80::", "\\", "\\u0041", "%41", " ", "\n", "at a.b(",
    "SELECT a FROM ", 'File "a', "AKIA", "sk-", "&quot;", "/home/", "<password>", "Cookie: a=b; ", "a-b_c/d+", "Bearer ", ".internal", "é", "$1$",
    "input_value=", "auth:", "----END " + "PRIVATE KEY", "--proxy-user1", "[REDACTED:token] ", "&#", "%", "\\ ", "GOOG", "eyJ", "/home/a",
    "password=sk-", "mnemonic:/api/webhooks/ ", "eyJ@a.internal:", "Bearer 10.0.0.1:5432@", "password=" + ",a" * 2000 + " ",
)  # fmt: skip


@pytest.mark.parametrize(("kind", "secret"), CLASSES.items())
def test_the_replacement_names_the_class_and_nothing_of_the_value(kind, secret):
    assert scrub(f"failed with {secret} twice") == f"failed with [REDACTED:{kind}] twice"


@given(any_text)
@settings(max_examples=400, deadline=None)
def test_any_text_is_scrubbed_without_a_fault_and_scrubbing_again_changes_nothing(text):
    once = PURE.scrub(text)

    assert PURE.scrub(once) == once


@given(any_text)
@settings(max_examples=400, deadline=None)
def test_both_engines_give_the_same_answer_for_any_text(text):
    assert WITH_RE2.scrub(text) == PURE.scrub(text)


@given(hostile, hostile)
@settings(max_examples=200, deadline=None)
def test_a_token_is_hidden_wherever_it_stands(before, after):
    assert TOKEN not in PURE.scrub(f"{before} {TOKEN} {after}")


def test_text_without_a_secret_is_the_same_text():
    text = "slot 10:00 is taken \x00 \ud800 é 予約 🎉"

    assert scrub(text) == text


def test_what_is_no_text_fails_closed_and_is_counted():
    before = faults()

    assert scrub(None) == UNSCRUBBABLE  # type: ignore[arg-type]
    assert faults() == before + 1


def test_the_empty_text_stays_empty():
    assert scrub("") == ""


@pytest.mark.parametrize("shape", SHAPES)
def test_two_megabytes_of_a_hostile_shape_come_back_and_stay_as_they_are(shape):
    """pytest's timeout is the bound here; benchmarks/redact.py measures."""
    shown = WITH_RE2.scrub((shape * (2_000_000 // len(shape) + 1))[:2_000_000])

    assert WITH_RE2.scrub(shown) == shown


def test_more_secrets_than_are_counted_hide_the_rest_of_the_text():
    text = "".join(f"password=hunter{number} " for number in range(MAX_HITS * 3))

    shown = scrub(text)

    assert "hunter" not in shown
    assert shown.endswith("[REDACTED:excess]")


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.kind)
def test_every_rule_compiles_in_both_engines_and_has_keywords(rule):
    long = View.of("." * 20_000)

    assert list(PythonEngine().compile(rule)(long, rule.keywords)) == []
    assert list(Re2Engine().compile(rule)(long, rule.keywords)) == []

    assert rule.keywords
    assert all(word.encode("latin-1") == word.encode("latin-1").lower() for word in rule.keywords)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.kind)
def test_no_keyword_comes_to_be_where_a_replacement_or_goes_where_an_odd_blank_stands(rule):
    """What the scan relies on: it asks once which keywords are in a text."""
    made = "[redacted:##]"
    begins = tuple(made[:size] for size in range(1, len(made)))
    ends = tuple(made[at:] for at in range(1, len(made)))

    for word in rule.keywords:
        assert word not in made
        assert not word.endswith(begins)
        assert not word.startswith(ends)
        assert with_plain_blanks(word) == word


@pytest.mark.parametrize(
    "rule", [rule for rule in all_rules() if rule.starts != ()], ids=lambda rule: rule.kind
)
def test_every_hit_of_a_rule_begins_with_one_of_its_words(rule):
    """What the scan of a short text relies on: it looks for hits nowhere else."""
    hits = st.from_regex(re.compile(rule.pattern, re.ASCII), fullmatch=True)

    @given(hits.filter(lambda hit: max(hit) < "\u0100"))
    @settings(max_examples=15, deadline=None, database=None)
    def begins(hit):
        low = hit.encode("latin-1").lower().decode("latin-1")

        assert low.startswith(rule.starts or rule.keywords)

    begins()


@pytest.mark.parametrize("name", ["home", "Users"])
def test_homes_within_homes_settle_and_hide_every_user(name):
    text = f"/{name}/alice" * 30

    assert scrub(text) == f"/{name}/[REDACTED:user]" * 30


def test_a_text_of_replacements_is_cut_and_stays_as_it_is():
    once = scrub("[REDACTED:token] " * 100_000)

    assert once.count("[REDACTED:") == MAX_MADE
    assert once.endswith(" [REDACTED:excess]")
    assert scrub(once) == once


# --- window, scrub, cut ---------------------------------------------------------------------------


def test_a_short_message_is_scrubbed_and_kept_whole():
    assert cap("password=hunter2 was wrong") == "password=[REDACTED:password] was wrong"


@pytest.mark.parametrize("size", [MAX_MESSAGE, 17, 1, 0])
def test_a_long_message_is_cut_to_the_limit(size):
    assert cap("ä" * 5_000_000, size) == "ä" * size


@pytest.mark.parametrize("offset", range(240, 300))
def test_a_cut_leaves_no_half_secret_and_no_half_replacement(offset):
    shown = cap("." * offset + " " + TOKEN + " tail")

    assert TOKEN[:6] not in shown
    assert len(shown) <= MAX_MESSAGE
    assert shown.lstrip(".") in (
        " ",
        " [REDACTED:github_token]",
        " [REDACTED:github_token] tail"[: MAX_MESSAGE - offset],
    )


@pytest.mark.parametrize("offset", range(4096 + 1024 - 60, 4096 + 1024 + 5, 7))
def test_a_secret_torn_by_the_window_is_dropped(offset):
    """The text before it is long enough to be kept up to the window's end, were nothing dropped."""
    text = "password=" + "y" * 900 + " " + "." * (offset - 910) + TOKEN + "." * 9000

    assert "p_Fake" not in cap(text, 4096)


# --- attributes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["password", "DB_PASSWORD", "userPassword", "pwd", "PGPASSWORD", "SSHPASS", "client_secret", "clientSecret", "x-api-key", "apiKey", "API_KEY",
     "AccountKey", "SharedAccessKey", "aws_secret_access_key", "refresh_token", "GITHUB_TOKEN", "authorization", "http.request.header.authorization",
     "Cookie", "set-cookie", "SECRET_KEY_BASE", "DB_PASSWORD_PROD", "private_key", "csrfmiddlewaretoken", "passWord", "пароль".encode().decode("latin-1")],
)  # fmt: skip
def test_a_key_that_names_a_secret_is_known(key):
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    ["max_tokens", "gen_ai.usage.input_tokens", "token_type", "token_count", "next_page_token", "password_min_length", "secret_name", "api_key_id",
     "primary_key", "public_key", "key", "code", "state", "session.id", "author", "bypass", "compass", "gen_ai.conversation.id", "service.name",
     "token_limit", "stop_token", "tokenizer", "passwordless", "credential_rotation", "keyboard", "toolfault.reason"],
)  # fmt: skip
def test_a_key_that_only_sounds_like_one_is_not(key):
    assert not is_secret_key(key)


def test_a_value_under_a_secret_key_is_hidden_whatever_it_looks_like():
    assert scrub_value("db.password", "plain") == "[REDACTED:password]"
    assert scrub_value("otp", 123456) == "[REDACTED:pin]"


def test_other_values_are_scrubbed_where_they_are_text():
    assert scrub_value("note", "mail alice@example.com") == "mail [REDACTED:email]"
    assert scrub_value("note", ["10.0.0.1", 7, None, True]) == ["[REDACTED:ip]", 7, None, True]
    assert scrub_value("raw", b"token=abc123def") == "token=[REDACTED:token]"
    assert scrub_value("n", 12.5) == 12.5


def test_mappings_are_scrubbed_in_keys_and_values():
    attributes = {"user alice@example.com": {"token": "abc", "deep": [{"pwd": "x"}]}, "ok": 1}

    assert scrub_attributes(attributes) == {
        "user [REDACTED:email]": {
            "token": "[REDACTED:token]",
            "deep": [{"pwd": "[REDACTED:password]"}],
        },
        "ok": 1,
    }


def test_a_value_nested_without_end_is_not_shown():
    endless: list[object] = []
    endless.append(endless)

    assert UNSCRUBBABLE in str(scrub_value("x", endless))


# --- stack traces ---------------------------------------------------------------------------------

STACK = (
    'Traceback (most recent call last):\n  File "/srv/app/tools.py", line 42, in book\n'
    '    connect("postgresql://app:hunter2@db.internal/x")\nConnectionError: refused by 10.0.0.5\n'
)


def test_a_stack_trace_keeps_its_frames_and_loses_its_secrets():
    shown = scrub_stack(STACK)

    assert '  File "/srv/app/tools.py", line 42, in book\n' in shown
    assert "hunter2" not in shown
    assert "10.0.0.5" not in shown


def test_a_source_line_that_puts_a_secret_together_loses_it():
    shown = scrub_stack(
        '  File "a.py", line 1, in f\n    raise KeyError("password=" + "not-a-real-one")\n'
    )

    assert "not-a-real-one" not in shown


def test_a_message_loses_its_frames_too():
    assert scrub(STACK) == (
        "Traceback (most recent call last):\n  [REDACTED:stack]\nConnectionError: refused by [REDACTED:ip]\n"
    )


def test_importing_the_module_loads_neither_the_rules_nor_re2():
    code = "import sys, toolfault.redact; print([m for m in ('re2', 'toolfault.redact.rules') if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "url",
    [
        "postgres%3A%2F%2Fadmin%3A{}%40db.internal",
        "postgres://admin:{}\\u0040db.internal",
        "admin:{}&#64;db.internal",
        "redis://:{}%2540db.internal",
    ],
)
@pytest.mark.parametrize("before", ["x " * 8200, "错误发生" * 1600 + " "])
def test_what_is_hidden_to_the_end_of_a_long_text_still_tells_what_stands_before(url, before):
    planted = "hunter2" + "Xq"
    assert planted not in scrub(before + url.format(planted))


def test_a_string_of_another_type_is_not_remembered_for_others():
    class Marked(str):
        pass

    assert type(scrub(Marked("nothing to hide here"))) is str
    assert type(scrub("nothing to hide here")) is str
