"""The official MCP SDK: servers, and clients that no framework of an agent sits on.

from toolfault.hooks.mcp import instrument_server

server = instrument_server(MCPServer("calendar"))
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from typing import Any, TypeVar

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError as McpToolError
from mcp.server.mcpserver.exceptions import UnexpectedToolError
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from toolfault.envelope import Envelope
from toolfault.error_map import ToolErrorMap
from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolFailure,
    ToolNotFoundError,
    ToolTimedOutError,
)
from toolfault.hooks.base import Observer, never_raises, quietly
from toolfault.hooks.patch import after_init
from toolfault.hooks.returned import error_in_mcp, plain, returned_error
from toolfault.hooks.told import annotated, field_of
from toolfault.joined import JoinedCall
from toolfault.taxonomy import Code
from toolfault.telemetry import declared
from toolfault.telemetry.current import current_call

S = TypeVar("S", bound=MCPServer)
C = TypeVar("C")

#: How the SDK tells that there is no such tool; it has no error of its own for it.
UNKNOWN_TOOL = "Unknown tool: "
INVALID_PARAMS, REQUEST_TIMEOUT = -32602, -32001


def _protocol_error(tool: str, error: BaseException) -> ToolError:
    code = getattr(error, "code", None)
    if code == INVALID_PARAMS:
        return ToolFailure(tool, "invalid_params", code=Code.INVALID_ARGUMENT)
    return returned_error(tool)


def _client_error(tool: str, error: BaseException) -> ToolError:
    # The number is also used for other things; on this side a timeout is what it nearly always is.
    if getattr(error, "code", None) == REQUEST_TIMEOUT:
        return ToolTimedOutError(tool)
    return _protocol_error(tool, error)


def instrument_server(server: S, **options: Any) -> S:
    """See every tool call of a server.

    Args:
        server: the server; the same one is returned.
        **options: those of `toolfault.hooks.base.Observer`.
    """
    if getattr(server.call_tool, "toolfault", False):
        return server
    observer = Observer(ToolErrorMap({MCPError: _protocol_error}), **options)
    original = server.call_tool

    @functools.wraps(original)
    async def call_tool(name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        if declared.known(name) is None:
            _declare(observer, await quietly(server.list_tools()) or (), remote=False)
        opened = observer.open(name, call_id=_request_id(context), run=observer.run(None, None))
        try:
            result = await observer.attempt(opened, lambda: original(name, arguments, context))
        except BaseException as error:
            answer = _raised(observer, opened, error, name)
            if answer is None or not isinstance(error, Exception):
                raise
            return in_result(answer)
        answer = _returned(observer, opened, result, name)
        return result if answer is None else in_result(answer)

    call_tool.toolfault = True  # type: ignore[attr-defined]
    server.call_tool = call_tool  # type: ignore[method-assign]
    return server


def instrument_client(client: C, **options: Any) -> C:
    """See every tool call of a client, for an agent that calls its tools by hand.

    A call that a hook or a guard of this process has opened already is left to it.

    Args:
        client: a `Client` or `ClientSession`; the same one is returned.
        **options: those of `toolfault.hooks.base.Observer`.
    """
    given: Any = client
    if getattr(given.call_tool, "toolfault", False):
        return client
    observer = Observer(ToolErrorMap({MCPError: _client_error}), **options)
    call, listing = given.call_tool, given.list_tools

    @functools.wraps(call)
    async def call_tool(name: str, *args: Any, **kwargs: Any) -> Any:
        if current_call() is not None:
            return await call(name, *args, **kwargs)
        opened = observer.open(name)
        try:
            result = await observer.attempt(opened, lambda: call(name, *args, **kwargs))
        except BaseException as error:
            answer = observer.failed(opened, error)
            if answer is None or not isinstance(error, Exception):
                raise
            return in_result(answer)
        answer = _returned(observer, opened, result, name)
        return result if answer is None else in_result(answer)

    @functools.wraps(listing)
    async def list_tools(*args: Any, **kwargs: Any) -> Any:
        result = await listing(*args, **kwargs)
        _declare(observer, result.tools, remote=True)
        return result

    call_tool.toolfault = True  # type: ignore[attr-defined]
    given.call_tool, given.list_tools = call_tool, list_tools
    return client


def instrument(**options: Any) -> None:
    """See every `MCPServer` of this process."""

    def add(server: MCPServer) -> None:
        instrument_server(server, **options)

    after_init(MCPServer, add)


def in_result(answer: Envelope) -> CallToolResult:
    """The envelope as a tool result.

    A refusal is marked as an error too: only those are exempt from the tool's output schema.
    """
    text = TextContent(type="text", text=json.dumps(answer, ensure_ascii=False))
    return CallToolResult(content=[text], structured_content=answer, is_error=True)


@never_raises
def _raised(
    observer: Observer, opened: JoinedCall | None, error: BaseException, name: str
) -> Envelope | None:
    cause = error.__cause__
    if isinstance(error, McpToolError) and not (opened and opened.guarded):
        if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
            told = ToolArgumentValidationError(name, field=field_of(cause))
            return observer.turned_away(opened, told)
        if cause is None and str(error).startswith(UNKNOWN_TOOL):
            return observer.turned_away(opened, ToolNotFoundError(name))
        if not isinstance(error, UnexpectedToolError):
            return observer.failed(opened, returned_error(name))
    return observer.failed(opened, cause if isinstance(cause, Exception) else error)


@never_raises
def _returned(
    observer: Observer, opened: JoinedCall | None, result: Any, name: str
) -> Envelope | None:
    if getattr(result, "content", None) is None:  # it asks the client for more before it goes on
        observer.dropped(opened)
        return None
    error = error_in_mcp(result, name)
    if error is not None:
        return observer.failed(opened, error)
    observer.ok(opened, plain(result))
    return None  # a success keeps the shape that the tool's output schema promises


def _declare(observer: Observer, tools: Iterable[Any], *, remote: bool) -> None:
    observer.declare(annotated(tool.name, tool.annotations, remote=remote) for tool in tools)


def _request_id(context: Any) -> str | None:
    try:
        return None if context is None else str(context.request_id)
    except (AttributeError, ValueError, RuntimeError):
        return None
