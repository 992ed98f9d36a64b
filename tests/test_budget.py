"""Consecutive failures, counted where the caller says and bounded where nobody says."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolfault import budget


def test_failures_count_up_until_a_reset():
    state = {}
    assert [budget.failed("book", "", state) for _ in range(3)] == [1, 2, 3]
    budget.reset("book", "", state)
    assert budget.failed("book", "", state) == 1


@given(st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=60), st.booleans())
def test_a_count_is_the_failures_of_that_tool_since_its_last_reset(steps, in_process):
    state, conversation = None if in_process else {}, "property"
    for tool in "ab":
        budget.reset(tool, conversation, state)
    expected = {"a": 0, "b": 0}
    for tool, fails in steps:
        expected[tool] = expected[tool] + 1 if fails else 0
        if fails:
            assert budget.failed(tool, conversation, state) == expected[tool]
        else:
            budget.reset(tool, conversation, state)


def test_the_state_is_a_plain_number_in_the_callers_mapping():
    state = {}
    budget.failed("book", "", state)
    assert state == {"toolfault.failures:book": 1}


def test_a_reset_writes_nothing_where_nothing_was_counted():
    state = {}
    budget.reset("book", "", state)
    assert state == {}


def test_tools_and_conversations_are_counted_apart():
    assert budget.failed("book", "a-1", None) == 1
    assert budget.failed("book", "a-2", None) == 1
    assert budget.failed("cancel", "a-1", None) == 1
    assert budget.failed("book", "a-1", None) == 2


@pytest.mark.parametrize("junk", ["2", -5, None, 1.5, [], True])
def test_a_count_somebody_else_spoiled_does_not_break_the_call(junk):
    assert budget.failed("book", "", {"toolfault.failures:book": junk}) == 1


def test_no_count_is_lost_between_threads():
    state = {}
    threads = [
        threading.Thread(target=lambda: [budget.failed("book", "", state) for _ in range(500)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state["toolfault.failures:book"] == 4000


def test_the_process_keeps_ten_thousand_counts_and_forgets_the_oldest():
    for number in range(10_050):
        budget.failed("book", f"bounded-{number}", None)
    assert len(budget._in_process) == 10_000
    assert budget.failed("book", "bounded-0", None) == 1
    assert budget.failed("book", "bounded-10049", None) == 2


def test_an_absurd_count_stays_a_small_number():
    assert budget.failed("book", "", {"toolfault.failures:book": 10**400}) == 1_000_000


class Away(dict):
    def get(self, *_):
        raise ConnectionError("redis://user:fake@host is away")


def test_a_mapping_that_raises_costs_nobody_his_call():
    assert [budget.failed("book", "c-away", Away()) for _ in range(2)] == [1, 2]
    budget.reset("book", "c-away", Away())
    assert budget.failed("book", "c-away", Away()) == 1
