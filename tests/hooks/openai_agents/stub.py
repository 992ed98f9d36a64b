"""A model that plays a script, and the tools it calls."""

import asyncio
import json

from agents import (
    Agent,
    ToolGuardrailFunctionOutput,
    function_tool,
    set_trace_processors,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.testing import ScriptedModel, assistant_message, function_call

import toolfault

set_trace_processors([])  # the SDK's own sends traces to its maker

SECRET = "hunter2-planted"


@function_tool
def ok(x: int) -> str:
    """Answers."""
    return f"v{x}"


@function_tool
async def aok(x: int) -> str:
    """Answers."""
    return f"v{x}"


@function_tool
def boom(x: int) -> str:
    """Breaks."""
    raise ValueError(SECRET)


@function_tool(failure_error_function=None)
def boom_raises(x: int) -> str:
    """Breaks, and with it the run."""
    raise ValueError(SECRET)


@function_tool(failure_error_function=lambda context, error: "sorry")
def boom_told(x: int) -> str:
    """Breaks, and has its own words for it."""
    raise ValueError(SECRET)


@function_tool
def refused_connection(x: int) -> str:
    """Never reaches its service."""
    raise ConnectionRefusedError(SECRET)


@function_tool(timeout=0.05)
async def slow(x: int) -> str:
    """Outruns the time the SDK gives it."""
    await asyncio.sleep(5)
    return ""


@function_tool(timeout=0.05, timeout_behavior="raise_exception")
async def slow_raises(x: int) -> str:
    """Outruns the time the SDK gives it, and ends the run."""
    await asyncio.sleep(5)
    return ""


@function_tool
async def own_timeout(x: int) -> str:
    """Outruns its own time."""
    await asyncio.wait_for(asyncio.sleep(5), 0.01)
    return ""


@function_tool
async def gives_up(x: int) -> str:
    """Is cancelled from inside."""
    raise asyncio.CancelledError


@function_tool
def error_dict(x: int) -> dict:
    """Returns an error."""
    return {"error": SECRET}


@function_tool
def generic(x: int) -> str:
    """Hides its error."""
    return "An internal error occurred."


@function_tool
def declines(x: int) -> str:
    """Says no."""
    raise toolfault.ToolRefusal("declines", "slot_taken", "The slot is taken.")


@function_tool
@toolfault.guard("book")
def book(x: int) -> dict:
    """Books."""
    if x > 9:
        raise toolfault.ToolFailure("book", "calendar_down", transient=True)
    return {"booked": x}


@function_tool(timeout=0.05)
@toolfault.guard("slow_book")
async def slow_book(x: int) -> dict:
    """Books, and outruns the time the SDK gives it."""
    await asyncio.sleep(5)
    return {}


@function_tool(needs_approval=True)
def pay(x: int) -> str:
    """Pays."""
    return "paid"


@tool_input_guardrail
def no(data):
    return ToolGuardrailFunctionOutput.reject_content("not permitted")


@tool_input_guardrail
def never(data):
    return ToolGuardrailFunctionOutput.raise_exception("nope")


@tool_output_guardrail
def unfit(data):
    return ToolGuardrailFunctionOutput.raise_exception("nope")


@function_tool(tool_input_guardrails=[no])
def barred(x: int) -> str:
    """Is refused by a policy."""
    return ""


@function_tool(tool_input_guardrails=[never])
def barred_raises(x: int) -> str:
    """Is refused by a policy, which ends the run."""
    return ""


@function_tool(tool_output_guardrails=[unfit])
def unfit_raises(x: int) -> str:
    """Returns what may not enter the run."""
    return ""


TOOLS = [
    ok, aok, boom, boom_raises, boom_told, refused_connection, slow, slow_raises, own_timeout,
    error_dict, generic, gives_up, declines, book, slow_book, pay, barred, barred_raises, unfit_raises,
]  # fmt: skip


def make_agent(*calls, tools=TOOLS, **options):
    """An agent whose model makes these calls, one a turn, then says "done"."""
    steps = [
        [function_call(name, json.dumps(args) if isinstance(args, dict) else args, call_id=f"call-{n}")]
        for n, (name, args) in enumerate(calls, 1)
    ]  # fmt: skip
    model = ScriptedModel([*steps, [assistant_message("done")]])
    return Agent(name="desk", model=model, tools=tools, **options)


def answers(result):
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]
