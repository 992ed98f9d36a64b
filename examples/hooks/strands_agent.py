"""Strands Agents with the hook in place, and a stub for the model.

python examples/hooks/strands_agent.py
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from booking import SCRIPT, TOOLS, printed
from strands import Agent, tool
from strands.models.model import Model

from toolfault.hooks.strands import ToolfaultHooks


class Stub(Model):
    """Asks for the tools of the script, then is done."""

    turn = 0

    def update_config(self, **config: Any) -> None:
        """It has none."""

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        start: dict[str, Any] = {}
        delta: dict[str, Any] = {"text": "done"}
        if self.turn < len(SCRIPT):
            name, asked = SCRIPT[self.turn]
            start = {"toolUse": {"name": name, "toolUseId": f"call-{self.turn}"}}
            delta = {"toolUse": {"input": json.dumps(asked)}}
        self.turn += 1
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if start else "end_turn"}}


def main() -> None:
    agent = Agent(
        model=Stub(),
        name="desk",
        tools=[tool(one) for one in TOOLS],
        hooks=[ToolfaultHooks()],
        callback_handler=None,
    )
    agent("Book me a meeting.")


if __name__ == "__main__":
    logging.getLogger("strands").setLevel(logging.CRITICAL)  # it logs unknown tools by itself
    with printed():
        main()
