"""FastMCP: a middleware.

from toolfault.hooks.fastmcp import ToolfaultMiddleware

server = FastMCP("calendar", middleware=[ToolfaultMiddleware()])
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import (
    AuthorizationError,
    DisabledError,
    NotFoundError,
    ToolError,
    ValidationError,
)
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp import MCPError

from toolfault import errors as ours
from toolfault.envelope import Envelope
from toolfault.error_map import ToolErrorMap, transient
from toolfault.hooks.base import Observer, never_raises, quietly
from toolfault.hooks.patch import after_init
from toolfault.hooks.returned import error_in_mcp, plain, returned_error
from toolfault.hooks.told import annotated, field_of
from toolfault.joined import JoinedCall, offered
from toolfault.run import Run
from toolfault.taxonomy import Code
from toolfault.telemetry import declared

#: What a tool that outran `@tool(timeout=...)` is ended with, under a code that says nothing.
TIMED_OUT = "execution timed out after"


def _protocol_error(tool: str, error: BaseException) -> ours.ToolError:
    if TIMED_OUT in str(error):
        return ours.ToolTimedOutError(tool)
    return returned_error(tool)


RULES = ToolErrorMap(
    {
        "fastmcp.server.middleware.rate_limiting.RateLimitError": transient(
            "rate_limited", code=Code.RATE_LIMITED
        ),
        MCPError: _protocol_error,
    }
)


class ToolfaultMiddleware(Middleware):
    """Put it first: what the others refuse is then seen.

    Where a middleware between repeats calls, put `attempts` last to see each of them.

    Args:
        **options: those of `toolfault.hooks.base.Observer`.
    """

    def __init__(self, **options: Any) -> None:
        self._observer = Observer(RULES, **options, late=True)
        self.attempts: Middleware = _Attempts(self._observer)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: Any) -> Sequence[Any]:
        """Announce the tools."""
        tools: Sequence[Any] = await call_next(context)
        self._observer.declare(annotated(tool.name, tool.annotations) for tool in tools)
        return tools

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: Any) -> Any:
        """The call, as the client is told of it."""
        observer, name = self._observer, context.message.name
        await self._declare(context, name)
        opened = self._opened(context, name)
        try:
            result = await observer.attempt(opened, lambda: call_next(context))
        except BaseException as error:
            answer = _raised(observer, opened, error, name)
            if answer is None or not isinstance(error, Exception):
                raise
            return in_result(answer)
        if opened is not None:
            opened.adopt()
        if _asks(result):
            observer.dropped(opened)
            return result
        answer = _returned(observer, opened, result, name)
        return result if answer is None else in_result(answer)

    async def _declare(self, context: MiddlewareContext[Any], name: str) -> None:
        if declared.known(name) is None and context.fastmcp_context is not None:
            tool = await quietly(context.fastmcp_context.fastmcp.get_tool(name))
            if tool is not None:
                self._observer.declare(annotated(name, one.annotations) for one in (tool,))

    @never_raises
    def _opened(self, context: MiddlewareContext[Any], name: str) -> JoinedCall | None:
        request = getattr(context.fastmcp_context, "request_context", None)
        # A call made in the server's own process has its span inside, out of reach: no second one.
        return self._observer.open(
            name,
            call_id=None if request is None else str(request.request_id),
            run=self._run(context, request),
            span="never" if request is None else None,
        )

    @never_raises
    def _run(self, context: MiddlewareContext[Any], request: Any) -> Run | None:
        session = None if request is None else getattr(context.fastmcp_context, "session_id", None)
        return self._observer.run(None, session)


class _Attempts(Middleware):
    """Sees each attempt of the call that the outer middleware has opened."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: Any) -> Any:
        """One attempt."""
        name = context.message.name
        call = offered(name)
        if call is not None:
            call.begin()
        try:
            result = await call_next(context)
        except Exception as error:
            if not isinstance(error, (ValidationError, NotFoundError, DisabledError)):
                self._observer.failed(call, _unwrapped(error, name), close=False)
            raise
        if not _asks(result):
            _returned(self._observer, call, result, name, close=False)
        return result


def instrument(**options: Any) -> None:
    """Give every `FastMCP` server of this process the middleware."""

    def add(server: FastMCP) -> None:
        if not any(isinstance(one, ToolfaultMiddleware) for one in server.middleware):
            server.middleware.insert(0, ToolfaultMiddleware(**options))

    after_init(FastMCP, add)


def in_result(answer: Envelope) -> ToolResult:
    """The envelope as a tool result.

    A refusal is marked as an error too: only those are exempt from the tool's output schema.
    """
    text = json.dumps(answer, ensure_ascii=False)
    return ToolResult(content=text, structured_content=answer, is_error=True)


@never_raises
def _raised(
    observer: Observer, opened: JoinedCall | None, error: BaseException, name: str
) -> Envelope | None:
    if opened is not None:
        opened.adopt()
        if opened.guarded or opened.outcome is not None:
            return observer.failed(opened, error)
    if isinstance(error, ValidationError):
        told = ours.ToolArgumentValidationError(name, field=field_of(error))
        return observer.turned_away(opened, told)
    if isinstance(error, (NotFoundError, DisabledError)):
        return observer.turned_away(opened, ours.ToolNotFoundError(name))
    if isinstance(error, AuthorizationError):
        return observer.turned_away(opened, ours.ToolNotPermittedError(name))
    return observer.failed(opened, _unwrapped(error, name))


def _unwrapped(error: BaseException, name: str) -> BaseException:
    """What the tool raised: the framework wraps all but what an author told in its own words."""
    if not isinstance(error, ToolError):
        return error
    return error.__cause__ or returned_error(name)


@never_raises
def _returned(
    observer: Observer, opened: JoinedCall | None, result: Any, name: str, *, close: bool = True
) -> Envelope | None:
    error = error_in_mcp(result, name)
    if error is not None:
        return observer.failed(opened, error, close=close)
    observer.ok(opened, plain(result), close=close)
    return None  # a success keeps the shape that the tool's output schema promises


def _asks(result: Any) -> bool:
    """Whether it is no result yet: the tool asks the client for more, or goes on as a task."""
    return not isinstance(result, ToolResult) or hasattr(result, "input_required")
