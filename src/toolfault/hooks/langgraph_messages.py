"""What LangChain and LangGraph tell in messages alone: rejections, unknown names, soft limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE

from toolfault.errors import (
    ToolArgumentValidationError,
    ToolError,
    ToolNotFoundError,
    ToolNotPermittedError,
)
from toolfault.hooks.returned import error_in, in_text, returned_error

#: What a tool with `handle_validation_error=True` tells the model; it raises nothing.
INVALID_ARGUMENTS = "Tool input validation error"
#: How the answer to a call beyond a limit of tool calls begins; it has no mark.
TOOL_CALL_LIMIT = "Tool call limit exceeded."
#: How the last message of a run beyond a limit of model calls begins.
MODEL_CALL_LIMIT = "Model call limits exceeded: "
#: Errors that end a run at one of its limits.
LIMIT_ERRORS = frozenset(
    {"GraphRecursionError", "ModelCallLimitExceededError", "ToolCallLimitExceededError"}
)


def answers(messages: Any) -> Iterator[ToolMessage]:
    """The answers to the last calls of the model, newest first."""
    if not isinstance(messages, list):
        return
    rest = list(messages)
    if rest and isinstance(rest[-1], AIMessage) and not rest[-1].tool_calls:
        rest.pop()
    while rest and isinstance(rest[-1], ToolMessage):
        yield rest.pop()


def turned_away(message: ToolMessage) -> ToolError | None:
    """The error of a call that nothing was run for."""
    name = message.name or ""
    if was_rejected(message):
        return ToolNotPermittedError(name, "rejected")
    if message.status == "error" and str(message.content).startswith(_unknown(name)):
        return ToolNotFoundError(name)
    return None


def never_ran(message: ToolMessage, name: str, *, unknown: bool) -> ToolError:
    """The error of an answer that the tool had no part in.

    Args:
        message: the answer.
        name: of the tool.
        unknown: there is no such tool.
    """
    if unknown:
        return ToolNotFoundError(name)
    if was_rejected(message):
        return ToolNotPermittedError(name, "rejected")
    return ToolNotPermittedError(name)


def tells_hints(metadata: dict[str, Any] | None) -> bool:
    """Whether it is that of an MCP server's tool."""
    return metadata is not None and ("readOnlyHint" in metadata or "read_only_hint" in metadata)


def was_rejected(message: ToolMessage) -> bool:
    """Whether a person has rejected the call."""
    told = message.additional_kwargs.get("lc_data")
    return isinstance(told, dict) and told.get("decision") == "reject"


def tells_limit(message: ToolMessage) -> bool:
    """Whether a limit of tool calls answered instead of the tool."""
    return message.status == "error" and str(message.content).startswith(TOOL_CALL_LIMIT)


def ended_at_limit(messages: Any) -> bool:
    """Whether the run ended in place of one more call of the model."""
    last = messages[-1] if isinstance(messages, list) and messages else None
    return isinstance(last, AIMessage) and str(last.content).startswith(MODEL_CALL_LIMIT)


def is_limit(error: BaseException) -> bool:
    """Whether an error ended a run at one of its limits."""
    return any(kind.__name__ in LIMIT_ERRORS for kind in type(error).__mro__)


def error_told(message: ToolMessage) -> ToolError:
    """The error of a message with the status of one."""
    name = message.name or ""
    if message.content == INVALID_ARGUMENTS:
        return ToolArgumentValidationError(name)
    return error_in(unwrapped(message), name) or returned_error(name)


def unwrapped(output: Any) -> Any:
    """What the tool's author returned, as far as the framework kept it."""
    content = output.content if isinstance(output, ToolMessage) else output
    return in_text(content) if isinstance(content, str) else content


def _unknown(name: str) -> str:
    told: str = INVALID_TOOL_NAME_ERROR_TEMPLATE.split("{available_tools}", maxsplit=1)[0]
    return told.format(requested_tool=name)
