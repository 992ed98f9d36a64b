"""The worked example of an outage of the provider: overload, a refund mid-flight, no loop."""

import importlib.util
import re
import time
from pathlib import Path

import pytest

from toolfault import conventions
from toolfault.contract import assert_stopped_at_budget
from toolfault.testing import capture_tool_errors


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)
    path = Path(__file__).parent.parent / "examples" / "provider_outage.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_user_hears_what_is_true(example):
    told = {name: re.sub(r"ref [^)]*", "ref R", text) for name, text in example.main().items()}

    assert told == {
        "a look, repeated once": "Your order comes to 12.5.",
        "a refund, then the outage": "I could not reach the assistant service just now. Your "
        "request was not completed. Already done: the refund. Please do not ask for it again.",
        "a slow order": "The order service is slow, please ask again later (ref R).",
        "an outage from the start": "This is not possible at the moment. Your request was not "
        "completed, and there is no record of any change. Please try again later.",
        "a refund": "The order is refunded.",
        "another refund": "The order is refunded.",
        "a look": "Your order comes to 12.5.",
    }
    assert sorted(example.REFUNDS.values()) == ["A-2", "A-4", "A-5"]


def test_forty_percent_of_the_requests_fail_and_no_run_loops(example, exported):
    example.main()

    calls = exported.named(conventions.MODEL_CALL)
    assert len(calls) == 17  # steps
    assert sum(call.attributes["toolfault.count"] for call in calls) == 25  # requests
    results = [call.attributes["toolfault.result"] for call in calls]
    assert (results.count("ok"), results.count("exhausted")) == (15, 2)
    assert len(exported.named(conventions.MODEL_RETRY)) == 8
    assert len(exported.named(conventions.MODEL_ERROR)) == 2
    assert exported.named(conventions.RUN_LIMIT_EXCEEDED) == []
    (letter,) = exported.named(conventions.DEAD_LETTER)
    assert letter.attributes["toolfault.payload"] == '{"conversation": "an outage from the start"}'
    assert "com.provider" not in exported.everything()


def test_the_model_stops_at_the_budget_of_the_slow_tool(example):
    with capture_tool_errors() as reported:
        example.main()

    slow = [call for call in reported.calls if call.conversation_id == "a slow order"]
    assert [(call.outcome, call.action) for call in slow] == [
        ("timed_out", "retry_later"),
        ("timed_out", "stop_and_tell_user"),
    ]
    assert_stopped_at_budget(slow)
