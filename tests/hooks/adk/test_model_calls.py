"""Google ADK: what its callbacks tell of model calls."""

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.genai import types

import toolfault
from toolfault import callers, retry_model_call
from toolfault import conventions as c
from toolfault.hooks.adk import ToolfaultPlugin

SECRET = "hunter2-planted"


class ProviderError(Exception):
    def __init__(self, status):
        super().__init__(SECRET)
        self.status_code = status


def text(words, **options):
    parts = [types.Part(text=words)]
    return LlmResponse(content=types.Content(role="model", parts=parts), **options)


def calling(number):
    part = types.Part(function_call=types.FunctionCall(name="ok", args={}, id=f"call-{number}"))
    return LlmResponse(content=types.Content(role="model", parts=[part]))


def ok() -> dict:
    """Answers."""
    return {}


class Stub(BaseLlm):
    """Plays a script: each turn is a list of answers, of which an exception is raised."""

    script: list

    async def generate_content_async(self, llm_request, stream=False):
        for answer in self.script.pop(0):
            if isinstance(answer, Exception):
                raise answer
            yield answer


class Repeating(Stub):
    """Repeats a turn that fails, as an application does that has no framework for it."""

    async def generate_content_async(self, llm_request, stream=False):
        def ask():
            return Stub.generate_content_async(self, llm_request)

        async for answer in retry_model_call(ask, model="mine"):
            yield answer


class Answers(BasePlugin):
    """Has an answer in the model's place."""

    async def before_model_callback(self, *, callback_context, llm_request):
        return text("cached")


class Recovers(BasePlugin):
    """Has an answer for a model that fails."""

    async def on_model_error_callback(self, *, callback_context, llm_request, error):
        return text("sorry")


async def run(*script, plugins=(), model=Stub, run_config=None):
    agent = LlmAgent(name="desk", model=model(model="small-1", script=list(script)), tools=[ok])
    app = App(name="app", root_agent=agent, plugins=[ToolfaultPlugin(), *plugins])
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text="hi")])
    async for _ in runner.run_async(
        user_id="u", session_id=session.id, new_message=said, run_config=run_config or RunConfig()
    ):
        pass
    return session


async def test_each_turn_of_the_model_is_one_call_of_the_frameworks_run(exported):
    session = await run([calling(1)], [text("done")])

    first, second = exported.named(c.MODEL_CALL)
    told = dict(first.attributes)
    assert told.pop(c.RUN_ID) == second.attributes[c.RUN_ID]
    assert told == {
        c.REQUEST_MODEL: "small-1",
        c.COUNT: 1,
        c.RESULT: "ok",
        c.CONVERSATION_ID: session.id,
        c.AGENT_NAME: "desk",
    }
    assert exported.named(c.MODEL_ERROR) == []


@pytest.mark.parametrize(
    ("status", "code", "result"),
    [(503, "UNAVAILABLE", "exhausted"), (400, "INVALID_ARGUMENT", "error")],
)
async def test_a_model_that_fails_is_told_by_code_and_class_and_never_by_its_words(
    exported, status, code, result
):
    with pytest.raises(ProviderError):
        await run([ProviderError(status)])

    assert exported.model_calls() == [("small-1", 1, result)]
    assert exported.model_errors() == [(code, "ProviderError")]
    assert SECRET not in exported.words()


async def test_a_failure_that_a_plugin_answers_is_a_failure_of_the_model_all_the_same(exported):
    await run([ProviderError(503)], plugins=[Recovers(name="recovers")])

    assert exported.model_calls() == [("small-1", 1, "exhausted")]


async def test_where_a_plugin_answers_in_its_place_no_model_was_called(exported):
    await run(plugins=[Answers(name="answers")])

    assert exported.model_calls() == []


async def test_a_stream_that_breaks_after_its_first_words_could_not_be_repeated(exported):
    with pytest.raises(ProviderError):
        await run(
            [text("Hel", partial=True), ProviderError(503)],
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )

    assert exported.model_calls() == [("small-1", 1, "error")]


async def test_a_model_that_the_application_repeats_is_counted_once_with_its_attempts(
    exported, monkeypatch
):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    with toolfault.run() as ours:
        await run([ProviderError(503)], [text("done")], model=Repeating)

    assert exported.model_calls() == [("mine", 2, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (1, 2)
    assert len(exported.named(c.MODEL_RETRY)) == 1


async def test_the_applications_run_stops_at_its_limit(exported):
    turns = [[calling(number)] for number in range(9)]
    with toolfault.run(max_model_calls=2) as ours, pytest.raises(RuntimeError) as stopped:
        await run(*turns)

    assert isinstance(stopped.value.__cause__, toolfault.RunLimitExceededError)
    assert callers.classify(stopped.value).reason == "run_limit_exceeded"
    assert exported.model_calls() == [("small-1", 1, "ok")] * 2
    assert exported.limits_reached() == [(ours.run_id, 2)]
