"""OpenAI Agents SDK with the hook in place, and a stub for the model.

python examples/hooks/openai_agent.py
"""

from __future__ import annotations

import asyncio
import json

from agents import Agent, RunConfig, Runner, function_tool, set_trace_processors
from agents.testing import ScriptedModel, assistant_message, function_call
from booking import SCRIPT, TOOLS, printed

from toolfault.hooks.openai_agents import ToolfaultHooks

set_trace_processors([])  # the SDK's own sends what it sees to its maker


async def main() -> None:
    asked = [
        [function_call(name, json.dumps(args), call_id=f"call-{turn}")]
        for turn, (name, args) in enumerate(SCRIPT)
    ]
    agent = Agent(
        name="desk",
        model=ScriptedModel([*asked, [assistant_message("done")]]),
        tools=[function_tool(one) for one in TOOLS],
    )
    hooks = ToolfaultHooks()
    # Without this the SDK ends the run where the model names a tool that does not exist.
    config = hooks.run_config(RunConfig(tool_not_found_behavior="return_error_to_model"))
    await Runner.run(agent, "Book me a meeting.", hooks=hooks, run_config=config)


if __name__ == "__main__":
    with printed():
        asyncio.run(main())
