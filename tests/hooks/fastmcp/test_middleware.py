"""FastMCP: a real server and a real client in memory, every way a call can go."""

import asyncio
import json

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import AuthorizationError, FastMCPError, NotFoundError, ToolError
from fastmcp.server.middleware import Middleware
from fastmcp.server.middleware.error_handling import RetryMiddleware
from fastmcp.server.middleware.rate_limiting import RateLimitingMiddleware
from fastmcp.tools import ToolResult
from mcp import MCPError

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool
from toolfault.hooks.fastmcp import TIMED_OUT, ToolfaultMiddleware
from toolfault.testing import assert_envelope

SECRET = "hunter2-planted"


def ok(x: int) -> str:
    return f"v{x}"


def look(x: int) -> str:
    return f"v{x}"


def boom(x: int) -> str:
    raise ValueError(SECRET)


def refused_connection(x: int) -> str:
    raise ConnectionRefusedError(SECRET)


def declared(x: int) -> str:
    raise ToolError("no such record")


def protocol(x: int) -> str:
    raise MCPError(code=-32001, message="forbidden")


def soft(x: int) -> ToolResult:
    return ToolResult(content=SECRET, is_error=True)


def generic(x: int) -> str:
    return "An internal error occurred."


def declines(x: int) -> str:
    raise toolfault.ToolRefusal("declines", "slot_taken", "The slot is taken.")


async def slow(x: int) -> str:
    await asyncio.sleep(5)
    return ""


async def own_timeout(x: int) -> str:
    await asyncio.wait_for(asyncio.sleep(5), 0.01)
    return ""


@toolfault.guard("book")
def book(x: int) -> dict:
    if x > 9:
        raise toolfault.ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


TOOLS = [
    ok, boom, refused_connection, declared, protocol, soft, generic, declines, own_timeout,
    book,
]  # fmt: skip


def make_server(*more, middleware=None):
    first = middleware if middleware is not None else ToolfaultMiddleware()
    server = FastMCP("calendar", middleware=[first, *more] if first else [])
    for tool in TOOLS:
        server.tool(tool)
    server.tool(slow, timeout=0.05)
    server.tool(look, annotations={"readOnlyHint": True, "idempotentHint": True})
    return server


CASES = [
    ("ok", {"x": 1}, ("ok", None, None, 1, "applied")),
    ("look", {"x": 1}, ("ok", None, None, 1, "none")),
    ("book", {"x": 1}, ("ok", None, None, 1, "applied")),
    ("book", {"x": 10}, ("failed", "UNAVAILABLE", "calendar_down", 1, "none")),
    ("boom", {"x": 1}, ("failed", "INTERNAL", "unmapped_failure", 1, "unknown")),
    ("refused_connection", {"x": 1}, ("failed", "UNAVAILABLE", "upstream_unavailable", 1, "none")),
    ("declared", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ("protocol", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ("soft", {"x": 1}, ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
    ("declines", {"x": 1}, ("declined", "CONFLICT", "slot_taken", 1, "none")),
    ("slow", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
    ("own_timeout", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
    ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
    ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
]


async def called(server, name, args, **options):
    async with Client(server) as client:
        try:
            return await client.call_tool(name, args, raise_on_error=False, **options)
        except MCPError as error:
            return error


def as_told(result):
    return json.loads(result.content[0].text)


@pytest.mark.parametrize(("name", "args", "expected"), CASES)
async def test_a_call_has_one_record_on_the_servers_span(exported, name, args, expected):
    await called(make_server(), name, args)
    assert exported.told() == [expected]
    [span] = [s for s in exported.tool_spans() if c.OUTCOME in s.attributes]
    assert span.kind.name == "SERVER"
    assert span.instrumentation_scope.name == "fastmcp"


@pytest.mark.parametrize(("name", "args", "expected"), CASES)
async def test_a_call_past_the_wire_has_one_record_and_no_second_span(
    exported, name, args, expected
):
    try:
        await make_server().call_tool(name, args)
    except (FastMCPError, NotFoundError):
        assert expected[0] != "ok"
    assert exported.told() == [expected]
    assert len(exported.tool_spans()) == 1


async def test_an_invalid_argument_is_named(exported):
    await called(make_server(), "ok", {"x": "abc"})
    assert exported.records()[0][c.FIELD] == "x"


async def test_a_call_that_the_client_gives_up_is_cancelled(
    exported, endless, cancelled_while_running
):
    server = FastMCP("calendar", tools=[endless], middleware=[ToolfaultMiddleware()])
    async with Client(server) as client:
        await cancelled_while_running(client.call_tool("endless", {"x": 1}), endless)
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


async def test_what_an_authorization_middleware_forbids_is_refused(exported):
    class Forbids(Middleware):
        async def on_call_tool(self, context, call_next):
            raise AuthorizationError("not you")

    await called(make_server(Forbids()), "ok", {"x": 1})
    assert exported.told() == [("refused", "PERMISSION_DENIED", "not_permitted", 0, "none")]


async def test_what_a_rate_limit_turns_away_may_be_repeated(exported):
    limited = RateLimitingMiddleware(max_requests_per_second=0.001, burst_capacity=1)
    server = make_server(limited)
    for _ in range(2):
        try:
            await server.call_tool("ok", {"x": 1})
        except MCPError:
            continue
    assert exported.told() == [
        ("ok", None, None, 1, "applied"),
        ("failed", "RATE_LIMITED", "rate_limited", 1, "none"),
    ]


@pytest.mark.parametrize("seen", [True, False])
async def test_attempts_of_a_retrying_middleware_are_attempts_of_one_call(exported, seen):
    ours = ToolfaultMiddleware()
    retrying = RetryMiddleware(max_retries=2, base_delay=0.001)
    server = make_server(*([retrying, ours.attempts] if seen else [retrying]), middleware=ours)
    await called(server, "refused_connection", {"x": 1})
    attempts = 3 if seen else 1
    assert exported.told() == [
        ("failed", "UNAVAILABLE", "upstream_unavailable", attempts, "none")
    ]  # fmt: skip


async def test_the_servers_tools_are_declared_with_their_annotations(exported):
    server = make_server(middleware=ToolfaultMiddleware(tools=[Tool(name="ok", writes=False)]))
    async with Client(server) as client:
        await client.list_tools()
        await client.call_tool("ok", {"x": 1})
    told = {e.attributes[c.TOOL_NAME]: e.attributes for e in exported.named(c.TOOL_DECLARED)}
    assert set(told) >= {tool.__name__ for tool in TOOLS}
    assert (told["look"][c.WRITES], told["look"][c.IDEMPOTENT]) == (False, True)
    assert told["boom"][c.WRITES] is True
    assert told["ok"][c.WRITES] is False


async def test_observing_changes_nothing_the_client_reads(exported):
    for name, args, _ in CASES:
        if name == "book":
            continue
        hooked = await called(make_server(), name, args)
        bare = await called(make_server(middleware=False), name, args)
        assert str(hooked) == str(bare)


@pytest.mark.parametrize("name", ["ok", "boom", "declared", "nope"])
async def test_a_fault_of_the_hook_changes_nothing_the_client_reads(monkeypatch, name):
    bare = await called(make_server(middleware=False), name, {"x": 1})
    monkeypatch.setattr("toolfault.hooks.base.JoinedCall", None)
    assert str(
        await called(make_server(middleware=ToolfaultMiddleware(act=True)), name, {"x": 1})
    ) == str(bare)


# --- acting ---------------------------------------------------------------------------------------


async def test_an_acting_server_answers_failures_with_envelopes(exported):
    server = make_server(middleware=ToolfaultMiddleware(act=True))
    good = await called(server, "ok", {"x": 1})
    assert (good.is_error, good.structured_content) == (False, {"result": "v1"})
    broken = await called(server, "boom", {"x": 1})
    assert broken.is_error
    assert_envelope(as_told(broken), code="INTERNAL", action="stop_and_tell_user")
    assert SECRET not in str(broken)
    assert_envelope(as_told(await called(server, "nope", {"x": 1})), code="NOT_FOUND")
    assert_envelope(as_told(await called(server, "declines", {"x": 1})), status="declined")


async def test_an_acting_server_repeats_by_our_policy(exported, monkeypatch):
    monkeypatch.setattr("toolfault.retry.backoff", lambda attempt, retry_after=None: 0.0)
    tries = []
    server = FastMCP("calendar", middleware=[ToolfaultMiddleware(act=True, max_attempts=3)])

    @server.tool(annotations={"readOnlyHint": True})
    def flaky(x: int) -> str:
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    assert (await called(server, "flaky", {"x": 1})).structured_content == {"result": "fine"}
    assert exported.told() == [("ok", None, None, 2, "none")]


async def test_instrument_gives_every_server_the_middleware_once(exported):
    toolfault.instrument()
    try:
        hooked, plain = make_server(), FastMCP("calendar", tools=[ok])
    finally:
        toolfault.uninstrument()
    await called(hooked, "ok", {"x": 1})
    await called(plain, "ok", {"x": 1})
    assert len(exported.records()) == 2


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("fastmcp_server.py")


def test_the_lines_of_the_page_run(assert_lines_of_the_page_run):
    assert_lines_of_the_page_run("FastMCP")


# --- texts we match -------------------------------------------------------------------------------


async def test_a_tool_that_outran_its_timeout_is_still_told_in_the_words_we_look_for():
    told = await called(make_server(middleware=False), "slow", {"x": 1})
    assert TIMED_OUT in told.content[0].text
