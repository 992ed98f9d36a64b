"""A server of the official MCP SDK with the hook in place, and a client that calls its tools.

python examples/hooks/mcp_server.py
"""

from __future__ import annotations

import asyncio
import logging

from booking import SCRIPT, TOOLS, printed
from mcp import Client
from mcp.server.mcpserver import MCPServer

from toolfault.hooks.mcp import instrument_server


async def main() -> None:
    server = instrument_server(MCPServer("desk"))
    for tool in TOOLS:
        server.tool()(tool)
    async with Client(server) as client:
        for name, args in SCRIPT:
            await client.call_tool(name, args)


if __name__ == "__main__":
    logging.disable()  # the SDK logs what its tools raise
    with printed():
        asyncio.run(main())
