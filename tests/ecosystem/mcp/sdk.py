"""The Python SDK: stdio PROGRAM, or http URL TOKEN."""
import asyncio
import os
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def talk(streams):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        assert len((await session.list_tools()).tools) == 6
        await session.call_tool("run_code", {"code": "x = 41; open('a.txt', 'w').write('hello')"})
        done = await session.call_tool("run_code", {"code": "x + 1"})
        found = getattr(done, "structuredContent", None) or done.structured_content
        assert found["value"] == "42", done
        read = await session.read_resource(f"cupel://{found['session']}/a.txt")
        assert read.contents[0].text == "hello"


async def main(kind, where, token=None):
    if kind == "stdio":
        async with stdio_client(StdioServerParameters(command=where, args=["mcp"], env=dict(os.environ))) as streams:
            await talk(streams)
    else:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            async with streamable_http_client(where, http_client=client) as streams:
                await talk(streams)
    print(f"Python SDK over {kind}: good")


asyncio.run(main(*sys.argv[1:]))
