"""Strands Agents: what its hooks see of model calls."""

import asyncio

import pytest
from strands import Agent, ModelRetryStrategy, tool
from strands.hooks import BeforeModelCallEvent, HookProvider
from strands.models.model import Model
from strands.types.exceptions import ModelThrottledException

import toolfault
from toolfault import callers, retry_model_call
from toolfault import conventions as c
from toolfault.hooks.strands import ToolfaultHooks

SECRET = "hunter2-planted"


class ProviderError(Exception):
    def __init__(self, status):
        super().__init__(SECRET)
        self.status_code = status


@tool
def ok() -> str:
    """Answers."""
    return "fine"


class Stub(Model):
    """Plays a script: "done", "call" or an exception, one a turn."""

    def __init__(self, *script):
        self.config = {"model_id": "small-1"}
        self.script, self.turn = list(script), 0

    def update_config(self, **config):
        pass

    def get_config(self):
        return self.config

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        yield {"messageStart": {"role": "assistant"}}
        if step == "call":
            self.turn += 1
            use = {"name": "ok", "toolUseId": f"call-{self.turn}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": step}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if step == "call" else "end_turn"}}


class Repeating(Stub):
    """Repeats a turn that fails, as an application does that has its own policy."""

    async def stream(self, *args, **kwargs):
        def ask():
            return Stub.stream(self, *args, **kwargs)

        async for event in retry_model_call(ask, model="mine"):
            yield event


def make_agent(model, *hooks, **options):
    at_once = ModelRetryStrategy(max_attempts=3, initial_delay=0)
    return Agent(
        model=model,
        name="desk",
        tools=[ok],
        hooks=[ToolfaultHooks(), *hooks],
        retry_strategy=at_once,
        callback_handler=None,
        **options,
    )


async def test_each_turn_of_the_model_is_one_call_of_the_frameworks_run(exported):
    agent = make_agent(Stub("call", "done"))
    await agent.invoke_async("hi")

    first, second = exported.named(c.MODEL_CALL)
    told = dict(first.attributes)
    assert told.pop(c.RUN_ID) == second.attributes[c.RUN_ID]
    assert told == {
        c.REQUEST_MODEL: "small-1",
        c.COUNT: 1,
        c.RESULT: "ok",
        c.CONVERSATION_ID: agent.session_id,
        c.AGENT_NAME: "desk",
    }


@pytest.mark.parametrize(
    ("status", "code", "result"),
    [(503, "UNAVAILABLE", "exhausted"), (400, "INVALID_ARGUMENT", "error")],
)
async def test_a_model_that_fails_is_told_by_code_and_class_and_never_by_its_words(
    exported, status, code, result
):
    with pytest.raises(ProviderError):
        await make_agent(Stub(ProviderError(status))).invoke_async("hi")

    assert exported.model_calls() == [("small-1", 1, result)]
    assert exported.model_errors() == [(code, "ProviderError")]
    assert SECRET not in exported.words()


async def test_what_the_framework_repeats_is_another_attempt_of_the_same_call(exported):
    throttled = ModelThrottledException(SECRET)
    with toolfault.run() as ours:
        await make_agent(Stub(throttled, throttled, "done")).invoke_async("hi")

    assert exported.model_calls() == [("small-1", 3, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (1, 3)
    assert [e.attributes[c.COUNT] for e in exported.named(c.MODEL_RETRY)] == [1, 2]


async def test_a_model_that_is_never_reached_has_exhausted_its_attempts(exported):
    with pytest.raises(ModelThrottledException):
        await make_agent(Stub(*[ModelThrottledException(SECRET)] * 3)).invoke_async("hi")

    assert exported.model_calls() == [("small-1", 3, "exhausted")]
    assert exported.model_errors() == [("RATE_LIMITED", "ModelThrottledException")]


async def test_where_a_hook_has_cancelled_it_no_model_was_called(exported):
    class Cancels(HookProvider):
        def register_hooks(self, registry, **kwargs):
            registry.add_callback(BeforeModelCallEvent, self.cancel)

        def cancel(self, event):
            event.cancel = "not now"

    await make_agent(Stub(), Cancels()).invoke_async("hi")

    assert exported.model_calls() == []


async def test_a_cancelled_call_has_no_result(exported):
    asked = asyncio.Event()

    class Hangs(Stub):
        async def stream(self, *args, **kwargs):
            asked.set()
            await asyncio.sleep(60)
            yield {}

    running = asyncio.ensure_future(make_agent(Hangs()).invoke_async("hi"))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert exported.model_calls() == [("small-1", 1, None)]


async def test_a_model_that_the_application_repeats_is_counted_once_with_its_attempts(
    exported, monkeypatch
):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    with toolfault.run() as ours:
        await make_agent(Repeating(ProviderError(503), "done")).invoke_async("hi")

    assert exported.model_calls() == [("mine", 2, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (1, 2)


async def test_the_applications_run_stops_at_its_limit(exported):
    agent = make_agent(Stub(*["call"] * 9))
    with toolfault.run(max_model_calls=2) as ours, pytest.raises(Exception) as stopped:  # noqa: PT011
        await agent.invoke_async("hi")

    assert callers.classify(stopped.value).reason == "run_limit_exceeded"
    assert exported.model_calls() == [("small-1", 1, "ok")] * 2
    assert exported.limits_reached() == [(ours.run_id, 2)]
