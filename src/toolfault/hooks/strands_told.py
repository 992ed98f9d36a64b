"""What Strands Agents tell of tools, of models, and of other hooks."""

from __future__ import annotations

from typing import Any

from strands.hooks import AfterToolCallEvent

from toolfault.envelope import Envelope
from toolfault.errors import ToolArgumentValidationError, ToolError, ToolNotFoundError
from toolfault.hooks.base import never_raises
from toolfault.hooks.returned import error_in, in_text, returned_error
from toolfault.hooks.told import annotated, field_of
from toolfault.telemetry.declared import Tool

#: How a decorated tool begins to say that arguments do not match; the type is a bare ValueError.
INVALID_ARGUMENTS = "Validation failed for input parameters"
_NEVER_REPEAT = ("strands.", "toolfault.")


@never_raises
def model_of(agent: Any) -> object:
    """The name of its model: where the framework itself looks for it, else that of its class."""
    config = getattr(agent.model, "config", None)
    named = config.get("model_id") if isinstance(config, dict) else None
    return named or type(agent.model).__name__


def turned_away(context: Any, event: Any) -> ToolError | None:
    """The error of a call of which nothing ran."""
    name = context.tool_use["name"]
    if context.tool is None:
        return ToolNotFoundError(name)
    raised = event.exception
    if isinstance(raised, ValueError) and str(raised).startswith(INVALID_ARGUMENTS):
        return ToolArgumentValidationError(name, field=field_of(raised))
    return None


def error_of(context: Any, event: Any) -> Exception | None:
    """What the tool raised, or told with the status of its result."""
    raised: Exception | None = event.exception
    if raised is not None or event.tool_result["status"] != "error":
        return raised
    name = context.tool_use["name"]
    return error_in(unwrapped(event.tool_result), name) or returned_error(name)


def others(context: Any) -> bool:
    """Whether other hooks look at the result, and so might ask for another attempt."""
    probe = AfterToolCallEvent(
        agent=context.agent,
        selected_tool=context.tool,
        tool_use=context.tool_use,
        invocation_state=context.invocation_state,
        result={"toolUseId": "", "status": "success", "content": []},
    )
    theirs = (
        getattr(one, "__module__", "") for one in context.agent.hooks.get_callbacks_for(probe)
    )
    return not all(module.startswith(_NEVER_REPEAT) for module in theirs)


def unwrapped(result: Any) -> Any:
    """What the tool's author returned, as far as the framework kept it."""
    if len(result["content"]) != 1:
        return None
    [block] = result["content"]
    if "json" in block:
        return block["json"]
    text = block.get("text")
    return in_text(text) if isinstance(text, str) else None


def result_of(answer: Envelope, tool_use: Any) -> Any:
    """The envelope as the framework wants a result."""
    return {
        "toolUseId": tool_use["toolUseId"],
        "status": "error" if answer["status"] == "error" else "success",
        "content": [{"json": answer}],
    }


def declared_as(name: str, tool: Any) -> Tool:
    """What a tool says of itself."""
    theirs = getattr(tool, "mcp_tool", None)
    return annotated(name, getattr(theirs, "annotations", None), remote=theirs is not None)
