"""Pydantic AI with the hook in place, and a stub for the model.

python examples/hooks/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio

from booking import SCRIPT, TOOLS, printed
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolfault.hooks.pydantic_ai import ToolfaultCapability


def stub(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Asks for the tools of the script, then is done."""
    turn = len(messages) // 2
    if turn == len(SCRIPT):
        return ModelResponse(parts=[TextPart("done")])
    name, args = SCRIPT[turn]
    return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"call-{turn}")])


async def main() -> None:
    agent = Agent(
        FunctionModel(stub), name="desk", tools=TOOLS, capabilities=[ToolfaultCapability()]
    )
    await agent.run("Book me a meeting.")


if __name__ == "__main__":
    with printed():
        asyncio.run(main())
