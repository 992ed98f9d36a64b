"""Strands Agents: a real agent loop with a stub model, every way a tool call can go."""

import asyncio
import json

import pytest
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent, HookProvider
from strands.models.model import Model

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool
from toolfault.hooks.strands import ToolfaultHooks
from toolfault.hooks.strands_told import INVALID_ARGUMENTS
from toolfault.testing import assert_envelope

SECRET = "hunter2-planted"


class Stub(Model):
    def __init__(self, script):
        self.script, self.turn = list(script), 0

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        yield {"messageStart": {"role": "assistant"}}
        calls = self.script.pop(0) if self.script else []
        for name, args in calls:
            self.turn += 1
            use = {"name": name, "toolUseId": f"call-{self.turn}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
            yield {"contentBlockStop": {}}
        if calls:
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


@tool
def ok(x: int) -> str:
    """Answers."""
    return f"v{x}"


@tool
def boom(x: int) -> str:
    """Breaks."""
    raise ValueError(SECRET)


@tool
async def refused_connection(x: int) -> str:
    """Never reaches its service."""
    raise ConnectionRefusedError(SECRET)


@tool
async def own_timeout(x: int) -> str:
    """Outruns its own time."""
    await asyncio.wait_for(asyncio.sleep(5), 0.01)


@tool
def error_status(x: int) -> dict:
    """Returns an error as the framework wants it."""
    return {"status": "error", "content": [{"text": SECRET}]}


@tool
def error_dict(x: int) -> dict:
    """Returns an error of its own."""
    return {"error": SECRET}


@tool
def generic(x: int) -> str:
    """Hides its error."""
    return "An internal error occurred."


@tool
def declines(x: int) -> str:
    """Says no."""
    raise toolfault.ToolRefusal("declines", "slot_taken", "The slot is taken.")


@tool
@toolfault.guard("book")
def book(x: int) -> dict:
    """Books."""
    if x > 9:
        raise toolfault.ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


TOOLS = [
    ok, boom, refused_connection, own_timeout, error_status, error_dict, generic,
    declines, book,
]  # fmt: skip


class Policy(HookProvider):
    """What other hooks do to a call: cancel it, ask a person, repeat it."""

    def __init__(self, *, cancel=None, ask=False, repeat=0):
        self.cancel, self.ask, self.repeat = cancel, ask, repeat

    def register_hooks(self, registry, **kwargs):
        registry.add_callback(BeforeToolCallEvent, self.before)
        if self.repeat:
            registry.add_callback(AfterToolCallEvent, self.after)

    def before(self, event):
        if self.cancel:
            event.cancel_tool = self.cancel
        elif self.ask and event.interrupt("approve", reason="pay?") != "yes":
            event.cancel_tool = "denied"

    def after(self, event):
        if event.exception is not None and self.repeat:
            self.repeat -= 1
            event.retry = True


def make_agent(*calls, hooks=None, policy=None, tools=TOOLS, **options):
    given = [hooks or ToolfaultHooks()]
    if policy is not None:
        given.append(policy)
    script = [[call] if isinstance(call, tuple) else call for call in calls]
    return Agent(
        model=Stub(script), name="desk", tools=tools, hooks=given, callback_handler=None, **options
    )


def returned(agent):
    """What the model read of the tools."""
    return [
        block["toolResult"]
        for message in agent.messages
        for block in message["content"]
        if "toolResult" in block
    ]


CASES = [
    ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
    ("book", {"x": 1}, ("ok", None, None, 1, "applied")),
    ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
    ("boom", {"x": 1}, ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
    ("refused_connection", {"x": 1}, ("failed", "UNAVAILABLE", "upstream_unavailable", 1, "none")),
    ("own_timeout", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
    ("declines", {"x": 1}, ("declined", "CONFLICT", "slot_taken", 1, "none")),
    ("error_status", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ("error_dict", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
    ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
    ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
]


@pytest.mark.parametrize(("name", "args", "expected"), CASES)
async def test_a_call_has_one_record_on_the_frameworks_span(exported, name, args, expected):
    await make_agent((name, args)).invoke_async("hi")
    assert exported.told() == [expected]
    [span] = exported.tool_spans()
    assert span.instrumentation_scope.name == "strands.telemetry.tracer"
    assert span.attributes[c.OUTCOME] == expected[0]


def test_the_sync_call_is_seen_and_names_session_and_agent(exported):
    agent = make_agent(("ok", {"x": 1}), ("boom", {"x": 1}))
    agent("hi")
    first, second = exported.records()
    assert [first[c.OUTCOME], second[c.OUTCOME]] == ["ok", "failed"]
    assert first[c.CONVERSATION_ID] == agent.session_id
    assert first[c.AGENT_NAME] == "desk"
    assert first[c.RUN_ID] == second[c.RUN_ID]


async def test_parallel_calls_are_told_apart(exported):
    await make_agent([("ok", {"x": 1}), ("book", {"x": 10}), ("boom", {"x": 1})]).invoke_async("hi")
    assert sorted(told[0] for told in exported.told()) == ["failed", "failed", "ok"]
    assert {r[c.TOOL_CALL_ID] for r in exported.records()} == {"call-1", "call-2", "call-3"}


async def test_an_invalid_argument_is_named(exported):
    await make_agent(("ok", {"x": "abc"})).invoke_async("hi")
    assert exported.records()[0][c.FIELD] == "x"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("refused_connection", ("failed", "UNAVAILABLE", "upstream_unavailable", 3, "none")),
        ("boom", ("failed", "INTERNAL", "unmapped_failure", 3, "unknown")),
    ],
)
async def test_attempts_that_another_hook_asks_for_are_attempts_of_one_call(
    exported, name, expected
):
    await make_agent((name, {"x": 1}), policy=Policy(repeat=2)).invoke_async("hi")
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 3


async def test_a_guarded_tool_that_another_hook_repeats_is_one_call(exported):
    tries = []

    @tool
    @toolfault.guard("flaky", on_error="raise", idempotent=True)
    def flaky(x: int) -> str:
        """Works the second time."""
        tries.append(x)
        if len(tries) == 1:
            raise TimeoutError
        return "fine"

    agent = make_agent(("flaky", {"x": 1}), policy=Policy(repeat=2), tools=[flaky])
    await agent.invoke_async("hi")
    assert exported.told() == [("ok", None, None, 2, "applied")]


async def test_a_call_that_policy_cancels_is_refused(exported):
    await make_agent(("ok", {"x": 1}), policy=Policy(cancel="not allowed")).invoke_async("hi")
    assert exported.told() == [("refused", "PERMISSION_DENIED", "rejected", 0, "none")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("yes", ("ok", None, None, 1, "applied")),
        ("no", ("refused", "PERMISSION_DENIED", "rejected", 0, "none")),
    ],
)
async def test_a_call_that_waits_is_not_reported_until_a_person_has_decided(
    exported, answer, expected
):
    agent = make_agent(("ok", {"x": 1}), policy=Policy(ask=True))
    waiting = await agent.invoke_async("hi")
    assert waiting.stop_reason == "interrupt"
    assert exported.told() == []
    response = {"interruptId": waiting.interrupts[0].id, "response": answer}
    await agent.invoke_async([{"interruptResponse": response}])
    assert exported.told() == [expected]


async def test_a_tool_that_interrupts_itself_has_not_ended(exported):
    @tool(context=True)
    def asks(tool_context) -> str:
        """Asks a person."""
        return tool_context.interrupt("which", reason="which one?")

    agent = make_agent(("asks", {}), tools=[asks])
    waiting = await agent.invoke_async("hi")
    assert exported.told() == []
    response = {"interruptId": waiting.interrupts[0].id, "response": "this"}
    await agent.invoke_async([{"interruptResponse": response}])
    assert exported.told() == [("ok", None, None, 1, "applied")]


async def test_a_cancelled_call_is_reported_as_cancelled(
    exported, endless, cancelled_while_running
):
    agent = make_agent(("endless", {"x": 1}), tools=[tool(endless)])
    await cancelled_while_running(agent.invoke_async("hi"), endless)
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


async def test_a_run_that_reaches_its_limit_is_an_event_of_its_own(exported):
    agent = make_agent(*[("ok", {"x": 1})] * 5)
    result = await agent.invoke_async("hi", limits={"turns": 2})
    assert result.stop_reason == "limit_turns"
    [event] = exported.named(c.RUN_LIMIT_EXCEEDED)
    assert event.attributes[c.AGENT_NAME] == "desk"


async def test_the_tools_of_the_agent_are_declared_and_the_authors_word_wins(exported):
    hooks = ToolfaultHooks(tools=[Tool(name="ok", writes=False)])
    await make_agent(("ok", {"x": 1}), hooks=hooks).invoke_async("hi")
    declared = {
        e.attributes[c.TOOL_NAME]: e.attributes[c.WRITES] for e in exported.named(c.TOOL_DECLARED)
    }
    assert set(declared) >= {one.tool_name for one in TOOLS}
    assert declared["ok"] is False
    assert exported.told() == [("ok", None, None, 1, "none")]


# --- acting ---------------------------------------------------------------------------------------


async def test_acting_hooks_give_the_model_the_envelope(exported):
    names = ["ok", "boom", "declines", "nope", "book"]
    agent = make_agent(*[(name, {"x": 1}) for name in names], hooks=ToolfaultHooks(act=True))
    await agent.invoke_async("hi")
    good, broken, declined, unknown, guarded = returned(agent)
    assert good["content"] == [{"json": {"status": "ok", "output": "v1"}}]
    assert broken["status"] == "error"
    assert_envelope(broken["content"][0]["json"], code="INTERNAL", action="stop_and_tell_user")
    assert SECRET not in str(broken)
    assert declined["status"] == "success"
    assert_envelope(declined["content"][0]["json"], status="declined")
    assert_envelope(unknown["content"][0]["json"], code="NOT_FOUND")
    assert json.loads(guarded["content"][0]["text"]) == {"status": "ok", "output": {"booked": 1}}
    outcomes = sorted(told[0] for told in exported.told())
    assert outcomes == ["declined", "failed", "not_found", "ok", "ok"]


async def test_acting_hooks_repeat_by_our_policy(exported, monkeypatch):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    tries = []

    @tool
    def flaky(x: int) -> str:
        """Works the second time."""
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    hooks = ToolfaultHooks(act=True, max_attempts=3)
    agent = make_agent(("flaky", {"x": 1}), hooks=hooks, tools=[flaky])
    await agent.invoke_async("hi")
    assert returned(agent)[0]["content"] == [{"json": {"status": "ok", "output": "fine"}}]
    assert exported.told() == [("ok", None, None, 2, "applied")]


async def test_the_budget_of_acting_hooks_lives_on_the_agents_state(exported):
    call = ("refused_connection", {"x": 1})
    agent = make_agent(call, call, hooks=ToolfaultHooks(act=True))
    await agent.invoke_async("hi")
    first, second = (result["content"][0]["json"] for result in returned(agent))
    assert_envelope(first, action="retry_later")
    assert_envelope(second, action="stop_and_tell_user")
    assert agent.state.get("toolfault.failures:refused_connection") == 2
    assert len(exported.named(c.BUDGET_EXHAUSTED)) == 1


async def test_observing_hooks_change_nothing_the_model_reads(exported):
    calls = [(name, args) for name, args, _ in CASES]
    hooked, bare = make_agent(*calls), Agent(
        model=Stub([[call] for call in calls]), tools=TOOLS, callback_handler=None
    )  # fmt: skip
    await hooked.invoke_async("hi")
    await bare.invoke_async("hi")
    told, plain = (
        [result["content"] for result in returned(agent) if "ref" not in str(result)]
        for agent in (hooked, bare)
    )
    assert told == plain
    assert hooked.state.get() == {}


async def test_a_fault_of_the_hooks_changes_nothing_the_model_reads(monkeypatch):
    calls = [(name, args) for name, args, _ in CASES if name != "book"]
    bare = Agent(model=Stub([[call] for call in calls]), tools=TOOLS, callback_handler=None)
    await bare.invoke_async("hi")
    monkeypatch.setattr("toolfault.hooks.base.JoinedCall", None)
    hooked = make_agent(*calls, hooks=ToolfaultHooks(act=True))
    await hooked.invoke_async("hi")
    assert returned(hooked) == returned(bare)


async def test_instrument_gives_every_agent_the_hooks_once(exported):
    toolfault.instrument()
    try:
        plain = Agent(model=Stub([[("ok", {"x": 1})]]), tools=[ok], callback_handler=None)
        hooked = make_agent(("ok", {"x": 1}))
    finally:
        toolfault.uninstrument()
    await plain.invoke_async("hi")
    await hooked.invoke_async("hi")
    assert len(exported.records()) == 2


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("strands_agent.py")


def test_the_lines_of_the_page_run(assert_lines_of_the_page_run):
    assert_lines_of_the_page_run("Strands Agents")


# --- texts we match -------------------------------------------------------------------------------


async def test_strands_still_tells_invalid_arguments_in_the_words_we_look_for():
    agent = Agent(model=Stub([[("ok", {"x": "abc"})]]), tools=[ok], callback_handler=None)
    await agent.invoke_async("hi")
    assert INVALID_ARGUMENTS in returned(agent)[0]["content"][0]["text"]
