"""What the model reads, word for word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault import (
    ToolArgumentValidationError,
    ToolFailure,
    ToolNotFoundError,
    ToolTimedOutError,
    envelope,
    instructions,
)
from toolfault.redact import scrub
from toolfault.taxonomy import Action, Code

REF = "938N-KRKA-S18P"


@pytest.mark.parametrize("output", [None, [], {}, 0, False, "", "text", {"a": [1, None]}])
def test_a_success_keeps_any_json_value(output):
    assert json.loads(json.dumps(envelope.success(output))) == {"status": "ok", "output": output}


def test_an_error_has_only_the_keys_it_has_values_for():
    told = envelope.error(
        Code.INVALID_ARGUMENT, "date is a day.", Action.FIX_ARGUMENTS, field="date"
    )
    assert told == {
        "status": "error",
        "error": {
            "code": "INVALID_ARGUMENT",
            "field": "date",
            "message": "date is a day.",
            "action": "fix_arguments",
            "retryable": True,
        },
    }


def test_a_refusal_is_data_in_an_untrusted_block():
    told = envelope.declined("booking_not_cancellable", "This fare is non-refundable.", Action.NONE)
    assert told == {
        "status": "declined",
        "output": '<untrusted-data source="tool_refusal">\n'
        "booking_not_cancellable: This fare is non-refundable.\n"
        "</untrusted-data>",
    }


def test_a_refusal_whose_effect_is_unknown_asks_for_a_look():
    told = envelope.declined("taken", "Taken.", Action.CHECK_BEFORE_RETRY, REF)
    assert told["action"] == "check_before_retry"
    assert told["ref"] == REF


@given(st.text())
def test_text_cannot_forge_the_end_of_an_untrusted_block(text):
    block = envelope.untrusted("tool_refusal", text)
    assert block.count("<") == 2
    assert block.endswith("\n</untrusted-data>")


FAILURES = [
    (ToolFailure("t", "x", code="INTERNAL"), "stop_and_tell_user", 0,
     f"The tool failed unexpectedly. Tell the user; do not retry. (ref {REF})"),
    (ToolFailure("t", "x", transient=True), "retry_later", 0,
     "The service is not available at the moment."),
    (ToolFailure("t", "x", transient=True), "stop_and_tell_user", 2,
     "The service is not available at the moment. This tool has failed 2 times in a row; "
     f"stop calling it in this conversation. (ref {REF})"),
    (ToolTimedOutError("t"), "check_before_retry", 0,
     "The tool did not answer in time. It may have taken effect: see whether it did before you "
     f"try again. (ref {REF})"),
    (ToolArgumentValidationError("t", message="date must be an ISO day."), "fix_arguments", 0,
     "date must be an ISO day."),
    (ToolNotFoundError("t"), "stop_and_tell_user", 0,
     f"There is no such tool. Tell the user; do not retry. (ref {REF})"),
    (ToolFailure("t", "x", code="NOT_FOUND", message="No booking 7."), "ask_user", 0,
     f"No booking 7. (ref {REF})"),
]  # fmt: skip


@pytest.mark.parametrize(("failure", "action", "failures", "message"), FAILURES)
def test_the_message_for_each_advice(failure, action, failures, message):
    assert envelope.message_for(failure, Action(action), REF, failures) == message


@given(st.text(min_size=1, max_size=2000), st.sampled_from([a for a in Action if a != "none"]))
def test_a_message_has_at_most_300_characters_and_keeps_its_reference(text, action):
    failure = ToolFailure("t", "x", transient=True, message=text)
    message = envelope.message_for(failure, action, REF, 2)
    assert len(message) <= 300
    if action in ("stop_and_tell_user", "check_before_retry", "ask_user"):
        assert message.endswith(f" (ref {REF})")
    else:
        assert REF not in message


def test_a_secret_in_an_authors_message_does_not_reach_the_model():
    secret = "hunter2" + "-not-real"
    failure = ToolFailure("t", "x", transient=True, message=f"login failed, password={secret}")
    assert secret not in envelope.message_for(failure, Action.RETRY_LATER, REF)


def test_the_instructions_name_every_status_and_action():
    paragraph = instructions()
    for word in ["ok", "declined", "error", "ref", *(a.value for a in Action if a != "none")]:
        assert word in paragraph


def test_our_own_untrusted_block_survives_redaction():
    block = envelope.untrusted("tool_refusal", "taken: The slot is taken.")
    assert scrub(block) == block
