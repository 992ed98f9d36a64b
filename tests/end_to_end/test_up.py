"""`toolfault up` without a database of one's own."""

import os
import signal

import httpx
import pytest
from tests.end_to_end.harness import run_agent, running


def test_a_second_start_finds_what_the_first_one_stored_and_nothing_is_left_running(tmp_path):
    with running("--data-dir", tmp_path, ended_by=signal.SIGINT) as first:
        told = run_agent("agent.py", "c-restart", OTEL_EXPORTER_OTLP_ENDPOINT=first["http"])
        assert httpx.get(f"{first['web']}/readyz").json() == {"status": "ready"}

    with running("--data-dir", tmp_path, ended_by=signal.SIGTERM) as second:
        found = httpx.get(f"{second['web']}/api/v1/references/{told['tool_declined'][2]}").json()
        database = int((tmp_path / "postgres" / "postmaster.pid").read_text().split()[0])
        os.kill(database, 0)

    assert [match["tool"] for match in found["matches"]] == ["tool_declined"]
    with pytest.raises(ProcessLookupError):
        os.kill(database, 0)
