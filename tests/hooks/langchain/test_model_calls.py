"""LangChain: what its callbacks tell of model calls, and who repeats them."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph

import toolfault
from toolfault import conventions as c
from toolfault import retry_model_call
from toolfault.hooks import langgraph, patch
from toolfault.hooks.langchain import ToolfaultMiddleware
from toolfault.hooks.langgraph import ToolfaultHandler
from toolfault.hooks.langgraph_models import MODELS

SECRET = "hunter2-planted"
HI = {"messages": [("user", "hi")]}
SEEN = {"callbacks": [ToolfaultHandler()]}


class ProviderError(Exception):
    def __init__(self, status):
        super().__init__(SECRET)
        self.status_code = status


class Stub(GenericFakeChatModel):
    """Plays a script, of which an exception is raised."""

    model: str = "small-1"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, *args, **kwargs):
        answer = next(self.messages)
        if isinstance(answer, Exception):
            raise answer
        self.messages = iter([answer, *self.messages])
        return super()._generate(*args, **kwargs)


def model(*script, **options):
    return Stub(messages=iter(script), **options)


@tool
def ok() -> str:
    """Answers."""
    return "fine"


def calling(number):
    return AIMessage("", tool_calls=[{"name": "ok", "args": {}, "id": f"call-{number}"}])


DONE = AIMessage("done")


def make_agent(*script, before=(), after=()):
    middleware = [*before, ToolfaultMiddleware(), *after]
    return create_agent(model(*script), [ok], middleware=middleware, name="desk")


def test_each_turn_of_the_model_is_one_call_of_the_frameworks_run(exported):
    make_agent(calling(1), DONE).invoke(HI, {"configurable": {"thread_id": "c-1"}})

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
    with pytest.raises(ProviderError):
        make_agent(ProviderError(status)).invoke(HI)
    with pytest.raises(ProviderError):
        await make_agent(ProviderError(status)).ainvoke(HI)

    assert exported.model_calls() == [("small-1", 1, result)] * 2
    assert exported.model_errors() == [(code, "ProviderError")] * 2
    assert SECRET not in exported.words()


def test_what_a_middleware_repeats_is_another_attempt_of_the_same_call(exported):
    again = ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    with toolfault.run() as ours:
        make_agent(ProviderError(503), calling(1), DONE, after=[again]).invoke(HI)

    assert exported.model_calls() == [("small-1", 2, "ok"), ("small-1", 1, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (2, 3)
    assert [e.attributes[c.COUNT] for e in exported.named(c.MODEL_RETRY)] == [1]


def test_attempts_that_run_out_are_told_though_the_agent_goes_on(exported):
    again = ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="continue")
    make_agent(ProviderError(503), ProviderError(503), after=[again]).invoke(HI)

    assert exported.model_calls() == [("small-1", 2, "exhausted")]


def test_a_model_that_was_fallen_back_on_is_the_one_that_answered(exported):
    other = ModelFallbackMiddleware(model(DONE, model="small-2"))
    make_agent(ProviderError(503), after=[other]).invoke(HI)

    assert exported.model_calls() == [("small-2", 2, "ok")]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (lambda: model(DONE), ("small-1", 1, "ok")),
        (
            lambda: model(ProviderError(503), DONE).with_retry(
                stop_after_attempt=2, wait_exponential_jitter=False
            ),
            ("small-1", 2, "ok"),
        ),
        (lambda: FakeListLLM(responses=["done"]), ("FakeListLLM", 1, "ok")),
    ],
)
def test_a_model_alone_is_seen_with_the_handler(exported, asked, told):
    asked().invoke("hi", SEEN)

    assert exported.model_calls() == [told]


async def test_a_graph_with_the_handler_and_a_process_that_is_hooked_count_a_call_once(exported):
    def ask(state):
        either = model(ProviderError(503)).with_fallbacks([model(DONE, model="small-2")])
        return {"messages": [either.invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("ask", ask)
    graph = graph.set_entry_point("ask").set_finish_point("ask").compile()
    langgraph.instrument()
    try:
        graph.invoke(HI, SEEN)
        await graph.ainvoke(HI)
        make_agent(DONE).invoke(HI)
    finally:
        patch.restore()
    graph.invoke(HI)

    assert exported.model_calls() == [("small-2", 2, "ok")] * 2 + [("small-1", 1, "ok")]


def test_a_stream_is_a_call_and_one_that_breaks_could_not_be_repeated(exported):
    class Breaks(Stub):
        def _stream(self, *args, **kwargs):
            yield next(super()._stream(*args, **kwargs))
            raise ProviderError(503)

    assert len(list(model(AIMessage("well done")).stream("hi", SEEN))) > 1
    with pytest.raises(ProviderError):
        list(Breaks(messages=iter([AIMessage("well done")])).stream("hi", SEEN))

    assert exported.model_calls() == [("small-1", 1, "ok"), ("small-1", 1, "error")]


async def test_a_cancelled_call_has_no_result(exported):
    asked = asyncio.Event()

    class Hangs(Stub):
        async def _agenerate(self, *args, **kwargs):
            asked.set()
            await asyncio.sleep(60)

    agent = create_agent(Hangs(messages=iter([])), [ok], middleware=[ToolfaultMiddleware()])
    running = asyncio.ensure_future(agent.ainvoke(HI))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert exported.model_calls() == [("small-1", 1, None)]


def test_a_model_that_the_application_repeats_is_counted_once_on_either_side(exported, monkeypatch):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)

    class Repeating(Stub):
        def _generate(self, *args, **kwargs):
            def ask():
                return super(Repeating, self)._generate(*args, **kwargs)

            return retry_model_call(ask, model="inside")

    with toolfault.run() as ours:
        Repeating(messages=iter([ProviderError(503), DONE])).invoke("hi", SEEN)
        again = model(ProviderError(503), DONE)
        retry_model_call(lambda: again.invoke("hi", SEEN), model="outside")

    assert exported.model_calls() == [("inside", 2, "ok"), ("outside", 2, "ok")]
    assert (ours.model_calls, ours.model_attempts) == (2, 4)


def test_the_order_of_the_handlers_does_not_matter(exported):
    model(DONE).invoke("hi", {"callbacks": [MODELS, *SEEN["callbacks"]]})

    assert exported.model_calls() == [("small-1", 1, "ok")]


async def test_the_applications_run_stops_at_its_limit(exported):
    calls = [calling(number) for number in range(9)]
    again = ModelRetryMiddleware(initial_delay=0)  # repeats whatever it meets, the limit too
    with toolfault.run(max_model_calls=2) as ours:
        with pytest.raises(toolfault.RunLimitExceededError):
            make_agent(*calls, after=[again]).invoke(HI)
        with pytest.raises(toolfault.RunLimitExceededError):
            await model(DONE).ainvoke("hi", SEEN)

    assert exported.model_calls() == [("small-1", 1, "ok")] * 2
    assert exported.limits_reached() == [(ours.run_id, 2)]
