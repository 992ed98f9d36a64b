"""From an agent that could not finish to its replay, through a real service."""

import json
import signal
import sqlite3
import subprocess
import sys
import time

import httpx
import pytest
from tests.end_to_end.harness import HERE, environment

from toolfault.cli import app as commands


@pytest.fixture
def job(service, tmp_path):
    """Runs the agent's job; gives its exit code, what it printed and what it logged."""
    settings = environment(
        OTEL_EXPORTER_OTLP_ENDPOINT=service.http,
        TOOLFAULT_URL=service.web,
        ACCOUNT=str(tmp_path / "account.db"),
    )

    def run(*arguments):
        command = [sys.executable, str(HERE / "letters.py"), *arguments]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr

    return run


@pytest.fixture
def account(tmp_path):
    def rows(what):
        with sqlite3.connect(tmp_path / "account.db") as book:
            return book.execute(what).fetchall()

    return rows


def waiting(service, count):
    """The letters that wait, as soon as there are as many."""
    deadline = time.monotonic() + 30
    while True:
        url = f"{service.web}/api/v1/dead-letters"
        items = httpx.get(url, params={"service": "refund-agent"}).json()["items"]
        if len(items) == count or time.monotonic() > deadline:
            assert len(items) == count
            return items
        time.sleep(0.05)


def test_a_replay_that_is_killed_between_effect_and_acknowledgement_refunds_once(
    service, job, account
):
    job("record", "A-1", "A-2")
    waiting(service, 2)

    code, _, _ = job("killed")
    assert code == -signal.SIGKILL
    assert account("SELECT order_id FROM refund") == [("A-1",)]  # oldest first
    waiting(service, 2)

    assert job("replay")[:2] == (0, {"done": 2, "failed": 0, "skipped": 0})
    assert account("SELECT order_id FROM refund ORDER BY 1") == [("A-1",), ("A-2",)]
    keys = [key for (key,) in account("SELECT key FROM asked")]
    assert keys[0] == keys[1] != keys[2]
    waiting(service, 0)
    assert job("replay")[1] == {"done": 0, "failed": 0, "skipped": 0}


def test_what_a_handler_raises_leaves_the_letter_waiting_and_is_logged(
    service, job, account, capsys, monkeypatch
):
    job("record", "A-bad", "A-3")
    waiting(service, 2)

    _, done, log = job("replay")

    assert done == {"done": 1, "failed": 1, "skipped": 0}
    assert "it goes on waiting" in log
    assert "a bug of the handler" in log
    (left,) = waiting(service, 1)

    def toolfault(*arguments):
        monkeypatch.setattr(sys, "argv", ["toolfault", *arguments, "--url", service.web])
        with pytest.raises(SystemExit) as ended:
            commands.run()
        return ended.value.code or 0, capsys.readouterr().out

    assert left["id"] in toolfault("dead-letters", "list", "--json")[1]
    shown = json.loads(toolfault("dead-letters", "show", left["id"], "--json")[1])
    assert (shown["payload"], shown["run_id"]) == ({"order_id": "A-bad"}, "run-of-A-bad")
    assert "A-bad" in toolfault("dead-letters", "show", left["id"])[1]
    assert toolfault("dead-letters", "ack", left["id"]) == (0, f"Acknowledged: {left['id']}.\n")
    waiting(service, 0)
