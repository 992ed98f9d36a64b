"""A service in a process of its own, agents in theirs, and what they say to each other."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import psycopg

from toolfault.store import schema
from toolfault.store.queries.base import open_engine
from toolfault.store.tokens import create_token

HERE = Path(__file__).parent
_WITHIN = 30.0  # s, until telemetry has arrived


def environment(**more):
    """This process's environment without any telemetry or toolfault setting, and `more`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "TOOLFAULT_"))}
    return kept | more


def new_database(server, name):
    """The address of an empty database of that name, with this version's tables."""
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {name}")
    url = f"{server.rpartition('/')[0]}/{name}"
    schema.upgrade(url)
    return url


def new_tokens(url, *roles):
    """Of each role the secret of a new token."""
    engine = open_engine(url)
    made = {role: create_token(engine, role, [role])[1] for role in roles}
    engine.dispose()
    return made


@contextmanager
def running(*arguments, ended_by=signal.SIGTERM, **settings):
    """`toolfault up` on free ports; gives its addresses, ends it by a signal and expects 0."""
    command = [sys.executable, "-m", "toolfault.cli", "up", "--json", "--grpc-port", "0"]
    command += ["--http-port", "0", "--web-port", "0", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment(**settings)
    ) as process:
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(ended_by)
            code = process.wait(30)
    assert code == 0


class Service(NamedTuple):
    """A running service and the database behind it."""

    database_url: str
    grpc: str
    http: str
    web: str

    def look_up(self, reference):
        return httpx.get(f"{self.web}/api/v1/references/{reference}").json()

    def wait_for(self, reference):
        """The only call of a reference, as soon as it is here."""
        deadline = time.monotonic() + _WITHIN
        while not (matches := self.look_up(reference)["matches"]) and time.monotonic() < deadline:
            time.sleep(0.05)
        (match,) = matches
        return match

    def calls(self, conversation):
        """Rows by tool."""
        with psycopg.connect(self.database_url) as conn:
            rows = conn.execute(
                "SELECT tool, outcome, code, effect, attempts, reference_id, possibly_twice "
                "FROM tool_call_all WHERE conversation_id = %s",
                [conversation],
            ).fetchall()
        assert len({row[0] for row in rows}) == len(rows)
        return {row[0]: row[1:] for row in rows}

    def counted(self, service):
        """The totals of one service: (tool, outcome, code) to calls."""
        with psycopg.connect(self.database_url) as conn:
            rows = conn.execute(
                "SELECT tool, outcome, code, sum(calls)::int FROM call_total WHERE service = %s "
                "GROUP BY tool, outcome, code HAVING sum(calls) > 0",
                [service],
            ).fetchall()
        return {tuple(row[:3]): row[3] for row in rows}

    def send(self, export):
        answer = httpx.post(
            self.http + export.path, content=export.body, headers={"Content-Type": export.type}
        )
        assert answer.status_code == 200, answer.text


def run_agent(script, *arguments, **settings):
    """What an agent's process printed."""
    run = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env=environment(**settings), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not run.stderr
    return json.loads(run.stdout)


class Export(NamedTuple):
    """One OTLP request as an agent sent it."""

    path: str
    type: str
    body: bytes
