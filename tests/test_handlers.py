"""The four strategies and chains of handlers: what the model reads, what the caller catches."""

import logging

import pytest

import toolfault
from toolfault import (
    ToolFailure,
    ToolFailurePolicy,
    ToolRefusal,
    conventions,
    guard,
    handlers,
)
from toolfault.handlers import (
    SensitiveMessageWarning,
    ToolErrorVisibleToLlm,
    backstop,
    fail_invocation,
    fail_invocation_unless_visible_to_llm,
    send_generic_message_to_llm_unless_visible_to_llm,
)
from toolfault.testing import capture_tool_errors

GENERIC = "The tool failed."
SECRET = "sk-" + "test" + "4" * 40


class OrderUnknownError(Exception):
    def message_for_llm(self):
        return "There is no order with this id."


class BlankError(Exception):
    def message_for_llm(self):
        return "  "


def caused(error, by):
    error.__cause__ = by
    return error


def send_exception_message_to_llm():
    with pytest.warns(SensitiveMessageWarning, match="can hold secrets, SQL and personal data"):
        return handlers.send_exception_message_to_llm()


def send_generic():
    return send_generic_message_to_llm_unless_visible_to_llm(GENERIC)


def outcome(on_error, error):
    """What the model reads, or "raised"."""

    @guard("t", on_error=on_error, writes=False)
    def tool():
        raise error

    try:
        answer = tool()
    except toolfault.ToolError as raised:
        return "raised" if raised.__cause__ is None else "raised with its cause"
    return answer["error"]["message"].partition(" (ref")[0]


BUG = KeyError("SELECT * FROM orders")
VISIBLE = "There is no order with this id."
TYPED = ToolFailure("t", "no_order", code="NOT_FOUND", message="Ask for the order id.")
UNSAID = ToolFailure("t", "no_order", code="NOT_FOUND")
#: error -> what each of fail, exception message, fail unless visible, generic unless visible gives
TABLE = [
    (ValueError("no such day"), ["raised", "no such day", "raised", GENERIC]),
    (OrderUnknownError("A-1"), ["raised", VISIBLE, VISIBLE, VISIBLE]),
    (caused(RuntimeError("x"), OrderUnknownError("A-1")), ["raised", VISIBLE, VISIBLE, VISIBLE]),
    (ExceptionGroup("one", [OrderUnknownError("A-1")]), ["raised", VISIBLE, VISIBLE, VISIBLE]),
    (BlankError("x"), ["raised", "raised", "raised", "raised"]),
    (ValueError(""), ["raised", "raised", "raised", GENERIC]),
    (TYPED, ["raised", TYPED.message, TYPED.message, TYPED.message]),
]


@pytest.mark.parametrize(("error", "expected"), TABLE, ids=lambda value: repr(value)[:40])
def test_what_each_strategy_makes_of_an_error(error, expected):
    strategies = [
        fail_invocation(),
        send_exception_message_to_llm(),
        fail_invocation_unless_visible_to_llm(),
        send_generic(),
    ]
    assert [outcome(strategy, error) for strategy in strategies] == expected


def test_a_typed_error_without_words_of_its_author_is_not_visible():
    assert outcome(fail_invocation_unless_visible_to_llm(), UNSAID) == "raised"


def test_every_text_is_scrubbed_and_cut_all_the_same():
    told = outcome(send_exception_message_to_llm(), ValueError(f"key {SECRET} " + "x" * 400))
    assert SECRET not in told
    assert len(told) <= 300


def test_the_warning_is_in_the_docstring_too():
    assert "WARNING: this can expose sensitive data" in (
        handlers.send_exception_message_to_llm.__doc__
    )


def test_a_blank_generic_message_is_refused():
    with pytest.raises(ValueError, match="write what the model may know"):
        send_generic_message_to_llm_unless_visible_to_llm(" ")


def test_the_generic_message_logs_what_it_hides_with_its_stack(caplog):
    outcome(send_generic(), BUG)
    outcome(send_generic(), OrderUnknownError("A-1"))

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info[1] is BUG


# --- chains --------------------------------------------------------------------------------------


def test_the_first_result_wins_and_none_from_all_escalates():
    asked = []

    def says(name, text):
        def handler(error, context):
            asked.append(name)
            return text

        return handler

    assert outcome([says("a", None), says("b", "words"), says("c", "more")], BUG) == "words"
    assert asked == ["a", "b"]
    assert outcome([says("a", None), says("b", None)], BUG) == "raised"


@pytest.mark.parametrize("text", ["", "  \n", 7])
def test_a_blank_text_escalates_and_ends_the_chain(text):
    assert outcome([lambda *_: text, lambda *_: "words"], BUG) == "raised"


def test_a_handler_that_raises_escalates_and_is_logged(caplog):
    def broken(error, context):
        raise ZeroDivisionError

    assert outcome([broken, lambda *_: "words"], BUG) == "raised"
    assert "a handler of tool t raised" in caplog.text


def test_the_context_has_the_raw_error_and_its_typed_form():
    seen = []

    def look(error, context):
        seen.append((error, context))
        return "words"

    group = ExceptionGroup("one", [BUG])
    with capture_tool_errors() as reported:
        outcome(look, group)

    ((error, context),) = seen
    assert error is BUG
    assert context.raw_error is group
    assert (context.tool, context.typed.reason, context.attempts) == ("t", "unmapped_failure", 1)
    assert context.reference_id == reported.only().reference_id


def test_handlers_are_asked_once_a_call_however_many_attempts_it_takes():
    asked = []

    @guard("t", max_attempts=3, on_error=lambda error, _: asked.append(error) or "words")
    def tool():
        raise ToolFailure("t", "busy", transient=True, retry_after=0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.sleep", lambda _: None)
        tool()
    assert len(asked) == 1


def test_a_refusal_stays_an_answer():
    @guard("t", on_error=fail_invocation())
    def tool():
        raise ToolRefusal("t", "too_late", "The train has left.")

    assert tool()["status"] == "declined"


def test_success_is_wrapped_and_what_the_model_was_told_is_on_record():
    assert guard("t", on_error=send_generic())(lambda: 1)() == {"status": "ok", "output": 1}
    with capture_tool_errors() as reported:
        outcome(send_generic(), BUG)
    assert reported.only().message.startswith(GENERIC)


def test_the_policy_of_the_run_wins():
    with toolfault.run(policy=ToolFailurePolicy.CONTINUE):
        assert outcome(fail_invocation(), BUG).startswith("The tool failed unexpectedly.")
    with toolfault.run(policy=ToolFailurePolicy.FAIL_RUN):
        assert outcome(send_generic(), BUG) == "raised"


def test_a_handler_is_named_where_the_option_does_not_fit():
    with pytest.raises(ValueError, match="write 'envelope', 'raise' or a handler"):
        guard("t", on_error="ignore")


def test_any_exception_with_the_method_is_visible():
    assert isinstance(OrderUnknownError(), ToolErrorVisibleToLlm)
    assert not isinstance(KeyError(), ToolErrorVisibleToLlm)


# --- the backstop --------------------------------------------------------------------------------


def test_the_backstop_is_loud_and_quotes_nothing_to_the_model(exported, caplog):
    answer = backstop("get_order", BUG, call_id="call-1")

    error = answer["error"]
    assert (error["code"], error["action"]) == ("INTERNAL", "stop_and_tell_user")
    assert "SELECT" not in str(answer)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert f"ref {error['ref']}: put @toolfault.guard('get_order') on it" in record.getMessage()
    (event,) = exported.named(conventions.BACKSTOP_REACHED)
    assert event.attributes["toolfault.reference_id"] == error["ref"]
    assert len(exported.named(conventions.TOOL_ERROR)) == 1


def test_what_a_guard_has_reported_is_not_reported_again(exported):
    @guard("t", on_error=fail_invocation())
    def tool():
        raise BUG

    with pytest.raises(ToolFailure) as raised:
        tool()
    answer = backstop("t", raised.value)

    assert answer["error"]["ref"] == raised.value.reference_id
    assert exported.named(conventions.BACKSTOP_REACHED) == []
    assert len(exported.named(conventions.TOOL_ERROR)) == 1
