"""What the hooks of all frameworks share about model calls: who counts, and how often."""

import pytest

import toolfault
from toolfault import conventions as c
from toolfault import retry_model_call
from toolfault.hooks.models import ModelCalls


class OverloadedError(Exception):
    status_code = 529


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)


@pytest.fixture
def calls():
    return ModelCalls()


def told(exported):
    keys = (c.REQUEST_MODEL, c.COUNT, c.RESULT)
    return [tuple(e.attributes.get(key) for key in keys) for e in exported.named(c.MODEL_CALL)]


def ask(*answers):
    left = list(answers)

    def asked():
        if isinstance(answer := left.pop(0), Exception):
            raise answer
        return answer

    return retry_model_call(asked, model="mine", max_attempts=2)


def test_a_call_that_fails_and_is_asked_again_is_one(exported, calls):
    with toolfault.run() as run:
        calls.asks("key", "small", None)
        calls.failed("key", OverloadedError())
        calls.asks("key", "large", None)
        calls.answered("key")
        calls.over("key")

    assert told(exported) == [("large", 2, "ok")]
    assert (run.model_calls, run.model_attempts) == (1, 2)


def test_what_neither_answered_nor_failed_was_cancelled_and_what_nobody_asked_is_no_call(
    exported, calls
):
    calls.asks("cancelled", "small", None)
    calls.over("cancelled")
    calls.asks("answered elsewhere", "small", None)
    calls.dropped("answered elsewhere")

    assert told(exported) == [("small", 1, None)]


def test_a_framework_that_repeats_what_the_application_repeats_has_two_calls(exported, calls):
    with toolfault.run() as run:
        calls.asks("key", "small", None)
        with pytest.raises(OverloadedError) as failed:
            ask(OverloadedError(), OverloadedError())
        calls.failed("key", failed.value)
        calls.asks("key", "small", None)
        ask("hello")
        calls.repeated("key", 1)
        calls.answered("key")

    assert told(exported) == [("mine", 2, "exhausted"), ("mine", 1, "ok")]
    assert (run.model_calls, run.model_attempts) == (2, 3)


def test_a_call_after_the_frameworks_is_the_applications_own(exported, calls):
    with toolfault.run() as run:
        calls.asks("key", "small", None)
        calls.failed("key", OverloadedError())
        ask("hello")
        calls.over("key")

    assert told(exported) == [("mine", 1, "ok"), ("small", 1, "exhausted")]
    assert (run.model_calls, run.model_attempts) == (2, 2)


def test_a_name_that_is_none_is_unknown(exported, calls):
    calls.asks("key", None, None)
    calls.answered("key")

    assert told(exported) == [("unknown", 1, "ok")]


def test_a_fault_of_the_hook_stays_its_own(monkeypatch, exported, calls):
    monkeypatch.setattr("toolfault.hooks.models.ModelCall", None)
    calls.asks("key", "small", None)
    calls.answered("key")

    assert told(exported) == []
