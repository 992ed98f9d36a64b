"""What is told when a run ends without an answer: never more than the run has on record."""

import asyncio

import pytest

import toolfault
from toolfault import ToolFailure, ToolRefusal, fallback, guard
from toolfault.what_ran import what_ran

DONE = "Already done: "
UNCERTAIN = "Not certain: "
NOTHING = "there is no record of any change"


@guard("get_order", writes=False)
def get_order():
    return {}


@guard("refund_order")
def refund_order(ends=None):
    if ends is not None:
        raise ends
    return {}


#: How the refund ended, and which of three things may be said of it.
ENDINGS = [
    (None, DONE),
    (ToolFailure("refund_order", "down", transient=True), NOTHING),
    (ToolFailure("refund_order", "gateway", code="UNAVAILABLE"), UNCERTAIN),
    (ToolFailure("refund_order", "no_order", code="NOT_FOUND"), NOTHING),
    (ToolRefusal("refund_order", "too_late", "Too late."), NOTHING),
    (KeyError("a bug"), UNCERTAIN),
]


@pytest.mark.parametrize(("ends", "told"), ENDINGS)
def test_what_may_be_said_follows_from_the_effect(ends, told):
    with toolfault.run():
        get_order()
        refund_order(ends)
        text = fallback()

    assert [words for words in (DONE, UNCERTAIN, NOTHING) if words in text] == [told]
    assert text.startswith("I could not reach the assistant service just now. Your request was not")
    assert "get_order" not in text


def test_the_whole_sentence_of_a_refund_that_landed():
    with toolfault.run():
        refund_order()
        text = fallback(words={"refund_order": "the refund"})

    assert text == (
        "I could not reach the assistant service just now. Your request was not completed. "
        "Already done: the refund. Please do not ask for it again."
    )


def test_an_uncertain_call_comes_with_its_reference():
    with toolfault.run() as run:
        refund_order(KeyError("a bug"))
        assert fallback().endswith(f"(ref {run.calls[0].reference_id})")


async def test_a_tool_that_is_still_at_it_may_have_done_something():
    release = asyncio.Event()

    @guard("send_mail")
    async def send_mail():
        await release.wait()

    @guard("look", writes=False)
    async def look():
        await release.wait()

    with toolfault.run():
        tasks = [asyncio.create_task(send_mail()), asyncio.create_task(look())]
        await asyncio.sleep(0)
        assert what_ran().uncertain == ("send_mail",)
        release.set()
        await asyncio.gather(*tasks)
        assert (what_ran().uncertain, what_ran().applied) == ((), ("send_mail",))


def test_a_tool_that_ran_twice_is_said_once():
    with toolfault.run():
        refund_order()
        refund_order()
        assert what_ran().applied == ("refund_order",)


def test_outside_of_a_run_nothing_is_known_and_that_is_said():
    assert fallback("No answer.") == (
        "No answer. Your request was not completed. "
        "Something may have been done that I cannot see. Please check first."
    )


def test_a_run_that_has_forgotten_calls_does_not_say_there_was_none():
    with toolfault.run() as run:
        refund_order()
        for _ in range(1000):
            get_order()
        assert NOTHING not in fallback()
        assert not what_ran(run).complete
