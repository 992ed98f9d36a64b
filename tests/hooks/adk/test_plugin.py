"""Google ADK: a real agent loop with a stub model, every way a tool call can go."""

import asyncio

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.adk.tools.base_tool import BaseTool
from google.genai import types

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool
from toolfault.hooks.adk import MISSING_ARGUMENTS, ToolfaultPlugin, guarded
from toolfault.testing import assert_envelope

SECRET = "hunter2-planted"


def call(name, *, call_id="call-1", **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args, id=call_id))


def saying(*parts):
    return LlmResponse(content=types.Content(role="model", parts=list(parts)))


class Stub(BaseLlm):
    script: list
    loop: bool = False

    async def generate_content_async(self, llm_request, stream=False):
        if self.loop:
            yield self.script[0]
        elif self.script:
            yield self.script.pop(0)
        else:
            yield saying(types.Part(text="done"))


def ok(x: int) -> dict:
    """Answers."""
    return {"value": x}


async def aok(x: int) -> str:
    """Answers, in plain text."""
    return "plain"


def boom(x: int) -> dict:
    """Breaks."""
    raise ValueError(SECRET)


async def refused_connection(x: int) -> dict:
    """Never reaches its service."""
    raise ConnectionRefusedError(SECRET)


async def slow(x: int) -> dict:
    """Outruns its own time."""
    await asyncio.wait_for(asyncio.sleep(5), 0.01)


def error_dict(x: int) -> dict:
    """Returns an error."""
    return {"error": SECRET}


def generic(x: int) -> dict:
    """Hides its error."""
    return {"result": "An internal error occurred."}


def declines(x: int) -> dict:
    """Says no."""
    raise toolfault.ToolRefusal("declines", "slot_taken", "The slot is taken.")


def pay(x: int) -> dict:
    """Pays."""
    return {"paid": x}


@toolfault.guard("book", writes=True)
def book(x: int) -> dict:
    """Books."""
    if x > 9:
        raise toolfault.ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


TOOLS = [ok, aok, boom, refused_connection, slow, error_dict, generic, declines, book]
TOOLS.append(FunctionTool(pay, require_confirmation=True))


def make_runner(script, *, plugins, tools=TOOLS, loop=False):
    agent = LlmAgent(name="desk", model=Stub(model="stub", script=script, loop=loop), tools=tools)
    return InMemoryRunner(app=App(name="app", root_agent=agent, plugins=plugins))


def message(text="hi"):
    return types.Content(role="user", parts=[types.Part(text=text)])


async def drive(runner, said=None, *, session=None, run_config=None):
    if session is None:
        session = await runner.session_service.create_session(app_name="app", user_id="u")
    return session, [
        event
        async for event in runner.run_async(
            user_id="u",
            session_id=session.id,
            new_message=said or message(),
            run_config=run_config or RunConfig(),
        )
    ]


def answers(happened):
    return [r.response for event in happened for r in event.get_function_responses()]


async def run(script, *, plugin=None, tools=TOOLS):
    runner = make_runner(script, plugins=[plugin or ToolfaultPlugin()], tools=tools)
    _, happened = await drive(runner)
    return answers(happened)


@pytest.mark.parametrize(
    ("tool", "args", "expected"),
    [
        ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("aok", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 1}, ("ok", None, None, 1, "applied")),
        ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
        ("error_dict", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
        ("ok", {}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
        ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
    ],
)
async def test_a_call_the_run_survives_has_one_record_on_the_frameworks_span(
    exported, tool, args, expected
):
    await run([saying(call(tool, **args))])
    assert exported.told() == [expected]
    [span] = exported.tool_spans()
    assert span.name == f"execute_tool {tool}"
    assert span.attributes[c.OUTCOME] == expected[0]
    assert span.attributes[c.TOOL_CALL_ID] == "call-1"


@pytest.mark.parametrize(
    ("tool", "expected", "raised"),
    [
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 1, "unknown"), ValueError),
        ("slow", ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown"), TimeoutError),
        ("refused_connection", ("failed", "UNAVAILABLE", "upstream_unavailable", 1, "none"), OSError),
        ("declines", ("declined", "CONFLICT", "slot_taken", 1, "none"), toolfault.ToolRefusal),
    ],
)  # fmt: skip
async def test_an_exception_still_ends_the_run_and_has_one_record(exported, tool, expected, raised):
    with pytest.raises(raised):
        await run([saying(call(tool, x=1))])
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


async def test_the_record_names_the_frameworks_conversation_run_and_agent(exported):
    runner = make_runner([saying(call("ok", x=1))], plugins=[ToolfaultPlugin()])
    session, happened = await drive(runner)
    [record] = exported.records()
    assert record[c.CONVERSATION_ID] == session.id
    assert record[c.AGENT_NAME] == "desk"
    assert record[c.RUN_ID] == happened[0].invocation_id


def test_the_sync_runner_is_seen_as_well(exported):
    runner = make_runner([saying(call("ok", x=1))], plugins=[ToolfaultPlugin()])
    session = runner.session_service.create_session_sync(app_name="app", user_id="u")
    list(runner.run(user_id="u", session_id=session.id, new_message=message()))
    assert exported.told() == [("ok", None, None, 1, "applied")]


async def test_parallel_calls_are_told_apart(exported):
    await run([saying(call("ok", x=1), call("book", call_id="call-2", x=10))])
    assert sorted(told[0] for told in exported.told()) == ["failed", "ok"]
    assert {r[c.TOOL_CALL_ID] for r in exported.records()} == {"call-1", "call-2"}


async def test_a_cancelled_call_is_reported_as_cancelled(
    exported, endless, cancelled_while_running
):
    await cancelled_while_running(run([saying(call("endless", x=1))], tools=[endless]), endless)
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


async def confirmation(confirmed, plugin):
    runner = make_runner([saying(call("pay", x=1))], plugins=[plugin])
    session, happened = await drive(runner)
    [asked] = [
        f.id
        for e in happened
        for f in e.get_function_calls()
        if f.name == "adk_request_confirmation"
    ]
    return runner, session, types.Content(
        role="user",
        parts=[
            types.Part(
                function_response=types.FunctionResponse(
                    id=asked,
                    name="adk_request_confirmation",
                    response={"confirmed": confirmed},
                )
            )
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("confirmed", "expected"),
    [
        (True, ("ok", None, None, 1, "applied")),
        (False, ("refused", "PERMISSION_DENIED", "rejected", 0, "none")),
    ],
)
async def test_a_call_that_waits_is_not_reported_until_a_person_has_decided(
    exported, confirmed, expected
):
    runner, session, decision = await confirmation(confirmed, ToolfaultPlugin())
    assert exported.told() == []
    await drive(runner, decision, session=session)
    assert exported.told() == [expected]


async def test_a_run_that_reaches_its_limit_is_an_event_of_its_own(exported):
    runner = make_runner([saying(call("ok", x=1))], plugins=[ToolfaultPlugin()], loop=True)
    with pytest.raises(LlmCallsLimitExceededError):
        await drive(runner, run_config=RunConfig(max_llm_calls=2))
    [event] = exported.named(c.RUN_LIMIT_EXCEEDED)
    assert event.attributes[c.AGENT_NAME] == "desk"


async def test_an_unknown_tool_an_unmapped_error_and_a_generic_message_are_events_as_well(exported):
    await run([saying(call("nope", x=1)), saying(call("generic", call_id="call-2", x=1))])
    with pytest.raises(ValueError, match=SECRET):
        await run([saying(call("boom", x=1))])
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.UNREGISTERED_TOOL)] == ["nope"]
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.GENERIC_ERROR)] == ["generic"]
    assert [e.attributes[c.TOOL_NAME] for e in exported.named(c.BACKSTOP_REACHED)] == ["boom"]


async def test_the_tools_the_model_is_offered_are_declared_and_the_authors_word_wins(exported):
    await run(
        [saying(call("ok", x=1))], plugin=ToolfaultPlugin(tools=[Tool(name="ok", writes=False)])
    )
    declared = {
        e.attributes[c.TOOL_NAME]: e.attributes[c.WRITES] for e in exported.named(c.TOOL_DECLARED)
    }
    assert set(declared) >= {"ok", "aok", "boom", "pay"}
    assert declared["ok"] is False
    assert declared["boom"] is True
    assert exported.told() == [("ok", None, None, 1, "none")]


async def test_an_error_that_another_plugin_answers_is_counted_once(exported):
    class Answers(BasePlugin):
        async def on_tool_error_callback(self, *, tool, tool_args, tool_context, error):
            return {"status": "unavailable"}

    runner = make_runner(
        [saying(call("boom", x=1))], plugins=[ToolfaultPlugin(), Answers(name="answers")]
    )
    _, happened = await drive(runner)
    assert answers(happened) == [{"status": "unavailable"}]
    assert exported.told() == [("failed", "INTERNAL", "unmapped_failure", 1, "unknown")]


async def test_a_call_that_another_plugin_breaks_does_not_swallow_the_next_one(exported):
    class Breaks(BasePlugin):
        async def before_tool_callback(self, *, tool, tool_args, tool_context):
            raise KeyError

    runner = make_runner(
        [saying(call("book", x=1))], plugins=[ToolfaultPlugin(), Breaks(name="breaks")]
    )
    with pytest.raises(RuntimeError, match="breaks"):
        await drive(runner)
    assert exported.told() == [("cancelled", None, None, 0, "none")]
    book(1)
    assert sorted(told[0] for told in exported.told()) == ["cancelled", "ok"]


SURVIVED = [
    saying(call("ok", x=1)), saying(call("ok")), saying(call("error_dict", x=1)),
    saying(call("generic", x=1)), saying(call("nope", x=1)),
]  # fmt: skip


async def answered(plugins):
    _, happened = await drive(make_runner(list(SURVIVED), plugins=plugins))
    return answers(happened)


async def test_an_observing_plugin_changes_nothing_the_model_reads(exported):
    assert await answered([ToolfaultPlugin()]) == await answered([])


async def test_a_fault_of_the_plugin_changes_nothing_the_model_reads(monkeypatch):
    bare = await answered([])
    monkeypatch.setattr("toolfault.hooks.base.JoinedCall", None)
    assert await answered([ToolfaultPlugin(act=True)]) == bare


# --- acting ---------------------------------------------------------------------------------------


async def test_an_acting_plugin_gives_the_model_the_envelope(exported):
    plugin = ToolfaultPlugin(act=True)
    script = [
        saying(call("ok", x=1)),
        saying(call("boom", call_id="call-2", x=1)),
        saying(call("declines", call_id="call-3", x=1)),
        saying(call("nope", call_id="call-4", x=1)),
        saying(call("book", call_id="call-5", x=1)),
    ]
    good, broken, declined, unknown, guarded_one = await run(script, plugin=plugin)
    assert good == {"status": "ok", "output": {"value": 1}}
    assert_envelope(broken, code="INTERNAL", action="stop_and_tell_user")
    assert SECRET not in str(broken)
    assert_envelope(declined, status="declined")
    assert_envelope(unknown, code="NOT_FOUND", action="stop_and_tell_user")
    assert guarded_one == {"status": "ok", "output": {"booked": 1}}
    assert [told[0] for told in exported.told()] == ["ok", "failed", "declined", "not_found", "ok"]


async def test_an_acting_plugin_repeats_by_our_policy(exported, monkeypatch):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    tries = []

    def flaky(x: int) -> dict:
        """Works the second time."""
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return {"value": x}

    plugin = ToolfaultPlugin(act=True, max_attempts=3)
    assert await run([saying(call("flaky", x=1))], plugin=plugin, tools=[flaky]) == [
        {"status": "ok", "output": {"value": 1}}
    ]
    assert exported.told() == [("ok", None, None, 2, "applied")]


async def test_the_budget_of_an_acting_plugin_lives_on_the_session(exported):
    runner = make_runner(
        [
            saying(call("refused_connection", x=1)),
            saying(call("refused_connection", call_id="2", x=1)),
        ],
        plugins=[ToolfaultPlugin(act=True)],
    )
    session, happened = await drive(runner)
    first, second = answers(happened)
    assert_envelope(first, action="retry_later")
    assert_envelope(second, action="stop_and_tell_user")
    kept = await runner.session_service.get_session(
        app_name="app", user_id="u", session_id=session.id
    )
    assert kept.state["toolfault.failures:refused_connection"] == 2
    assert len(exported.named(c.BUDGET_EXHAUSTED)) == 1


async def test_an_observing_plugin_leaves_the_session_alone(exported):
    runner = make_runner([saying(call("ok", x=1))], plugins=[ToolfaultPlugin()])
    session, _ = await drive(runner)
    kept = await runner.session_service.get_session(
        app_name="app", user_id="u", session_id=session.id
    )
    assert kept.state == {}


# --- tools one does not own -----------------------------------------------------------------------


class Foreign(BaseTool):
    """A tool of somebody else, with everything that must survive."""

    def __init__(self):
        super().__init__(name="foreign", description="Somebody else's.", is_long_running=True)

    def _get_declaration(self):
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema={"type": "object", "properties": {"x": {"type": "integer"}}},
        )

    async def process_llm_request(self, *, tool_context, llm_request):
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        llm_request.append_instructions(["Use it with care."])

    async def run_async(self, *, args, tool_context):
        if args["x"] > 9:
            raise ConnectionRefusedError(SECRET)
        return {"value": args["x"]}


def test_a_guarded_tool_is_declared_like_the_original():
    for tool in (Foreign(), FunctionTool(ok), FunctionTool(pay, require_confirmation=True)):
        twin = guarded(tool, writes=False)
        assert twin._get_declaration() == tool._get_declaration()
        assert (twin.name, twin.description, twin.is_long_running) == (
            tool.name, tool.description, tool.is_long_running,
        )  # fmt: skip
        assert type(twin) is type(tool)
        assert type(twin).process_llm_request is type(tool).process_llm_request


@pytest.mark.parametrize("plugins", [[], [ToolfaultPlugin()]])
async def test_a_guarded_tool_answers_with_envelopes_and_counts_once(exported, plugins):
    runner = make_runner(
        [saying(call("foreign", x=1)), saying(call("foreign", call_id="call-2", x=10))],
        plugins=plugins,
        tools=[guarded(Foreign())],
    )
    _, happened = await drive(runner)
    good, broken = answers(happened)
    assert good == {"status": "ok", "output": {"value": 1}}
    assert_envelope(broken, code="UNAVAILABLE", action="retry_later")
    assert [told[0] for told in exported.told()] == ["ok", "failed"]
    assert SECRET not in str(broken)


# --- whose span -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "opened"), [("auto", 0), ("always", 1), ("never", 0)])
async def test_whose_span_carries_the_record_is_ones_choice(exported, span, opened):
    await run([saying(call("ok", x=1))], plugin=ToolfaultPlugin(span=span))
    assert len(exported.records()) == 1
    ours = [s for s in exported.tool_spans() if s.instrumentation_scope.name == "toolfault"]
    assert len(ours) == opened


async def test_instrument_gives_every_runner_the_plugin_once(exported):
    toolfault.instrument()
    toolfault.instrument()
    try:
        await drive(make_runner([saying(call("ok", x=1))], plugins=[]))
    finally:
        toolfault.uninstrument()
    assert exported.told() == [("ok", None, None, 1, "applied")]
    await drive(make_runner([saying(call("ok", x=1))], plugins=[]))
    assert len(exported.records()) == 1


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("adk_agent.py")


def test_the_lines_of_the_page_run(assert_lines_of_the_page_run):
    assert_lines_of_the_page_run("Google ADK")


# --- texts we match -------------------------------------------------------------------------------


async def test_adk_still_tells_missing_arguments_in_the_words_we_look_for():
    [told] = await run([saying(call("ok"))])
    assert MISSING_ARGUMENTS in told["error"]
