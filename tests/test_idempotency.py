"""The key under which the same work is recognised, and the tools that are given one."""

import enum
import inspect
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolfault
from toolfault import ToolFailure, guard
from toolfault.callers import idempotency_key


class Size(enum.Enum):
    LARGE = "L"


#: (one way to say it, another, whether it is the same work)
PAIRS = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": 1}, {"a": 1.0}, True),
    ({"a": (1, 2)}, {"a": [1, 2]}, True),
    ({"a": {2, 1}}, {"a": {1, 2}}, True),
    ({"a": date(2026, 10, 6)}, {"a": "2026-10-06"}, True),
    ({"a": Decimal("1.50")}, {"a": "1.50"}, True),
    ({"a": Size.LARGE}, {"a": "L"}, True),
    ({"a": 1}, {"a": "1"}, False),
    ({"a": 1}, {"a": True}, False),
    ({"a": None}, {}, False),
    ({"a": [1, 2]}, {"a": [2, 1]}, False),
    ({"a": [["b", 1]]}, {"a": {"b": 1}}, False),
    ({"a": 0.1}, {"a": 0.2}, False),
]


@pytest.mark.parametrize(("one", "other", "same"), PAIRS)
def test_what_counts_as_the_same_work(one, other, same):
    keys = [idempotency_key("pay", arguments, run_id="r-1") for arguments in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_the_key_is_stable_across_versions():
    # Keys live on at the other side: a release that changed them would do everything twice.
    key = idempotency_key("refund_order", {"order_id": "A-1042", "amount": 12.5}, run_id="r-1")
    assert key == "5469aa013626acce7defad14d252efc2"


def test_another_run_or_tool_is_another_work():
    arguments = {"order_id": "A-1042"}
    keys = {
        idempotency_key(tool, arguments, run_id=run)
        for tool in ("pay", "refund")
        for run in ("r-1", "r-2")
    }
    assert len(keys) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_json_has_a_key_that_no_order_changes(arguments):
    turned = dict(reversed(arguments.items()))
    assert idempotency_key("t", arguments, run_id="r") == idempotency_key("t", turned, run_id="r")


def test_what_cannot_be_written_down_alike_every_time_is_refused():
    with pytest.raises(TypeError, match="hand idempotency_key= to the tool yourself"):
        idempotency_key("t", {"a": object()}, run_id="r")


def test_a_tool_that_takes_a_key_is_given_the_same_one_in_every_attempt_and_every_call():
    keys = []

    @guard("refund", max_attempts=2, idempotent=True)
    def refund(order_id, amount=1, *, idempotency_key):
        keys.append(idempotency_key)
        if len(keys) == 1:
            raise ToolFailure("refund", "busy", transient=True, retry_after=0)
        return "done"

    with toolfault.run(run_id="r-1"):
        refund("A-1", amount=5)
        refund(order_id="A-1", amount=5)
    with toolfault.run(run_id="r-2"):
        refund("A-1", amount=5)

    first = idempotency_key("refund", {"order_id": "A-1", "amount": 5}, run_id="r-1")
    assert keys[:3] == [first] * 3
    assert keys[3] != first


def test_a_default_that_is_written_out_asks_for_the_same_work():
    keys = []
    nothing = object()  # a default that no key can be made of

    @guard("refund")
    def refund(order_id, amount=1, day=date(2026, 10, 6), note=nothing, *, idempotency_key=None):
        keys.append(idempotency_key)

    with toolfault.run(run_id="r-1"):
        refund("A-1")
        refund("A-1", amount=1)
        refund("A-1", 1.0, day="2026-10-06")
        refund("A-1", amount=True)  # written differently, so it may be another work
        refund("A-1", note="late")

    assert keys[:3] == [idempotency_key("refund", {"order_id": "A-1"}, run_id="r-1")] * 3
    assert len(set(keys)) == 3


def test_outside_of_a_run_a_key_is_one_calls_alone():
    keys = []

    @guard("refund", max_attempts=2)
    def refund(idempotency_key=None):
        keys.append(idempotency_key)
        if len(keys) == 1:
            raise ToolFailure("refund", "busy", transient=True)

    refund()
    refund()

    assert keys[0] == keys[1] != keys[2]


async def test_every_kind_of_function_is_given_one_and_the_model_never_sees_it():
    def plain(a, idempotency_key):
        return idempotency_key

    async def coroutine(a, idempotency_key: str):
        return idempotency_key

    def generator(a, idempotency_key):
        yield idempotency_key

    async def async_generator(a, idempotency_key):
        yield idempotency_key

    class Desk:
        def method(self, a, idempotency_key):
            return idempotency_key

    key = idempotency_key("t", {"a": 1}, run_id="r")
    hook = guard("t", on_error="raise")
    Desk.method = hook(Desk.method)
    with toolfault.run(run_id="r"):
        assert hook(plain)(1) == await hook(coroutine)(a=1) == Desk().method(1) == key
        assert list(hook(generator)(1)) == [key]
        assert [item async for item in hook(async_generator)(1)] == [key]
    for function in (plain, coroutine, generator, async_generator):
        guarded = hook(function)
        assert list(inspect.signature(guarded).parameters) == ["a"]
        assert "idempotency_key" not in guarded.__annotations__
    assert inspect.iscoroutinefunction(hook(coroutine))


def test_a_key_that_is_handed_in_is_used():
    tool = guard("t", on_error="raise")(lambda idempotency_key: idempotency_key)
    assert tool(idempotency_key="mine") == "mine"
