"""Retries around one model call: what is repeated, what is counted, what is told."""

import asyncio
import contextvars
import gc
import inspect
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolfault
from toolfault import RunLimitExceededError, conventions, retry_model_call
from toolfault.model_calls import retrying

OVERLOADED, INVALID = 529, 400


class ProviderError(Exception):
    """As the clients of providers raise it: with the status of the answer."""

    def __init__(self, status, **headers):
        super().__init__("Exception: at com.supplier.Db jdbc:postgresql")
        self.status_code = status
        self.headers = headers


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Nobody waits; what would have been waited is written down."""
    waits = []

    async def pause(seconds):
        waits.append(seconds)

    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(asyncio, "sleep", pause)
    return waits


class Provider:
    """Answers in the order it is told: a status is raised, anything else returned."""

    def __init__(self, *answers):
        self.left = list(answers)
        self.asked = 0

    def ask(self):
        self.asked += 1
        answer = self.left.pop(0)
        if isinstance(answer, int):
            raise ProviderError(answer)
        return answer

    async def ask_async(self):
        return self.ask()


def told(exported, name):
    return [dict(event.attributes) for event in exported.named(name)]


def test_an_overload_is_repeated_and_the_waits_grow(waits):
    provider = Provider(OVERLOADED, OVERLOADED, "hello")

    assert retry_model_call(provider.ask, model="m") == "hello"
    assert provider.asked == 3
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0


async def test_an_async_call_is_repeated_too(waits):
    provider = Provider(OVERLOADED, "hello")

    assert await retry_model_call(provider.ask_async, model="m") == "hello"
    assert (provider.asked, len(waits)) == (2, 1)


async def test_a_function_that_returns_something_to_await_is_repeated_too():
    provider = Provider(OVERLOADED, "hello")

    def ask():
        return provider.ask_async()

    assert await retry_model_call(ask, model="m") == "hello"
    assert provider.asked == 2


def test_an_invalid_request_is_not_repeated():
    provider = Provider(INVALID, "hello")

    with pytest.raises(ProviderError):
        retry_model_call(provider.ask, model="m")
    assert provider.asked == 1


def test_what_the_provider_asks_to_wait_is_waited_and_more_than_thirty_seconds_is_not(waits):
    def after(seconds):
        def ask():
            raise ProviderError(429, **{"Retry-After": str(seconds)})

        return ask

    with pytest.raises(ProviderError):
        retry_model_call(after(7), model="m", max_attempts=2)
    assert waits == [7.0]
    with pytest.raises(ProviderError):
        retry_model_call(after(31), model="m")
    assert waits == [7.0]


def test_a_wait_that_outlasts_the_run_is_not_begun(waits):
    provider = Provider(OVERLOADED, "hello")

    with toolfault.run(deadline=0.1), pytest.raises(ProviderError):
        retry_model_call(provider.ask, model="m")
    assert (provider.asked, waits) == (1, [])


def test_attempts_are_counted_apart_from_steps():
    with toolfault.run() as run:
        retry_model_call(Provider(OVERLOADED, OVERLOADED, "hello").ask, model="m")
        retry_model_call(Provider("hello").ask, model="m")

    assert (run.model_calls, run.model_attempts) == (2, 4)


def test_the_limit_of_a_run_ends_it_before_the_model_is_asked_and_is_told_once(exported):
    provider = Provider("hello", "hello", "hello")
    with toolfault.run("c-1", run_id="r-1", agent="desk", max_model_calls=2):
        retry_model_call(provider.ask, model="m")
        retry_model_call(provider.ask, model="m")
        for _ in range(2):
            with pytest.raises(RunLimitExceededError, match="run r-1 has made its 2 model calls"):
                retry_model_call(provider.ask, model="m")

    assert provider.asked == 2
    assert told(exported, conventions.RUN_LIMIT_EXCEEDED) == [
        {
            "toolfault.limit": 2,
            "toolfault.run_id": "r-1",
            "gen_ai.conversation.id": "c-1",
            "gen_ai.agent.name": "desk",
        }
    ]


def test_a_limit_is_one_or_more():
    with pytest.raises(ValueError, match="max_model_calls is 0; give 1 or more, or None"):
        toolfault.run(max_model_calls=0)


RESULTS = [
    # answers, attempts at most -> attempts, result, retries told
    (["hello"], 3, 1, "ok", 0),
    ([OVERLOADED, "hello"], 3, 2, "ok", 1),
    ([OVERLOADED] * 3, 3, 3, "exhausted", 2),
    ([OVERLOADED], 1, 1, "exhausted", 0),
    ([INVALID], 3, 1, "error", 0),
    ([OVERLOADED, INVALID], 3, 2, "error", 1),
]


@pytest.mark.parametrize("case", RESULTS)
def test_one_event_tells_of_a_step(exported, case):
    answers, most, attempts, result, retries = case
    with toolfault.run(run_id="r-1"):
        retry_model_call(
            Provider(*answers).ask, model="m", max_attempts=most, on_error=lambda _: "instead"
        )

    assert told(exported, conventions.MODEL_CALL) == [
        {
            "gen_ai.request.model": "m",
            "toolfault.count": attempts,
            "toolfault.result": result,
            "toolfault.run_id": "r-1",
        }
    ]
    assert len(told(exported, conventions.MODEL_RETRY)) == retries
    errors = told(exported, conventions.MODEL_ERROR)
    assert [error["toolfault.result"] for error in errors] == [result] * (result != "ok")


def test_an_error_is_told_in_the_words_of_the_taxonomy_and_quotes_nothing(exported):
    with pytest.raises(ProviderError):
        retry_model_call(Provider(OVERLOADED).ask, model="m", max_attempts=1)

    (error,) = told(exported, conventions.MODEL_ERROR)
    assert (error["toolfault.code"], error["toolfault.reason"]) == (
        "UNAVAILABLE",
        "upstream_unavailable",
    )
    assert "jdbc" not in exported.everything()


async def test_a_cancelled_call_is_neither_a_success_nor_an_error(exported):
    async def ask():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await retry_model_call(ask, model="m", on_error=lambda _: "instead")

    (call,) = told(exported, conventions.MODEL_CALL)
    assert "toolfault.result" not in call
    assert told(exported, conventions.MODEL_ERROR) == []


def test_an_interrupt_while_waiting_ends_the_step(exported, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        retry_model_call(Provider(OVERLOADED).ask, model="m")

    assert len(told(exported, conventions.MODEL_CALL)) == 1


def test_the_first_answer_is_used_and_none_from_all_lets_the_error_go_on():
    asked = []

    def smaller(error):
        asked.append("smaller")

    def words(error):
        asked.append("words")
        return f"sorry: {error.status_code}"

    call = retrying("m", max_attempts=1, on_error=(smaller, words, smaller))
    assert call(Provider(OVERLOADED).ask)() == "sorry: 529"
    assert asked == ["smaller", "words"]
    with pytest.raises(ProviderError):
        retrying("m", max_attempts=1, on_error=smaller)(Provider(OVERLOADED).ask)()


def test_wrapped_functions_stay_what_they_are():
    def plain(): ...
    async def coroutine(): ...
    def generator():
        yield

    async def async_generator():
        yield

    for function, kind in [
        (plain, inspect.isfunction),
        (coroutine, inspect.iscoroutinefunction),
        (generator, inspect.isgeneratorfunction),
        (async_generator, inspect.isasyncgenfunction),
    ]:
        wrapped = retrying("m")(function)
        assert kind(wrapped)
        assert wrapped.__name__ == function.__name__


@pytest.mark.parametrize(
    ("options", "words"),
    [({"model": ""}, "say which model is asked"), ({"model": "m", "max_attempts": 0}, "give 1 or")],
)
def test_an_option_that_does_not_fit_is_said(options, words):
    with pytest.raises(ValueError, match=words):
        retrying(**options)


@pytest.mark.parametrize("options", [{"transient": True}, {"on_error": ("sorry",)}])
def test_a_rule_or_handler_that_is_no_function_is_said(options):
    with pytest.raises(TypeError, match="give a function of the exception"):
        retrying("m", **options)


def test_a_rule_that_raises_hides_neither_the_error_nor_the_call(exported):
    def ask():
        raise KeyError("answer")

    with pytest.raises(KeyError):
        retry_model_call(ask, model="m", transient=lambda error: error.status_code == OVERLOADED)

    (call,) = told(exported, conventions.MODEL_CALL)
    assert call["toolfault.result"] == "error"


def test_a_coroutine_that_is_thrown_away_elsewhere_is_neither_a_success_nor_an_error(exported):
    class Never:
        def __await__(self):
            yield

    async def ask():
        await Never()

    running = retry_model_call(ask, model="m")
    contextvars.copy_context().run(running.send, None)
    running.close()

    (call,) = told(exported, conventions.MODEL_CALL)
    assert "toolfault.result" not in call
    assert exported.named(conventions.MODEL_ERROR) == []


# --- streams -------------------------------------------------------------------------------------

#: Each attempt: how many items it gives, then the status it breaks with (None: it ends well), and
#: whether it breaks already when it is opened.
ATTEMPT = st.tuples(st.integers(0, 3), st.sampled_from([None, OVERLOADED, INVALID]), st.booleans())


class Streams:
    """A provider whose streams break where they are told; items name their attempt."""

    def __init__(self, attempts):
        self.attempts = attempts
        self.opened = 0

    def open(self):
        """A stream as clients give it: opened by the call, read by iteration."""
        number = self.opened
        self.opened += 1
        items, status, at_once = self.attempts[number]
        if at_once and status:
            raise ProviderError(status)
        return self.items(number, items, status)

    def items(self, number, items, status):
        for item in range(items):
            yield (number, item)
        if status:
            raise ProviderError(status)

    async def open_async(self):
        return self.items_async(self.open())

    async def items_async(self, items):
        for item in items:
            yield item

    def generate(self):
        yield from self.open()

    async def generate_async(self):
        for item in self.open():
            yield item


def expected(attempts, most):
    """Worked out apart from the code: what the reader gets, how often the provider is asked, how it ends."""
    for number, (items, status, at_once) in enumerate(attempts[:most]):
        seen = [] if at_once and status else [(number, item) for item in range(items)]
        repeats = status == OVERLOADED and not seen and number + 1 < most
        if not repeats:
            return seen, number + 1, status
    raise AssertionError


def collected(make):
    seen = []
    try:
        for item in make():
            seen.append(item)  # noqa: PERF402 - what came before it broke counts
    except ProviderError as error:
        return seen, error.status_code
    return seen, None


def collected_async(make):
    async def collect():
        seen = []
        try:
            stream = make()
            async for item in await stream if inspect.isawaitable(stream) else stream:
                seen.append(item)  # noqa: PERF401 - as above
        except ProviderError as error:
            return seen, error.status_code
        return seen, None

    return asyncio.run(collect())


KINDS = [
    ("open", collected),
    ("generate", collected),
    ("open_async", collected_async),
    ("generate_async", collected_async),
]


@pytest.mark.parametrize(("kind", "collect"), KINDS)
@given(attempts=st.lists(ATTEMPT, min_size=3, max_size=3))
def test_no_stream_says_anything_twice_wherever_it_breaks(kind, collect, attempts):
    provider = Streams(attempts)

    seen, status = collect(retrying("m", max_attempts=3)(getattr(provider, kind)))

    assert (seen, provider.opened, status) == expected(attempts, 3)
    assert len(set(seen)) == len(seen)
    assert len({number for number, _ in seen}) <= 1  # never a part of one and a part of another


@pytest.mark.parametrize(("kind", "collect"), KINDS)
def test_a_stream_is_one_step_whatever_it_takes(exported, kind, collect):
    provider = Streams([(0, OVERLOADED, True), (0, OVERLOADED, False), (2, None, False)])
    with toolfault.run() as run:
        seen, _ = collect(retrying("m")(getattr(provider, kind)))

    assert seen == [(2, 0), (2, 1)]
    assert (run.model_calls, run.model_attempts) == (1, 3)
    (call,) = told(exported, conventions.MODEL_CALL)
    assert (call["toolfault.count"], call["toolfault.result"]) == (3, "ok")


@pytest.mark.parametrize(("kind", "collect"), KINDS)
def test_a_stream_that_breaks_after_output_ends_with_what_is_said_instead(exported, kind, collect):
    provider = Streams([(1, OVERLOADED, False)])

    seen, status = collect(retrying("m", on_error=lambda _: "sorry")(getattr(provider, kind)))

    assert (seen, status) == ([(0, 0), "sorry"], None)
    assert told(exported, conventions.MODEL_CALL)[0]["toolfault.result"] == "error"


def test_a_reader_who_leaves_a_stream_ends_the_step_and_the_providers_stream(exported):
    provider = Streams([(3, None, False)])
    stream = retry_model_call(provider.open, model="m")
    source = stream._source

    with stream:
        assert next(stream) == (0, 0)

    assert source.gi_frame is None  # closed
    (call,) = told(exported, conventions.MODEL_CALL)
    assert call["toolfault.result"] == "ok"
    assert list(stream) == []


async def test_a_reader_who_leaves_an_async_stream_ends_the_step(exported):
    provider = Streams([(3, None, False)])
    async with await retry_model_call(provider.open_async, model="m") as stream:
        assert await anext(stream) == (0, 0)

    (call,) = told(exported, conventions.MODEL_CALL)
    assert call["toolfault.result"] == "ok"
    assert [item async for item in stream] == []


def test_a_reader_who_just_goes_away_ends_the_step_too(exported):
    provider = Streams([(3, None, False)])
    for item in retry_model_call(provider.open, model="m"):
        assert item == (0, 0)
        break
    gc.collect()

    (call,) = told(exported, conventions.MODEL_CALL)
    assert call["toolfault.result"] == "ok"


def test_what_a_providers_stream_offers_besides_is_still_there():
    class Stream:
        response = httpx.Response(200)

        def __iter__(self):
            return self

        def __next__(self):
            raise StopIteration

    stream = retry_model_call(Stream, model="m")

    assert stream.response.status_code == 200
    with pytest.raises(AttributeError):
        stream.nothing_of_the_kind  # noqa: B018


def test_what_a_wrapped_generator_returns_reaches_who_reads_it(exported):
    weather = [OVERLOADED, None]

    @retrying("m")
    def ask():
        if (status := weather.pop(0)) is not None:
            raise ProviderError(status)
        yield "hello"
        return {"tokens": 3}

    def reader():
        return (yield from ask())

    reading = reader()
    assert next(reading) == "hello"
    with pytest.raises(StopIteration) as ended:
        next(reading)
    assert ended.value.value == {"tokens": 3}
