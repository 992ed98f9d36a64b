"""Pydantic AI: what a capability sees of model calls."""

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError, ModelRetry, SkipModelRequest, UsageLimitExceeded
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

import toolfault
from toolfault import conventions as c
from toolfault import retry_model_call
from toolfault.hooks.pydantic_ai import ToolfaultCapability

SECRET = "hunter2-planted"
DONE = ModelResponse(parts=[TextPart("done")])


def calling(number):
    return ModelResponse(parts=[ToolCallPart("ok", {}, tool_call_id=f"call-{number}")])


def fails(status):
    return ModelHTTPError(status, "small-1", SECRET)


def model(*answers, name="small-1"):
    left = list(answers)

    def ask(messages, info):
        if isinstance(answer := left.pop(0), Exception):
            raise answer
        return answer

    return FunctionModel(ask, model_name=name)


def streaming(*pieces):
    async def stream(messages, info):
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    return FunctionModel(stream_function=stream, model_name="small-1")


def make_agent(model, *others):
    def ok() -> str:
        return "fine"

    capabilities = [ToolfaultCapability(), *others]
    return Agent(model, name="desk", tools=[ok], capabilities=capabilities)


async def test_each_turn_of_the_model_is_one_call_of_the_frameworks_run(exported):
    await make_agent(model(calling(1), DONE)).run("hi", conversation_id="c-1")

    first, second = exported.named(c.MODEL_CALL)
    told = dict(first.attributes)
    assert told.pop(c.RUN_ID) == second.attributes[c.RUN_ID]
    assert told == {
        c.REQUEST_MODEL: "small-1",
        c.COUNT: 1,
        c.RESULT: "ok",
        c.CONVERSATION_ID: "c-1",
        c.AGENT_NAME: "desk",
    }


@pytest.mark.parametrize(
    ("status", "code", "result"),
    [(503, "UNAVAILABLE", "exhausted"), (400, "INVALID_ARGUMENT", "error")],
)
async def test_a_model_that_fails_is_told_by_code_and_class_and_never_by_its_words(
    exported, status, code, result
):
    with pytest.raises(ModelHTTPError):
        await make_agent(model(fails(status))).run("hi")

    assert exported.model_calls() == [("small-1", 1, result)]
    assert exported.model_errors() == [(code, "ModelHTTPError")]
    assert SECRET not in exported.words()


async def test_models_that_were_fallen_back_from_are_attempts(exported):
    both = FallbackModel(model(fails(503)), model(DONE, name="small-2"))
    with toolfault.run() as ours:
        await make_agent(both).run("hi")

    [(_, attempts, result)] = exported.model_calls()
    assert (attempts, result) == (2, "ok")
    assert (ours.model_calls, ours.model_attempts) == (1, 2)


async def test_where_every_model_failed_the_call_is_exhausted_once(exported):
    both = FallbackModel(model(fails(503)), model(fails(503), name="small-2"))
    with pytest.raises(ExceptionGroup):
        await make_agent(both).run("hi")

    [(_, attempts, result)] = exported.model_calls()
    assert (attempts, result) == (2, "exhausted")


async def test_a_request_that_was_never_sent_is_no_model_call(exported):
    class Skips(AbstractCapability):
        async def before_model_request(self, ctx, request_context):
            raise SkipModelRequest(DONE)

    await make_agent(model(), Skips()).run("hi")
    with pytest.raises(UsageLimitExceeded):
        await make_agent(model(calling(1))).run("hi", usage_limits=UsageLimits(request_limit=1))

    assert exported.model_calls() == [("small-1", 1, "ok")]


async def test_an_answer_that_a_capability_rejects_was_an_answer(exported):
    class Picky(AbstractCapability):
        asked = 0

        async def after_model_request(self, ctx, *, request_context, response):
            self.asked += 1
            if self.asked == 1:
                raise ModelRetry("again")
            return response

    await make_agent(model(DONE, DONE), Picky()).run("hi")

    assert exported.model_calls() == [("small-1", 1, "ok")] * 2


async def test_a_stream_is_a_call_and_one_that_breaks_could_not_be_repeated(exported):
    async with make_agent(streaming("do", "ne")).run_stream("hi") as whole:
        assert await whole.get_output() == "done"
    with pytest.raises(ModelHTTPError):
        async with make_agent(streaming("do", fails(503))).run_stream("hi") as broken:
            await broken.get_output()

    assert exported.model_calls() == [("small-1", 1, "ok"), ("small-1", 1, "error")]


async def test_a_reader_that_raises_is_no_failure_of_the_model(exported):
    with pytest.raises(KeyError):
        async with make_agent(streaming("do", "ne")).run_stream("hi"):
            raise KeyError

    assert exported.model_calls() == [("small-1", 1, None)]


async def test_a_cancelled_call_has_no_result(exported):
    asked = asyncio.Event()

    async def hangs(messages, info):
        asked.set()
        await asyncio.sleep(60)

    running = asyncio.ensure_future(
        make_agent(FunctionModel(hangs, model_name="small-1")).run("hi")
    )
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert exported.model_calls() == [("small-1", 1, None)]


async def test_a_model_that_the_application_repeats_is_counted_once_with_its_attempts(
    exported, monkeypatch
):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    inner = model(fails(503), DONE)

    async def ask(messages, info):
        return retry_model_call(lambda: inner.function(messages, info), model="mine")

    with toolfault.run() as ours:
        await make_agent(FunctionModel(ask, model_name="small-1")).run("hi")

    assert exported.model_calls() == [("mine", 2, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (1, 2)


async def test_the_applications_run_stops_at_its_limit(exported):
    agent = make_agent(model(*map(calling, range(9))))
    with (
        toolfault.run(max_model_calls=2) as ours,
        pytest.raises(toolfault.RunLimitExceededError),
    ):
        await agent.run("hi")

    assert exported.model_calls() == [("small-1", 1, "ok")] * 2
    assert exported.limits_reached() == [(ours.run_id, 2)]
