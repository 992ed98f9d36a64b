"""One booking script through every framework ends in the same rows and the same totals.

The environments are those of `make test-hooks`.
"""

import subprocess
from pathlib import Path

import psycopg
import pytest
from tests.end_to_end.harness import environment

from toolfault.conventions import MODEL_ATTEMPTS, MODEL_CALLS, UNDECLARED

ROOT = Path(__file__).parents[2]
AGENTS = {
    "adk": "adk_agent.py",
    "fastmcp": "fastmcp_server.py",
    "langchain": "langchain_agent.py",
    "mcp": "mcp_server.py",
    "openai_agents": "openai_agent.py",
    "pydantic_ai": "pydantic_ai_agent.py",
    "strands": "strands_agent.py",
}
ROWS = [
    ("book_meeting", "declined", "CONFLICT", "slot_taken", "none", 1),
    ("book_meeting", "failed", "UNAVAILABLE", "upstream_unavailable", "none", 1),
    ("book_meeting", "invalid", "INVALID_ARGUMENT", "invalid_arguments", "none", 0),
    ("book_meeting", "ok", None, None, "applied", 1),
    ("cancel_meeting", "failed", "INTERNAL", "unmapped_failure", "unknown", 1),
    ("list_slots", "ok", None, None, "none", 1),
    ("reschedule_meeting", "not_found", "NOT_FOUND", "unknown_tool", "none", 0),
]
TOTALS = {
    ("book_meeting", "declined", "CONFLICT"): 1,
    ("book_meeting", "failed", "UNAVAILABLE"): 1,
    ("book_meeting", "invalid", "INVALID_ARGUMENT"): 1,
    ("book_meeting", "ok", "OK"): 1,
    ("cancel_meeting", "failed", "INTERNAL"): 1,
    ("list_slots", "ok", "OK"): 1,
    (UNDECLARED, "not_found", "NOT_FOUND"): 1,
}
#: What has a model, and its name there. It is asked for each of the seven calls and a last word.
MODELS = {
    "adk": "stub",
    "langchain": "Stub",
    "openai_agents": "ScriptedModel",
    "pydantic_ai": "function:stub:",
    "strands": "Stub",
}


@pytest.mark.parametrize("framework", AGENTS)
def test_the_booking_script_ends_in_the_same_rows_and_totals(service, framework):
    name = f"desk-{framework}"
    subprocess.run(
        [ROOT / ".venvs" / framework / "bin" / "python", ROOT / "examples" / "hooks" / AGENTS[framework]],
        env=environment(OTEL_EXPORTER_OTLP_ENDPOINT=service.http, OTEL_SERVICE_NAME=name),
        check=True, capture_output=True, timeout=90,
    )  # fmt: skip
    with psycopg.connect(service.database_url) as conn:
        rows = conn.execute(
            "SELECT tool, outcome, code, reason, effect, attempts FROM tool_call_all "
            "WHERE service = %s ORDER BY tool, outcome",
            [name],
        ).fetchall()
        models = conn.execute(
            "SELECT metric, label, sum(amount)::int FROM event_total "
            "WHERE service = %s AND metric LIKE 'toolfault_model%%' AND amount > 0 GROUP BY 1, 2",
            [name],
        ).fetchall()
    assert rows == ROWS
    assert service.counted(name) == TOTALS
    asked = (MODEL_ATTEMPTS, MODEL_CALLS) if framework in MODELS else ()
    assert sorted(models) == [(metric, MODELS[framework], 8) for metric in asked]
