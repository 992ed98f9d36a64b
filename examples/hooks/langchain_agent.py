"""LangChain with the hook in place, and a stub for the model.

python examples/hooks/langchain_agent.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from booking import SCRIPT, TOOLS, printed
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from toolfault.hooks.langchain import ToolfaultMiddleware


class Stub(GenericFakeChatModel):
    """Asks for the tools of the script, then is done."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def said() -> Iterator[AIMessage]:
    for turn, (name, args) in enumerate(SCRIPT):
        yield AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{turn}"}])
    yield AIMessage("done")


def main() -> None:
    agent = create_agent(
        Stub(messages=said()),
        [tool(one) for one in TOOLS],
        name="desk",
        middleware=[ToolfaultMiddleware()],
    )
    agent.invoke({"messages": [("user", "Book me a meeting.")]})


if __name__ == "__main__":
    with printed():
        main()
