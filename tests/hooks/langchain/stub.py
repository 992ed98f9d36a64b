"""A model that plays a script, and the tools it calls."""

import asyncio

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException, tool

import toolfault

SECRET = "hunter2-planted"


class Stub(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


@tool
def ok(x: int) -> str:
    """Answers."""
    return f"v{x}"


@tool
async def aok(x: int) -> str:
    """Answers."""
    return f"v{x}"


@tool
def boom(x: int) -> str:
    """Breaks."""
    raise ValueError(SECRET)


@tool
def refused_connection(x: int) -> str:
    """Never reaches its service."""
    raise ConnectionRefusedError(SECRET)


@tool
async def own_timeout(x: int) -> str:
    """Outruns its own time."""
    await asyncio.wait_for(asyncio.sleep(5), 0.01)
    return ""


@tool
def told(x: int) -> str:
    """Raises what LangChain's tools raise."""
    raise ToolException("no such record")


told_handled = told.model_copy(update={"handle_tool_error": True, "name": "told_handled"})
lenient = ok.model_copy(update={"handle_validation_error": True, "name": "lenient"})


@tool
def error_dict(x: int) -> dict:
    """Returns an error."""
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
    ok, aok, boom, refused_connection, own_timeout, told, told_handled, lenient,
    error_dict, generic, declines, book,
]  # fmt: skip


def calling(*calls):
    """What the model says: each call is a name and its arguments."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": args, "id": f"{name}-{number}"}
            for number, (name, args) in enumerate(calls, 1)
        ],
    )


def script(*steps, forever=False):
    """The model's answers in order, then "done"."""
    yield from (step if isinstance(step, AIMessage) else calling(step) for step in steps)
    number = 1
    while forever:
        number += 1
        [(name, args)] = steps
        said = calling((name, args))
        said.tool_calls[0]["id"] = f"{name}-{number}"
        yield said
    while True:
        yield AIMessage("done")


def numbered(*steps):
    """Steps of one call each, whose ids differ."""
    said = [calling(step) for step in steps]
    for number, message in enumerate(said, 1):
        message.tool_calls[0]["id"] = f"call-{number}"
    return said


def make_agent(*steps, middleware, tools=TOOLS, forever=False, **options):
    model = Stub(messages=script(*steps, forever=forever))
    return create_agent(model, tools, middleware=middleware, name="desk", **options)


HI = {"messages": [("user", "hi")]}


def answers(state):
    return [m.content for m in state["messages"] if isinstance(m, ToolMessage)]
