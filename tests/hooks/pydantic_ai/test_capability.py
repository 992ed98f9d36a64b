"""Pydantic AI: a real agent loop with a stub model, every way a tool call can go."""

import asyncio

import pytest
from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import ToolFailed, UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.usage import UsageLimits

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool as Declared
from toolfault.hooks.pydantic_ai import TIMED_OUT, TOO_MANY_RETRIES, ToolfaultCapability
from toolfault.testing import assert_envelope

SECRET = "hunter2-planted"


def ok(x: int) -> str:
    return f"v{x}"


def boom(x: int) -> str:
    raise ValueError(SECRET)


async def refused_connection(x: int) -> str:
    raise ConnectionRefusedError(SECRET)


async def retry(x: int) -> str:
    raise ModelRetry("give a smaller x")


async def failed(x: int) -> str:
    raise ToolFailed("no such record")


async def slow(x: int) -> str:
    await asyncio.sleep(5)
    return ""


async def own_timeout(x: int) -> str:
    await asyncio.wait_for(asyncio.sleep(5), 0.01)
    return ""


def error_dict(x: int) -> dict:
    return {"error": SECRET}


def generic(x: int) -> str:
    return "An internal error occurred."


def declines(x: int) -> str:
    raise toolfault.ToolRefusal("declines", "slot_taken", "The slot is taken.")


def pay(x: int) -> str:
    return "paid"


@toolfault.guard("book")
def book(x: int) -> dict:
    if x > 9:
        raise toolfault.ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


TOOLS = [
    Tool(ok), Tool(boom), Tool(refused_connection), Tool(retry, max_retries=1), Tool(failed),
    Tool(slow, timeout=0.05, max_retries=1), Tool(own_timeout), Tool(error_dict), Tool(generic),
    Tool(declines), Tool(pay, requires_approval=True), Tool(book),
]  # fmt: skip


def make_agent(*calls, capability=None, instrumented=True, repeat=1, tools=TOOLS):
    script = [call for call in calls for _ in range(repeat)]

    def model(messages, info):
        if not script:
            return ModelResponse(parts=[TextPart("done")])
        name, args = script.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"call-{len(messages)}")])

    capabilities = [capability or ToolfaultCapability()]
    if instrumented:
        capabilities.append(Instrumentation())
    return Agent(
        FunctionModel(model),
        name="desk",
        tools=tools,
        capabilities=capabilities,
        output_type=[str, DeferredToolRequests],
    )


def returned(result):
    return [
        part.content
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


@pytest.mark.parametrize("instrumented", [True, False])
@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
        ("retry", {"x": 1}, ("failed", "INVALID_ARGUMENT", "model_retry", 1, "none")),
        ("failed", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("slow", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
        ("error_dict", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
        ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
        ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
    ],
)
async def test_a_call_the_run_survives_has_one_record_and_at_most_one_span(
    exported, tool, args, expected, instrumented
):
    await make_agent((tool, args), instrumented=instrumented).run("hi")
    assert exported.told() == [expected]
    [span] = exported.tool_spans()
    theirs = instrumented and expected[0] != "not_found"  # of an unknown tool they open none
    assert span.instrumentation_scope.name == ("pydantic-ai" if theirs else "toolfault")


@pytest.mark.parametrize(
    ("tool", "expected", "raised"),
    [
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown"), ValueError),
        ("own_timeout", ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown"), TimeoutError),
        ("refused_connection", ("failed", "UNAVAILABLE", "upstream_unavailable", 1, "none"), OSError),
        ("declines", ("declined", "CONFLICT", "slot_taken", 1, "none"), toolfault.ToolRefusal),
    ],
)  # fmt: skip
async def test_an_exception_still_ends_the_run_and_has_one_record(exported, tool, expected, raised):
    with pytest.raises(raised):
        await make_agent((tool, {"x": 1})).run("hi")
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


@pytest.fixture
def own_loop():
    """`run_sync` makes an event loop where there is none, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def test_the_sync_run_is_seen_and_names_run_conversation_and_agent(exported, own_loop):
    result = make_agent(("ok", {"x": 1})).run_sync("hi")
    [record] = exported.records()
    assert record[c.OUTCOME] == "ok"
    assert record[c.RUN_ID] == result.run_id
    assert record[c.CONVERSATION_ID] == result.conversation_id
    assert record[c.AGENT_NAME] == "desk"


async def test_an_invalid_argument_is_named(exported):
    await make_agent(("ok", {"x": "abc"})).run("hi")
    assert exported.records()[0][c.FIELD] == "x"


async def test_a_cancelled_call_is_reported_as_cancelled(
    exported, endless, cancelled_while_running
):
    agent = make_agent(("endless", {"x": 1}), tools=[Tool(endless)])
    await cancelled_while_running(agent.run("hi"), endless)
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (True, ("ok", None, None, 1, "applied")),
        (ToolDenied("not today"), ("refused", "PERMISSION_DENIED", "rejected", 0, "none")),
    ],
)
async def test_a_call_that_waits_is_not_reported_until_a_person_has_decided(
    exported, decision, expected
):
    agent = make_agent(("pay", {"x": 1}))
    waiting = await agent.run("hi")
    assert exported.told() == []
    [asked] = waiting.output.approvals
    await agent.run(
        message_history=waiting.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={asked.tool_call_id: decision}),
    )
    assert exported.told() == [expected]


@pytest.mark.parametrize("limits", [UsageLimits(request_limit=2), UsageLimits(tool_calls_limit=1)])
async def test_a_run_that_reaches_its_limit_is_an_event_of_its_own(exported, limits):
    with pytest.raises(UsageLimitExceeded):
        await make_agent(("ok", {"x": 1}), repeat=9).run("hi", usage_limits=limits)
    [event] = exported.named(c.RUN_LIMIT_EXCEEDED)
    assert event.attributes[c.AGENT_NAME] == "desk"


async def test_each_retry_the_model_makes_is_a_call_and_one_too_many_is_a_run_limit(exported):
    with pytest.raises(UnexpectedModelBehavior, match=TOO_MANY_RETRIES):
        await make_agent(("retry", {"x": 1}), repeat=3).run("hi")
    assert exported.told() == [("failed", "INVALID_ARGUMENT", "model_retry", 1, "none")] * 2
    assert len(exported.named(c.RUN_LIMIT_EXCEEDED)) == 1


async def test_the_tools_the_model_is_offered_are_declared_and_the_authors_word_wins(exported):
    capability = ToolfaultCapability(tools=[Declared(name="ok", writes=False)])
    await make_agent(("ok", {"x": 1}), capability=capability).run("hi")
    declared = {
        e.attributes[c.TOOL_NAME]: e.attributes[c.WRITES] for e in exported.named(c.TOOL_DECLARED)
    }
    assert set(declared) >= {tool.name for tool in TOOLS}
    assert declared["ok"] is False
    assert exported.told() == [("ok", None, None, 1, "none")]


async def test_mcp_annotations_of_a_tool_are_read(exported):
    read_only = Tool(ok, metadata={"annotations": {"readOnlyHint": True, "idempotentHint": True}})
    await make_agent(("ok", {"x": 1}), tools=[read_only]).run("hi")
    [declared] = exported.named(c.TOOL_DECLARED)
    assert declared.attributes[c.WRITES] is False
    assert declared.attributes[c.IDEMPOTENT] is True


SURVIVED = [
    ("ok", {"x": 1}), ("retry", {"x": 1}), ("failed", {"x": 1}), ("error_dict", {"x": 1}),
    ("generic", {"x": 1}), ("ok", {"x": "abc"}), ("nope", {"x": 1}),
]  # fmt: skip


async def test_an_observing_capability_changes_nothing_the_model_reads(exported):
    hooked = await make_agent(*SURVIVED).run("hi")
    bare = await make_agent(*SURVIVED, capability=Instrumentation()).run("hi")
    assert str(returned(hooked)) == str(returned(bare))


async def test_a_fault_of_the_capability_changes_nothing_the_model_reads(monkeypatch):
    bare = await make_agent(*SURVIVED, capability=Instrumentation()).run("hi")
    monkeypatch.setattr("toolfault.hooks.base.JoinedCall", None)
    hooked = await make_agent(*SURVIVED, capability=ToolfaultCapability(act=True)).run("hi")
    assert str(returned(hooked)) == str(returned(bare))


# --- acting ---------------------------------------------------------------------------------------


async def test_an_acting_capability_gives_the_model_the_envelope(exported):
    agent = make_agent(
        ("ok", {"x": 1}), ("boom", {"x": 1}), ("declines", {"x": 1}), ("book", {"x": 1}),
        capability=ToolfaultCapability(act=True),
    )  # fmt: skip
    good, broken, declined, guarded = returned(await agent.run("hi"))
    assert good == {"status": "ok", "output": "v1"}
    assert_envelope(broken, code="INTERNAL", action="stop_and_tell_user")
    assert SECRET not in str(broken)
    assert_envelope(declined, status="declined")
    assert guarded == {"status": "ok", "output": {"booked": 1}}
    assert [told[0] for told in exported.told()] == ["ok", "failed", "declined", "ok"]


async def test_an_acting_capability_repeats_by_our_policy(exported, monkeypatch):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    tries = []

    def flaky(x: int) -> str:
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    capability = ToolfaultCapability(act=True, max_attempts=3)
    agent = make_agent(("flaky", {"x": 1}), capability=capability, tools=[Tool(flaky)])
    assert returned(await agent.run("hi")) == [{"status": "ok", "output": "fine"}]
    assert exported.told() == [("ok", None, None, 2, "applied")]


async def test_the_budget_of_a_conversation_is_counted_and_told_once(exported):
    agent = make_agent(
        ("refused_connection", {"x": 1}), repeat=2, capability=ToolfaultCapability(act=True)
    )
    first, second = returned(await agent.run("hi"))
    assert_envelope(first, action="retry_later")
    assert_envelope(second, action="stop_and_tell_user")
    assert len(exported.named(c.BUDGET_EXHAUSTED)) == 1


async def test_instrument_gives_every_agent_the_capability_once(exported):
    toolfault.instrument()
    try:
        given = make_agent(("ok", {"x": 1}))
        plain = Agent(make_agent(("ok", {"x": 1})).model, tools=[ok])
    finally:
        toolfault.uninstrument()
    await given.run("hi")
    assert len(exported.records()) == 1
    await plain.run("hi")
    assert len(exported.records()) == 2


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("pydantic_ai_agent.py")


def test_the_lines_of_the_page_run(assert_lines_of_the_page_run):
    assert_lines_of_the_page_run("Pydantic AI")


# --- texts we match -------------------------------------------------------------------------------


async def test_a_tool_that_outran_its_timeout_is_still_told_in_the_words_we_look_for():
    result = await make_agent(("slow", {"x": 1}), capability=Instrumentation()).run("hi")
    assert returned(result)[0].startswith(TIMED_OUT)
