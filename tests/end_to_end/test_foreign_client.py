"""An SDK that is not ours, without the library: it sends chunked bodies without a length."""

import subprocess

import pytest
from tests.end_to_end.harness import HERE, environment

from toolfault import reference


@pytest.fixture(scope="module", params=["proto", "http"], ids=["protobuf", "json"])
def sent(request, service):
    """The service name and the reference the JavaScript agent has sent in this encoding."""
    name, made = f"javascript-{request.param}", reference.new()
    subprocess.run(
        ["node", str(HERE / "foreign_agent.mjs"), service.http, request.param, name, made],
        env=environment(), check=True,
    )  # fmt: skip
    return name, made


def test_a_failed_call_of_a_foreign_sdk_is_found_by_its_reference(sent, service):
    name, made = sent

    match = service.wait_for(made)

    assert (match["service"], match["environment"], match["tool"]) == (name, "test", "book_meeting")
    assert (match["outcome"], match["code"], match["reason"]) == (
        "failed",
        "UNAVAILABLE",
        "upstream_gone",
    )
    assert (match["attempts"], match["effect"]) == (2, "unknown")


def test_its_log_record_stands_on_the_card(sent, service):
    match = service.wait_for(sent[1])

    assert [line["body"] for line in match["log_lines"]] == ["the calendar did not answer"]


def test_each_of_its_calls_is_stored_and_counted_once(sent, service):
    name, made = sent

    rows = service.calls(f"c-{name}")

    assert {tool: row[:2] for tool, row in rows.items()} == {
        "book_meeting": ("failed", "UNAVAILABLE"),
        # By the conventions alone, from the name of its exception.
        "list_slots": ("timed_out", "UNAVAILABLE"),
    }
    assert rows["book_meeting"][4] == made
    assert sum(service.counted(name).values()) == 2
