"""A test server on the package `mcp` 1.x, for our client, without the features that a version lacks.

server1.py stdio|http|sse
"""
import sys

import anyio
from free_port import on_free_port
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

EARLY = not hasattr(Context, "elicit")
TONES = ["warm", "wary", "plain"]

server = FastMCP("workbench", log_level="WARNING")
given_up_calls = 0


@server.tool()
def echo(text: str) -> str:
    return text


class Sum(BaseModel):
    sum: float


@server.tool()
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool()
async def count(to: int, ctx: Context) -> str:
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return f"counted to {to}"


@server.tool()
async def wait(seconds: float) -> str:
    global given_up_calls
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        given_up_calls += 1
        raise
    return "waited"


@server.tool()
def given_up() -> str:
    return str(given_up_calls)


@server.tool()
async def summarize(ctx: Context) -> str:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Sum up."))
    answer = await ctx.request_context.session.create_message([message], max_tokens=10)
    return answer.content.text


@server.tool()
async def places(ctx: Context) -> str:
    answer = await ctx.request_context.session.list_roots()
    return " ".join(str(root.uri) for root in answer.roots)


@server.resource("workbench://greeting", mime_type="text/plain")
def greeting() -> str:
    return "Hello."


@server.resource("workbench://number/{n}")
def number(n: str) -> str:
    return n


@server.prompt()
def greet(name: str, tone: str) -> str:
    return f"Greet {name} in a {tone} tone."


class Who(BaseModel):
    name: str
    formal: bool = True


if not EARLY:
    @server.tool()
    async def ask(ctx: Context) -> str:
        who = await ctx.elicit("Who is there?", Who)
        if who.action != "accept":
            return f"The answer was {who.action}."
        return f"Good day, {who.data.name}." if who.data.formal else f"Hi, {who.data.name}."

    @server.tool()
    async def visit(ctx: Context) -> str:
        answer = await ctx.elicit_url("Log in.", "https://example.com/login", "1")
        return f"The answer was {answer.action}."

    @server.completion()
    async def complete(ref, argument, context):
        return types.Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


if sys.argv[1] == "stdio":
    server.run()
elif sys.argv[1] == "sse":
    on_free_port("/sse", lambda: server.run("sse"))
else:
    on_free_port("/mcp", lambda: server.run("streamable-http"))
