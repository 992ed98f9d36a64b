"""What the OpenAI Agents SDK tells in words alone, and where a call belongs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents import FunctionTool
from agents.exceptions import ModelBehaviorError
from agents.tool import (
    ToolOriginType,
    default_tool_error_function,
    default_tool_timeout_error_message,
    get_function_tool_origin,
)
from agents.tracing import get_current_span, get_current_trace

from toolfault.errors import ToolError, ToolTimedOutError
from toolfault.hooks.returned import returned_error
from toolfault.hooks.told import annotated
from toolfault.telemetry.declared import Tool

#: How the SDK tells of arguments that do not match; the type is that of every bad answer.
INVALID_ARGUMENTS = "Invalid JSON input for tool "


def trace_id() -> str | None:
    """The run, as the SDK's tracing names it; None where that is off."""
    trace = get_current_trace()
    return trace.trace_id if trace is not None and trace.trace_id != "no-op" else None


def place_of(context: Any) -> str:
    """Where the ids of calls are unique."""
    return trace_id() or str(id(context.usage))


def id_of(context: Any) -> str | None:
    """The model's id of the call that a context was made for."""
    return getattr(context, "tool_call_id", None)


def declared_as(tool: Any) -> Tool:
    """What is known of a tool: its name, and whether a server runs it."""
    origin = get_function_tool_origin(tool) if isinstance(tool, FunctionTool) else None
    remote = origin is not None and origin.type is ToolOriginType.MCP
    return annotated(tool.name, None, remote=remote)


def arguments_rejected(error: BaseException) -> bool:
    """Whether the arguments did not match."""
    return isinstance(error, ModelBehaviorError) and str(error).startswith(INVALID_ARGUMENTS)


def error_told(tool: Any, result: Any, *, repeated: bool) -> ToolError | None:
    """The error of an answer that is only words.

    Args:
        tool: the tool.
        result: the answer.
        repeated: what the SDK's span tells is of an earlier attempt.
    """
    name, limit = tool.name, getattr(tool, "timeout_seconds", None)
    if limit is not None and result == default_tool_timeout_error_message(
        tool_name=name, timeout_seconds=limit
    ):
        return ToolTimedOutError(name)
    span = get_current_span()
    failed = span is not None and span.error is not None and not repeated
    if failed or result == default_tool_error_function(None, Exception()):  # type: ignore[arg-type]
        return returned_error(name)
    return None


def names_of(items: Iterable[Any]) -> dict[str, str]:
    """The tools of the calls among what the model reads, by id."""
    return {
        item["call_id"]: item.get("name", "")
        for item in items
        if isinstance(item, dict) and item.get("type") == "function_call"
    }


def answered_last(items: Iterable[Any]) -> list[str]:
    """Ids of the calls that the model now gets the answers to."""
    answered: list[str] = []
    for item in reversed(list(items)):
        if not isinstance(item, dict) or item.get("type") != "function_call_output":
            break
        answered.append(item["call_id"])
    return answered[::-1]
