import traceback

import pytest

from toolfault.telemetry import detail


def caught(function, *args):
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 - any bug
        return error


def divide(number):
    return number / 0


def look(key):
    return {}[key]


def look_behind(key):
    try:
        return {}[key]
    except KeyError as error:
        raise LookupError("no slot") from error


def test_a_stack_ends_with_what_python_prints_without_carets():
    error = caught(look, "slot 10:00")
    frames, _, innermost = detail.stack(error).partition("\n\n")
    line = look.__code__.co_firstlineno + 1
    assert frames.splitlines()[0] == "KeyError:"
    assert frames.splitlines()[-1] == f"  {__file__}:{line} look"
    printed = "".join(traceback.format_exception(error)).splitlines()
    assert innermost.splitlines() == [text for text in printed if set(text) - set(" ^~")]


def test_the_same_bug_has_the_same_stack_each_time():
    assert detail.stack(caught(look, "a")) == detail.stack(caught(look, "a"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((look, "a"), (look, "b")),
        ((look, 1), (divide, 1)),
        ((look_behind, "a"), (look_behind, "b")),
        ((look, "a"), (look_behind, "a")),
    ],
    ids=["message", "place", "cause's message", "cause"],
)
def test_stacks_that_differ_are_never_taken_for_each_other(one, other):
    for function, argument in (one, other) * 2:
        told = detail.stack(caught(function, argument))
        assert f" {function.__name__}\n" in told
        assert repr(argument) in told or function is divide


def test_notes_and_the_parts_of_a_group_are_told_each_time():
    def raise_with(text):
        error = ValueError("bad")
        error.add_note(text)
        raise error

    def raise_group(text):
        raise ExceptionGroup("both", [ValueError(text)])

    for text in ("first", "second"):
        assert text in detail.stack(caught(raise_with, text))
        assert text in detail.stack(caught(raise_group, text))


def test_a_message_that_is_always_another_does_not_fill_the_memory():
    for number in range(1000):
        assert str(number) in detail.stack(caught(look, number))
    assert len(detail._known) <= 128


def test_an_exception_that_cannot_be_printed_has_a_stack_all_the_same():
    class AwkwardError(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    def raise_awkward():
        raise AwkwardError

    assert "raise_awkward" in detail.stack(caught(raise_awkward))
