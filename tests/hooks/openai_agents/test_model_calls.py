"""OpenAI Agents SDK: what its hooks and spans tell of model calls."""

import asyncio

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    ModelSettings,
    RunConfig,
    Runner,
    function_tool,
    input_guardrail,
    set_tracing_disabled,
    trace,
)
from agents.retry import ModelRetrySettings
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tracing import generation_span

import toolfault
from toolfault import conventions as c
from toolfault import retry_model_call
from toolfault.hooks import openai_agents, patch
from toolfault.hooks.openai_agents import ToolfaultHooks

SECRET = "hunter2-planted"
DONE = [assistant_message("done")]


class ProviderError(Exception):
    def __init__(self, status):
        super().__init__(SECRET)
        self.status_code = status


class Named(ScriptedModel):
    """Has a name, as the models of providers have."""

    model = "small-1"


class Spanned(Named):
    """Opens a span for each attempt, as the SDK's own models do."""

    async def get_response(self, *args, **kwargs):
        with generation_span(model="small-1"):
            return await super().get_response(*args, **kwargs)


class Repeating(Named):
    """Repeats a turn that fails, as an application does that has its own policy."""

    async def get_response(self, *args, **kwargs):
        def ask():
            return ScriptedModel.get_response(self, *args, **kwargs)

        return await retry_model_call(ask, model="mine")


@function_tool
def ok() -> str:
    """Answers."""
    return "fine"


def calling(number):
    return [function_call("ok", "{}", call_id=f"call-{number}")]


def make_agent(model, **options):
    return Agent(name="desk", model=model, tools=[ok], **options)


async def run(agent, **options):
    hooks = ToolfaultHooks()
    return await Runner.run(agent, "hi", hooks=hooks, run_config=hooks.run_config(), **options)


async def test_each_turn_of_the_model_is_one_call_of_the_frameworks_run(exported):
    with trace("desk", group_id="c-1") as whole:
        await run(make_agent(Named([calling(1), DONE])))

    assert [dict(event.attributes) for event in exported.named(c.MODEL_CALL)] == [
        {
            c.REQUEST_MODEL: "small-1",
            c.COUNT: 1,
            c.RESULT: "ok",
            c.RUN_ID: whole.trace_id,
            c.CONVERSATION_ID: "c-1",
            c.AGENT_NAME: "desk",
        }
    ] * 2


@pytest.mark.parametrize(
    ("status", "code", "result"),
    [(503, "UNAVAILABLE", "exhausted"), (400, "INVALID_ARGUMENT", "error")],
)
@pytest.mark.parametrize("model", [Named, Spanned])
async def test_a_model_that_fails_is_told_by_code_and_class_and_never_by_its_words(
    exported, status, code, result, model
):
    with pytest.raises(ProviderError):
        await run(make_agent(model([ProviderError(status)])))

    assert exported.model_calls() == [("small-1", 1, result)]
    assert exported.model_errors() == [(code, "ProviderError")]
    assert SECRET not in exported.words()


@pytest.mark.parametrize(("model", "told"), [(Named, 0), (Spanned, 1)])
async def test_what_the_framework_repeats_is_another_attempt_of_the_same_call(
    exported, model, told
):
    again = ModelRetrySettings(
        max_retries=2, policy=lambda context: True, backoff={"initial_delay": 0.0, "jitter": False}
    )
    agent = make_agent(model([ProviderError(503), DONE]), model_settings=ModelSettings(retry=again))
    with toolfault.run() as ours:
        await run(agent)

    assert exported.model_calls() == [("small-1", 2, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (1, 2)
    assert len(exported.named(c.MODEL_RETRY)) == told


async def test_a_stream_is_a_call_like_any_other(exported):
    hooks = ToolfaultHooks()
    for script in ([DONE], [ProviderError(503)]):
        running = Runner.run_streamed(
            make_agent(Named(script)), "hi", hooks=hooks, run_config=hooks.run_config()
        )
        try:
            async for _ in running.stream_events():
                pass
        except ProviderError:
            pass

    assert exported.model_calls() == [("small-1", 1, "ok"), ("small-1", 1, "exhausted")]


async def test_a_guardrail_that_stops_the_run_is_no_failure_of_the_model(exported):
    @input_guardrail
    async def no(context, agent, given):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    class Slow(Named):
        async def get_response(self, *args, **kwargs):
            await asyncio.sleep(60)

    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(make_agent(Slow([DONE]), input_guardrails=[no]))

    assert exported.named(c.MODEL_ERROR) == []


async def test_with_the_process_hooked_a_call_is_counted_once(exported):
    openai_agents.instrument()
    try:
        await run(make_agent(Named([calling(1), DONE])))
    finally:
        patch.restore()

    assert exported.model_calls() == [("small-1", 1, "ok")] * 2


async def test_with_the_sdks_tracing_off_no_model_call_is_counted(exported):
    set_tracing_disabled(True)
    try:
        await run(make_agent(Named([DONE])))
    finally:
        set_tracing_disabled(False)

    assert exported.model_calls() == []


async def test_a_model_that_the_application_repeats_is_counted_once_with_its_attempts(
    exported, monkeypatch
):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    with toolfault.run() as ours:
        await run(make_agent(Repeating([ProviderError(503), DONE])))

    assert exported.model_calls() == [("mine", 2, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (1, 2)


async def test_the_model_of_a_runs_configuration_is_named_by_its_span(exported):
    hooks = ToolfaultHooks()
    config = hooks.run_config(RunConfig(model=Spanned([DONE])))
    await Runner.run(make_agent("another"), "hi", hooks=hooks, run_config=config)

    assert exported.model_calls() == [("small-1", 1, "ok")]


async def test_the_applications_run_stops_at_its_limit(exported):
    agent = make_agent(Named([calling(number) for number in range(9)]))
    with (
        toolfault.run(max_model_calls=2) as ours,
        pytest.raises(toolfault.RunLimitExceededError),
    ):
        await run(agent)

    assert exported.model_calls() == [("small-1", 1, "ok")] * 2
    assert exported.limits_reached() == [(ours.run_id, 2)]
