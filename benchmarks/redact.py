"""Redaction: time per message and per 2 MB, pure Python and RE2, against doing nothing and one plain regex.

    python benchmarks/redact.py [--json]

`scrub()` remembers its latest short results; here every call does the whole work.

Beside three messages of 300 characters stand those of the tests, seen once each.
A message of 300 characters: <= 500 us p50 pure, <= 100 us with RE2. 2 MB with RE2: <= 50 ms, hostile shapes
included. Times are processor time of the thread; every figure is also a ratio to one compiled regex in the same run, which is
what a busy or slow machine leaves comparable.
"""

from __future__ import annotations

import importlib
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from toolfault.redact import cap
from toolfault.redact.engines import PythonEngine, Re2Engine
from toolfault.redact.scrubber import Scrubber

SIZE = 2_000_000
BASELINE = re.compile(r"(?i)(?:password|secret|token|api[_-]?key)[\"']?\s*[=:]\s*[\"']?[^\s\"'&]+")

MESSAGES = {
    "nothing to hide": (
        "psycopg.errors.UniqueViolation: duplicate key value violates unique constraint \"booking_slot_room_key\"; the "
        "calendar answered HTTP 409 for room 12 on 2026-10-06 at 10:00 (attempt 2 of 3, request "
        "550e8400-e29b-41d4-a716-446655440000, trace 4bf92f3577b34da6a3ce929d0e0e4736); choose another slot or another room"
    )[:300],
    "psycopg, host and address": (
        "connection to server at \"pg-main.internal\" (10.20.30.40), port 5432 failed: FATAL: password authentication "
        "failed for user \"booking\"; connection to server at \"pg-main.internal\" (10.20.30.41), port 5432 failed: FATAL: "
        "no pg_hba.conf entry for host, database \"booking\", SSL off; attempt 3 of 3 after 4.5 s"
    )[:300],
    "httpx, token and e-mail": (
        "httpx.HTTPStatusError: Client error '401 Unauthorized' for url 'https://api.example.com/v1/users?email="
        "alice@example.com&access_token=f4keTok99f4keTok99' with headers {'Authorization': 'Bearer f4ke.Tok99.f4ke', "
        "'Accept': 'application/json'}; for more information check https://example.com/status/401"
    )[:300],
}  # fmt: skip

#: repeated to 2 MB: each makes some pattern or other of a naive rule set quadratic or worse
SHAPES = (
    "a", "a.", "1.", "a@", "a@a.", "eyJ.", "eyJa.eyJ", "key=", "token:", "password ", "password=\"", "\"'", "://", "http://a:", "https://a@",
    "-----BEGIN PRIVATE KEY-----", "-", "1 2 3 4 ", "4242 4242 ", "10.0.0.", "fe80::", "fd00:", "\\", "\\u0041", "%41", " ", "\n",
    "input_value=", "auth:", "----END PRIVATE KEY", "--proxy-user1", "[REDACTED:token] ", "&#", "%", "\\ ", "tskey-", "pass:", "GOOG", "eyJ",
    "password=sk-", "eyJ@a.internal:", "Bearer 10.0.0.1:5432@", "at a.b(", "SELECT a FROM ", "File \"a", "AKIA", "sk-", "ghp_", "&quot;", "/home/", "<password>", "Cookie: a=b; ", "a-b_c/d+", "Bearer ",
    ".internal", "xn--é", "$1$", "host=", "{\"password\":{", "/home/a", "a\u00a0", "password=" + ",a" * 2000 + " ",
)  # fmt: skip


def p(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def per_call(work: Callable[[str], object], text: str, rounds: int) -> tuple[float, float]:
    """p50 and p99 in seconds of this thread's processor time: a neighbour's load does not count."""
    work(text)
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        work(text)
        times.append(time.thread_time() - began)
    return statistics.median(times), p(times, 0.99)


def messages(scrubbers: dict[str, Callable[[str], object]]) -> list[dict[str, object]]:
    rows = []
    for name, text in MESSAGES.items():
        base, _ = per_call(lambda t: BASELINE.sub("[REDACTED]", t), text, 2000)
        for engine, scrub in scrubbers.items():
            p50, p99 = per_call(scrub, text, 2000)
            rows.append(
                {
                    "case": f"{len(text)} c, {name}",
                    "engine": engine,
                    "p50_us": p50 * 1e6,
                    "p99_us": p99 * 1e6,
                    "ratio": p50 / base,
                }
            )
    return rows


def corpus(scrubbers: dict[str, Callable[[str], object]]) -> list[dict[str, object]]:
    """All messages of the tests, each new to the scan when it is measured: p50 and p99 over the messages."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    messages = importlib.import_module("test_redact_corpus")
    secrets = [text for _, text, _ in messages.SECRETS]
    secrets += [text for text, _ in (*messages.HELD_OUT, *messages.ENCODED)]
    rows = []
    for name, texts in (("secrets", secrets), ("benign", messages.BENIGN)):
        base = [per_call(lambda t: BASELINE.sub("[REDACTED]", t), text, 3)[0] for text in texts]
        for engine, scrub in scrubbers.items():
            times = []
            for text in texts:
                began = time.thread_time()
                scrub(text)
                times.append(time.thread_time() - began)
            rows.append(
                {
                    "case": f"{len(texts)} {name}, {statistics.median(map(len, texts)):.0f} c at p50",
                    "engine": engine,
                    "p50_us": statistics.median(times) * 1e6,
                    "p99_us": p(times, 0.99) * 1e6,
                    "ratio": statistics.median(times) / statistics.median(base),
                }
            )
    return rows


def sizes(scrubbers: dict[str, Callable[[str], object]], size: int) -> list[dict[str, object]]:
    page = "<html><body class='error'><p>The upstream service failed with status 502 Bad Gateway. Retry later.</p></body></html>\n"
    rows = []
    for shape in (page, *SHAPES):
        text = (shape * (size // len(shape) + 1)).encode()[:size].decode(errors="ignore")
        base, _ = per_call(lambda t: BASELINE.sub("[REDACTED]", t), text, 1)
        for engine, scrub in scrubbers.items():
            p50, _ = per_call(scrub, text, 3)
            rows.append(
                {
                    "case": f"{size // 1000} kB of {shape[:24]!r}",
                    "engine": engine,
                    "p50_us": p50 * 1e6,
                    "p99_us": 0.0,
                    "ratio": p50 / base,
                }
            )
    return rows


def main() -> None:
    re2, pure = Scrubber(Re2Engine()).scrub, Scrubber(PythonEngine()).scrub
    both = {"str": str, "re2": re2, "python": pure}
    rows = (
        messages(both)
        + corpus(both)
        + sizes({"re2": re2}, SIZE)
        + sizes({"python": pure}, 100_000)
        + sizes({"cap": cap}, SIZE)[:1]
    )
    if "--json" in sys.argv:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'case':48} {'engine':8} {'p50 us':>12} {'p99 us':>10} {'x regex':>9}")
    for row in rows:
        print(
            f"{row['case']:48} {row['engine']:8} {row['p50_us']:12.1f} {row['p99_us']:10.1f} {row['ratio']:9.2f}"
        )
    for engine in ("re2", "python"):
        worst = max(
            (r for r in rows if r["engine"] == engine and "kB" in str(r["case"])),
            key=lambda r: float(str(r["p50_us"])),
        )
        print(
            f"slowest shape with {engine}: {worst['case']}: {float(str(worst['p50_us'])) / 1e3:.1f} ms"
        )


if __name__ == "__main__":
    main()
