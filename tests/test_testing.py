"""The testing kit for users: what was reported, and what is wrong with an answer."""

import threading

import pytest

from toolfault import ToolFailure, ToolRefusal, guard
from toolfault.testing import assert_envelope, capture_tool_errors

RIGHT = {
    "code": "INTERNAL",
    "message": "The tool failed unexpectedly. (ref 938N-KRKA-S18P)",
    "action": "stop_and_tell_user",
    "retryable": False,
    "ref": "938N-KRKA-S18P",
}


def failing(**wrong):
    return {"status": "error", "error": RIGHT | wrong}


@guard("pay")
def pay(error=None):
    if error is not None:
        raise error


def test_answers_of_a_guard_pass():
    assert_envelope(failing(), status="error", code="INTERNAL", ref="938N-KRKA-S18P")
    assert_envelope(pay(), status="ok")
    assert_envelope(pay(ToolRefusal("pay", "too_late", "Too late.")), status="declined")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("done", "an envelope is a dict, not str"),
        ({}, "status is None, not ok, error or declined"),
        ({"status": ["ok"]}, r"status is \['ok'\], not ok, error or declined"),
        ({"status": "ok"}, "status is 'ok' and there is no output"),
        ({"status": "error"}, "status is 'error' and `error` is None, not a dict"),
        (failing(code="TEAPOT"), "code 'TEAPOT' is not in the closed set"),
        (failing(code=["INTERNAL"]), r"code \['INTERNAL'\] is not in the closed set"),
        (failing(action="none"), "action 'none' is not in the closed set"),
        (failing(action=[]), r"action \[\] is not in the closed set"),
        (failing(message=""), "message is '', not text for the model"),
        (failing(message="x" * 301), "message has 301 characters, at most 300"),
        (failing(retryable=True), "retryable is True, with action 'stop_and_tell_user' it is Fals"),
        (failing(ref=None), "the message does not say the reference, None"),
    ],
)
def test_an_answer_that_breaks_the_contract_is_told_what_is_wrong(answer, told):
    with pytest.raises(AssertionError, match=told):
        assert_envelope(answer)


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ({"status": "ok"}, "status is 'error', expected 'ok'"),
        ({"code": "CONFLICT"}, "code is 'INTERNAL', expected 'CONFLICT'"),
        ({"action": "retry_later"}, "action is 'stop_and_tell_user', expected 'retry_later'"),
        ({"field": "date"}, "field is None, expected 'date'"),
    ],
)
def test_an_answer_that_is_not_the_expected_one_is_told_beside_it(expected, told):
    with pytest.raises(AssertionError, match=told):
        assert_envelope(failing(), **expected)


def test_a_success_is_not_taken_for_the_expected_error():
    with pytest.raises(AssertionError, match="status is 'ok', not an error"):
        assert_envelope({"status": "ok", "output": None}, code="INTERNAL")


def test_every_call_that_ends_inside_is_captured_also_in_threads():
    with capture_tool_errors() as reported:
        pay()
        thread = threading.Thread(target=pay, args=(KeyError(),))
        thread.start()
        thread.join()
    pay(KeyError())

    assert [call.outcome for call in reported.calls] == ["ok", "failed"]
    assert reported.only().reason == "unmapped_failure"


def test_more_or_fewer_errors_than_one_are_listed():
    with capture_tool_errors() as reported:
        with pytest.raises(AssertionError, match="expected one tool error, reported: none"):
            reported.only()
        pay(KeyError())
        pay(ToolFailure("pay", "bank_down", transient=True))

    with pytest.raises(AssertionError) as raised:
        reported.only()
    assert str(raised.value) == (
        "expected one tool error, reported: pay failed unmapped_failure, pay failed bank_down"
    )
