"""From "the user pasted this sentence" to the answer: seconds for each state, page and command.

    python benchmarks/answers.py

The page is timed in a browser, from Enter to the words for the user on the screen; the command
from its start to its end, process included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.conftest import OPTIONS
from tests.browser.site import afternoon

from toolfault.store import partitions, schema
from toolfault.store.embedded import EmbeddedPostgres

STATES = ("failed", "mistyped", "pending", "not_received", "expired", "unknown")
TIMES = 3


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="answers-") as folder,
        EmbeddedPostgres(Path(folder)) as url,
    ):
        schema.upgrade(url)
        with psycopg.connect(url) as conn:
            partitions.maintain(conn, datetime.now(UTC))
        with afternoon(url) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=OPTIONS)
            page = browser.new_page()
            for state in STATES:
                asked = getattr(site, state, "a1b2c3d4")
                sentence = f"it said (ref {asked}), can you help?"
                print(f"{state:14} page {median(by_page, page, site.url, sentence):.1f} s   "
                      f"command {median(by_command, site.url, sentence):.1f} s", flush=True)  # fmt: skip


def median(measure, *arguments) -> float:
    return statistics.median(measure(*arguments) for _ in range(TIMES))


def by_page(page, url: str, sentence: str) -> float:
    page.goto(url)
    page.get_by_label("Look up a reference").fill(sentence)
    began = time.perf_counter()
    page.keyboard.press("Enter")
    page.locator("#tell-1").wait_for()
    took = time.perf_counter() - began
    page.wait_for_load_state()
    return took


def by_command(url: str, sentence: str) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "toolfault.cli", "lookup", sentence, "--url", url]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
