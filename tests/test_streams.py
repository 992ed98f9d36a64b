"""Guarded generators keep the whole protocol: what is sent, thrown and returned."""

import pytest

from toolfault import ToolFailure, guard
from toolfault.testing import assert_envelope


@guard("steps")
def steps():
    total = 0
    while (more := (yield total)) is not None:
        total += more
    return total


@guard("asteps")
async def asteps():
    total = 0
    while (more := (yield total)) is not None:
        total += more


def test_what_the_consumer_sends_reaches_the_body_and_what_it_returns_the_consumer():
    def consumer():
        return (yield from steps())

    running = consumer()
    assert [next(running), running.send(2), running.send(3)] == [0, 2, 5]
    with pytest.raises(StopIteration) as ended:
        running.send(None)
    assert ended.value.value == 5


async def test_what_the_consumer_sends_reaches_an_async_body():
    running = asteps()
    assert [await anext(running), await running.asend(2), await running.asend(3)] == [0, 2, 5]
    with pytest.raises(StopAsyncIteration):
        await running.asend(None)


def test_what_the_consumer_throws_is_the_bodys_to_handle():
    @guard("robust")
    def robust():
        try:
            yield 1
        except KeyError:
            yield 2

    running = robust()
    next(running)
    assert running.throw(KeyError("x")) == 2
    assert list(running) == []


async def test_what_the_consumer_throws_is_an_async_bodys_to_handle():
    @guard("robust")
    async def robust():
        try:
            yield 1
        except KeyError:
            yield 2

    running = robust()
    await anext(running)
    assert await running.athrow(KeyError("x")) == 2


def test_what_the_body_does_not_handle_ends_the_stream_as_any_failure_does():
    running = steps()
    next(running)
    answer = running.throw(ToolFailure("steps", "down", transient=True))
    assert_envelope(answer, action="retry_later")
    assert list(running) == []
