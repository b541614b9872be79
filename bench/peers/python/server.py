"""The measured server on the package `mcp` 2.x, as its documentation shows it.

server.py --listen ADDRESS | --stdio [--tools N] [--more]
"""
import argparse
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field

# The subscribers of changes; the package does not store its sessions.
sessions = []


class Sum(BaseModel):
    sum: float = Field(description="Both numbers together.")


def echo(message: Annotated[str, Field(description="What to say back.")]) -> str:
    return message


def add(
    a: Annotated[float, Field(description="The first number.")],
    b: Annotated[float, Field(description="The second number.")],
) -> Sum:
    return Sum(sum=a + b)


def find(
    query: Annotated[str, Field(description="What is to be looked for.")],
    limit: Annotated[int, Field(description="How many results are wanted at most.")],
    place: Annotated[str, Field(description="Where to look, as a path from the top.")],
) -> str:
    return "found nothing"


async def steps(ctx: Context) -> str:
    for step in range(1, 4):
        await ctx.report_progress(step, 3)
    return "done"


async def announce(ctx: Context) -> str:
    await ctx.notify_tools_changed()
    for session in sessions:
        await session.send_tool_list_changed()
    return "told"


async def remember_sessions(ctx, call_next):
    if ctx.method == "notifications/initialized":
        sessions.append(ctx.session)
    return await call_next(ctx)


def measured(tools, more):
    middleware = [remember_sessions] if more else []
    server = MCPServer("echo", version="0.1.0", log_level="WARNING", middleware=middleware)
    server.add_tool(echo, description="Says the message back")
    server.add_tool(add, description="Adds two numbers")
    for number in range(tools - 2):
        # No other library describes the output of a tool that returns text.
        server.add_tool(find, f"tool-{number:03}", structured_output=False,
                        description=f"Looks for something at place {number:03}, and says what it found")
    if more:
        server.add_tool(steps, description="Reports three steps, then is done")
        server.add_tool(announce, description="Tells everyone who listens that the tools changed")
    return server


def on_http(server, host, port):
    """The same as `server.run("streamable-http")`, on any port."""
    listener = socket.create_server((host, int(port)))
    print(f"listening on http://{host}:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run([listener])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen")
    parser.add_argument("--stdio", action="store_true")
    parser.add_argument("--tools", type=int, default=2)
    parser.add_argument("--more", action="store_true")
    options = parser.parse_args()
    server = measured(options.tools, options.more)
    if options.stdio:
        server.run()
    else:
        on_http(server, *options.listen.rsplit(":", 1))


if __name__ == "__main__":
    main()
