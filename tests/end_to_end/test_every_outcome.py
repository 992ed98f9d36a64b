"""An agent's process, real OTLP, the service, PostgreSQL, and back by the reference."""

import json
import subprocess
import sys

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.end_to_end.harness import environment, run_agent

from toolfault.conventions import UNDECLARED

#: tool: outcome, code, effect, attempts
EXPECTED = {
    "tool_ok": ("ok", None, "applied", 1),
    "tool_failed": ("failed", "UNAVAILABLE", "unknown", 1),
    "tool_crashed": ("failed", "INTERNAL", "unknown", 1),
    "tool_timed_out": ("timed_out", "UNAVAILABLE", "unknown", 1),
    "tool_declined": ("declined", "CONFLICT", "none", 1),
    "tool_invalid": ("invalid", "INVALID_ARGUMENT", "none", 1),
    "tool_flaky": ("ok", None, "applied", 2),
    "tool_cancelled": ("cancelled", None, "unknown", 1),
    "tool_refused": ("refused", "PERMISSION_DENIED", "none", 0),
    "tool_not_found": ("not_found", "NOT_FOUND", "none", 0),
}
QUIET = {"tool_ok", "tool_flaky", "tool_cancelled"}
LABELS = {"ok": "OK", "cancelled": "CANCELLED"}


@pytest.fixture(scope="module", params=["grpc", "http/protobuf"])
def story(request, service):
    """An agent over one protocol: its conversation, and each tool's outcome, effect, reference."""
    conversation = f"c-{request.param}"
    told = run_agent(
        "agent.py",
        conversation,
        OTEL_EXPORTER_OTLP_PROTOCOL=request.param,
        OTEL_EXPORTER_OTLP_ENDPOINT=service.grpc if request.param == "grpc" else service.http,
        OTEL_SERVICE_NAME=conversation,
    )
    return conversation, told


def test_every_outcome_is_one_row(story, service):
    conversation, told = story

    rows = service.calls(conversation)

    assert {tool: row[:4] for tool, row in rows.items()} == EXPECTED
    assert {tool: row[4] for tool, row in rows.items()} == {
        tool: reference for tool, (_, _, reference) in told.items()
    }
    assert {tool for tool, row in rows.items() if row[4] is None} == QUIET


@pytest.mark.parametrize("tool", sorted(set(EXPECTED) - QUIET))
def test_the_api_finds_a_call_by_its_reference(story, service, tool):
    conversation, told = story

    match = service.wait_for(told[tool][2])

    assert (match["tool"], match["conversation_id"]) == (tool, conversation)
    found = tuple(match[name] for name in ("outcome", "code", "effect", "attempts"))
    assert found == EXPECTED[tool]
    assert [match["outcome"], match["effect"]] == told[tool][:2]


def test_the_command_finds_a_call_in_a_pasted_sentence(story, service):
    reference = story[1]["tool_declined"][2]
    command = [
        sys.executable,
        "-m",
        "toolfault.cli",
        "lookup",
        "It said (ref",
        f"{reference.lower()}).",
    ]

    run = subprocess.run(
        [*command, "--json"],
        env=environment(TOOLFAULT_URL=service.web),
        capture_output=True,
        check=True,
    )

    (match,) = json.loads(run.stdout)["matches"]
    assert (match["reference"], match["tool"]) == (reference, "tool_declined")


def test_the_card_in_the_terminal_says_what_happened(story, service):
    reference = story[1]["tool_timed_out"][2]

    run = subprocess.run(
        [sys.executable, "-m", "toolfault.cli", "lookup", reference, "--url", service.web],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert reference in run.stdout
    assert "tool_timed_out" in run.stdout
    assert "timed_out  UNAVAILABLE" in run.stdout
    assert "-> check_before_retry" in run.stdout
    assert "It may have" in run.stdout


def test_the_page_of_a_reference_is_there(story, service):
    reference = story[1]["tool_crashed"][2]

    page = httpx.get(f"{service.web}/r/{reference}")

    assert page.status_code == 200
    assert reference in page.text


def test_every_call_is_counted_once(story, service):
    # Nobody declared the tools that never ran, and a name that a model made up is no label.
    assert service.counted(story[0]) == {
        (
            UNDECLARED if attempts == 0 else tool,
            outcome,
            LABELS.get(outcome, code),
        ): 1
        for tool, (outcome, code, _, attempts) in EXPECTED.items()
    }


def test_prometheus_sees_the_totals(story, service):
    samples = [
        sample
        for family in text_string_to_metric_families(httpx.get(f"{service.web}/metrics/tools").text)
        for sample in family.samples
        if sample.labels.get("service") == story[0]
    ]

    def calls(**labels):
        return sum(
            sample.value
            for sample in samples
            if sample.name == "toolfault_tool_calls_total"
            and labels.items() <= sample.labels.items()
        )

    assert calls() == 10
    assert calls(tool="tool_crashed", outcome="failed", code="INTERNAL") == 1
    assert calls(tool="tool_flaky", outcome="ok", code="OK") == 1
    # Declared pairs are there before their first error.
    assert ("tool_ok", "failed", "INTERNAL", 0.0) in {
        (
            sample.labels.get("tool"),
            sample.labels.get("outcome"),
            sample.labels.get("code"),
            sample.value,
        )
        for sample in samples
    }
