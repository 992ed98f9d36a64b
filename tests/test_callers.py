"""What the caller of a run does about the error it ended with; the table is worked out by hand."""

import asyncio

import pytest

import toolfault
from toolfault import (
    RunLimitExceededError,
    ToolArgumentValidationError,
    ToolFailure,
    ToolNotFoundError,
    ToolNotPermittedError,
    ToolRefusal,
    ToolResultError,
    ToolTimedOutError,
    guard,
)
from toolfault.callers import classify


class ProviderError(Exception):
    def __init__(self, status):
        super().__init__("at com.supplier.Db")
        self.status_code = status


def of_tool(**details):
    return ToolFailure("t", "why", **details)


TABLE = [
    # A tool's error that nobody turned into data.
    (of_tool(transient=True), "retry_later"),
    (of_tool(transient=True, code="RATE_LIMITED"), "retry_later"),
    (of_tool(code="UNAVAILABLE"), "retry_later"),
    (ToolTimedOutError("t"), "retry_later"),
    (of_tool(code="UNAVAILABLE", effect="none"), "report"),  # a certificate, no such database
    (of_tool(code="RATE_LIMITED"), "report"),  # a quota that is spent
    (of_tool(code="PERMISSION_DENIED"), "report"),
    (of_tool(code="INTERNAL"), "report"),
    (ToolResultError("t"), "report"),
    (ToolNotFoundError("t"), "report"),
    (of_tool(code="NOT_FOUND"), "give_up"),
    (of_tool(code="CONFLICT"), "give_up"),
    (of_tool(code="INVALID_ARGUMENT"), "give_up"),
    (ToolRefusal("t", "too_late", "Too late."), "give_up"),
    (ToolNotPermittedError("t"), "give_up"),
    (ToolArgumentValidationError("t"), "give_up"),
    # The model's provider, or the agent itself.
    (ProviderError(529), "retry_later"),
    (ProviderError(429), "retry_later"),
    (ProviderError(502), "retry_later"),
    (ProviderError(400), "report"),
    (ProviderError(401), "report"),
    (TimeoutError(), "retry_later"),
    (ConnectionResetError(), "retry_later"),
    (KeyError("choices"), "report"),
    (RunLimitExceededError(12, "r-1"), "report"),
    (ExceptionGroup("two", [RunLimitExceededError(12, "r-1"), ProviderError(529)]), "report"),
    (ExceptionGroup("two", [ProviderError(503), KeyError("a bug")]), "report"),
]


@pytest.mark.parametrize(("error", "action"), TABLE, ids=lambda value: repr(value)[:60])
def test_what_the_caller_does(error, action):
    assert classify(error).action == action


def test_a_cause_is_looked_at():
    error = RuntimeError("wrapped by a framework")
    error.__cause__ = RunLimitExceededError(12, "r-1")

    assert classify(error).reason == "run_limit_exceeded"
    error.__cause__ = ProviderError(503)
    assert classify(error).action == "retry_later"


def test_a_cancellation_is_nobodys_to_classify():
    with pytest.raises(asyncio.CancelledError):
        classify(asyncio.CancelledError())


def test_the_user_hears_what_ran_and_nothing_of_the_exception():
    @guard("refund_order")
    def refund_order():
        return {}

    with toolfault.run() as run:
        refund_order()
    verdict = classify(ProviderError(529), run=run, words={"refund_order": "the refund"})

    assert verdict.message == (
        "This is not possible at the moment. Your request was not completed. "
        "Already done: the refund. Please do not ask for it again."
    )
    stuck = classify(RunLimitExceededError(12, "r-1"), run=run)
    assert stuck.message.startswith("I got stuck on this request.")


def test_the_reference_of_a_tools_error_comes_along():
    @guard("t", on_error="raise")
    def tool():
        raise KeyError("a bug")

    with toolfault.run() as run, pytest.raises(ToolFailure) as raised:
        tool()

    verdict = classify(raised.value)
    assert verdict.reference_id == run.calls[0].reference_id
    assert (verdict.code, verdict.reason) == ("INTERNAL", "unmapped_failure")
    assert raised.value.answer["error"]["ref"] == verdict.reference_id
