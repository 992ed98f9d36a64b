"""Google ADK with the hook in place, and a stub for the model.

python examples/hooks/adk_agent.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from booking import SCRIPT, TOOLS, printed
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from toolfault.hooks.adk import ToolfaultPlugin


class Stub(BaseLlm):
    """Asks for the tools of the script, then is done."""

    turn: int = 0

    async def generate_content_async(
        self, llm_request: object, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        part = types.Part(text="done")
        if self.turn < len(SCRIPT):
            name, args = SCRIPT[self.turn]
            called = types.FunctionCall(name=name, args=args, id=f"call-{self.turn}")
            part = types.Part(function_call=called)
        self.turn += 1
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def main() -> None:
    agent = LlmAgent(name="desk", model=Stub(model="stub"), tools=TOOLS)
    app = App(name="desk", root_agent=agent, plugins=[ToolfaultPlugin()])
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name="desk", user_id="u")
    asked = types.Content(role="user", parts=[types.Part(text="Book me a meeting.")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=asked):
        pass


if __name__ == "__main__":
    with printed():
        asyncio.run(main())
