"""The official MCP SDK: a real server and a real client in memory, every way a call can go."""

import asyncio
import json

import pytest
from mcp import Client, MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations

import toolfault
from toolfault import conventions as c
from toolfault.hooks import Tool
from toolfault.hooks.mcp import UNKNOWN_TOOL, instrument_client, instrument_server
from toolfault.testing import assert_envelope

SECRET = "hunter2-planted"


def make_server(**options):
    server = MCPServer("calendar")
    for tool in TOOLS:
        server.tool()(tool)
    server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))(look)
    return instrument_server(server, **options)


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


def soft(x: int) -> CallToolResult:
    return CallToolResult(is_error=True, content=[TextContent(type="text", text=SECRET)])


def enveloped(x: int) -> CallToolResult:
    answer = {
        "status": "error",
        "error": {"code": "RATE_LIMITED", "reason": "too_many", "message": "Wait.",
                  "action": "retry_later", "retryable": True, "retry_after": 2.0},
    }  # fmt: skip
    return CallToolResult(
        is_error=True,
        content=[TextContent(type="text", text="see structure")],
        structured_content=answer,
    )


def generic(x: int) -> str:
    return "An internal error occurred."


def declines(x: int) -> str:
    raise toolfault.ToolRefusal("declines", "slot_taken", "The slot is taken.")


async def own_timeout(x: int) -> str:
    await asyncio.wait_for(asyncio.sleep(5), 0.01)
    return ""


@toolfault.guard("book")
def book(x: int) -> dict:
    if x > 9:
        raise toolfault.ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


TOOLS = [
    ok, boom, refused_connection, declared, protocol, soft, enveloped, generic, declines, own_timeout, book,
]  # fmt: skip

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
    ("enveloped", {"x": 1}, ("failed", "RATE_LIMITED", "too_many", 1, "none")),
    ("generic", {"x": 1}, ("failed", "INTERNAL", "generic_error", 1, "unknown")),
    ("declines", {"x": 1}, ("declined", "CONFLICT", "slot_taken", 1, "none")),
    ("own_timeout", {"x": 1}, ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
    ("ok", {"x": "abc"}, ("invalid", "INVALID_ARGUMENT", "invalid_arguments", 0, "none")),
    ("nope", {"x": 1}, ("not_found", "NOT_FOUND", "unknown_tool", 0, "none")),
]


async def called(server, name, args, **options):
    async with Client(server) as client:
        try:
            return await client.call_tool(name, args, **options)
        except MCPError as error:
            return error


def as_told(result):
    return json.loads(result.content[0].text)


@pytest.mark.parametrize(("name", "args", "expected"), CASES)
async def test_a_call_has_one_record_on_the_servers_span(exported, name, args, expected):
    await called(make_server(), name, args)
    assert exported.told() == [expected]
    [span] = exported.tool_spans()
    assert span.instrumentation_scope.name == "mcp-python-sdk"
    assert span.attributes[c.OUTCOME] == expected[0]


async def test_a_call_past_the_wire_is_seen_as_well(exported):
    await make_server().call_tool("ok", {"x": 1})
    assert exported.told() == [("ok", None, None, 1, "applied")]
    [span] = exported.tool_spans()
    assert span.instrumentation_scope.name == "toolfault"


async def test_an_invalid_argument_is_named(exported):
    await called(make_server(), "ok", {"x": "abc"})
    assert exported.records()[0][c.FIELD] == "x"


async def test_a_call_that_the_client_gives_up_is_cancelled(
    exported, endless, cancelled_while_running
):
    server = MCPServer("calendar")
    server.tool()(endless)
    async with Client(instrument_server(server)) as client:
        await cancelled_while_running(client.call_tool("endless", {"x": 1}), endless)
    assert exported.told() == [("cancelled", None, None, 1, "unknown")]


async def test_the_servers_tools_are_declared_with_their_annotations(exported):
    await called(make_server(tools=[Tool(name="ok", writes=False)]), "boom", {"x": 1})
    told = {e.attributes[c.TOOL_NAME]: e.attributes for e in exported.named(c.TOOL_DECLARED)}
    assert set(told) >= {tool.__name__ for tool in TOOLS}
    assert (told["look"][c.WRITES], told["look"][c.IDEMPOTENT]) == (False, True)
    assert told["boom"][c.WRITES] is True
    assert told["ok"][c.WRITES] is False


async def test_observing_changes_nothing_the_client_reads(exported):
    bare = MCPServer("calendar")
    for tool in TOOLS:
        bare.tool()(tool)
    for name, args, _ in CASES:
        if name in ("look", "book", "protocol"):
            continue
        assert await called(make_server(), name, args) == await called(bare, name, args)


@pytest.mark.parametrize("name", ["ok", "boom", "declared", "nope"])
async def test_a_fault_of_the_hook_changes_nothing_the_client_reads(monkeypatch, name):
    bare = await called(make_bare(), name, {"x": 1})
    monkeypatch.setattr("toolfault.hooks.base.JoinedCall", None)
    assert str(await called(make_server(act=True), name, {"x": 1})) == str(bare)


# --- acting ---------------------------------------------------------------------------------------


async def test_an_acting_server_answers_failures_with_envelopes(exported):
    server = make_server(act=True)
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
    server = MCPServer("calendar")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def flaky(x: int) -> str:
        tries.append(x)
        if len(tries) == 1:
            raise ConnectionRefusedError
        return "fine"

    instrument_server(server, act=True, max_attempts=3)
    assert (await called(server, "flaky", {"x": 1})).structured_content == {"result": "fine"}
    assert exported.told() == [("ok", None, None, 2, "none")]


# --- the client's side ----------------------------------------------------------------------------


def make_bare():
    server = MCPServer("calendar")
    for tool in TOOLS:
        server.tool()(tool)
    server.tool(annotations=ToolAnnotations(read_only_hint=True))(look)
    return server


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ok", ("ok", None, None, 1, "applied")),
        ("look", ("ok", None, None, 1, "none")),
        ("boom", ("failed", "INTERNAL", "returned_error", 1, "unknown")),
        ("enveloped", ("failed", "RATE_LIMITED", "too_many", 1, "none")),
        ("protocol", ("timed_out", "UNAVAILABLE", "timed_out", 1, "unknown")),
        ("nope", ("failed", "INTERNAL", "returned_error", 1, "unknown")),
    ],
)
async def test_a_client_counts_its_calls_for_the_agent(exported, name, expected):
    async with Client(make_bare()) as client:
        instrument_client(client)
        await client.list_tools()
        try:
            await client.call_tool(name, {"x": 1})
        except MCPError:
            assert name == "protocol"
    assert exported.told() == [expected]
    [span] = [span for span in exported.spans if span.name == f"execute_tool {name}"]
    assert span.attributes[c.TOOL_TYPE] == (c.FUNCTION if name == "nope" else c.EXTENSION)


async def test_a_client_inside_a_guarded_tool_leaves_the_call_to_the_guard(exported):
    async with Client(make_bare()) as client:
        instrument_client(client)

        @toolfault.guard("relay")
        async def relay(x):
            return (await client.call_tool("ok", {"x": x})).structured_content

        await relay(1)
    assert [record[c.TOOL_NAME] for record in exported.records()] == ["relay"]


async def test_instrument_sees_every_server_once(exported):
    toolfault.instrument()
    try:
        server = make_server()
        plain = make_bare()
    finally:
        toolfault.uninstrument()
    await called(server, "ok", {"x": 1})
    await called(plain, "ok", {"x": 1})
    assert len(exported.records()) == 2


def test_the_booking_scenario_ends_as_in_every_framework(assert_books_as_everywhere):
    assert_books_as_everywhere("mcp_server.py")


def test_the_lines_of_the_page_run(assert_lines_of_the_page_run):
    assert_lines_of_the_page_run("MCP")


# --- texts we match -------------------------------------------------------------------------------


async def test_the_sdk_still_tells_an_unknown_tool_in_the_words_we_look_for():
    with pytest.raises(ToolError, match=UNKNOWN_TOOL) as raised:
        await make_bare().call_tool("nope", {"x": 1})
    assert raised.value.__cause__ is None
