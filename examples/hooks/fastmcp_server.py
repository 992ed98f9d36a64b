"""A FastMCP server with the hook in place, and a client that calls its tools.

python examples/hooks/fastmcp_server.py
"""

from __future__ import annotations

import asyncio
import logging

from booking import SCRIPT, TOOLS, printed
from fastmcp import Client, FastMCP

from toolfault.hooks.fastmcp import ToolfaultMiddleware


async def main() -> None:
    server = FastMCP("desk", middleware=[ToolfaultMiddleware()])
    for tool in TOOLS:
        server.tool(tool)
    async with Client(server) as client:
        for name, args in SCRIPT:
            await client.call_tool(name, args, raise_on_error=False)


if __name__ == "__main__":
    logging.disable()  # the framework logs what its tools raise
    with printed():
        asyncio.run(main())
