"""A test server on the package `mcp` 2.x, for our client.

server.py stdio|http|sse
"""
import sys
from typing import Annotated

import anyio
import mcp_types as types
from free_port import on_free_port
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, Resolve, Sample
from pydantic import BaseModel

GREETING = "workbench://greeting"
TONES = ["warm", "wary", "plain"]

server = MCPServer("workbench", version="1", instructions="Try everything.", log_level="WARNING")
given_up_calls = 0


@server.tool()
def echo(text: str) -> types.CallToolResult:
    return say(text)


class Sum(BaseModel):
    sum: float


@server.tool()
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool()
async def count(to: int, ctx: Context) -> types.CallToolResult:
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return say(f"counted to {to}")


@server.tool()
async def wait(seconds: float) -> types.CallToolResult:
    global given_up_calls
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        given_up_calls += 1
        raise
    return say("waited")


@server.tool()
def given_up() -> types.CallToolResult:
    return say(str(given_up_calls))


@server.tool()
async def touch(ctx: Context) -> types.CallToolResult:
    await ctx.notify_resource_updated(GREETING)
    return say("touched")


@server.tool()
async def log(ctx: Context) -> types.CallToolResult:
    await ctx.log("info", "at work")
    return say("logged")


class Who(BaseModel):
    name: str
    formal: bool = True


async def who_is_there() -> Elicit[Who]:
    return Elicit("Who is there?", Who)


@server.tool()
async def ask(who: Annotated[ElicitationResult[Who], Resolve(who_is_there)]) -> types.CallToolResult:
    if who.action != "accept":
        return say(f"The answer was {who.action}.")
    return say(f"Good day, {who.data.name}." if who.data.formal else f"Hi, {who.data.name}.")


@server.tool()
async def visit(ctx: Context) -> types.CallToolResult | types.InputRequiredResult:
    message, url = "Log in.", "https://example.com/login"
    if ctx.protocol_version < "2026-07-28":
        answer = await ctx.elicit_url(message, url, "1")
    elif ctx.input_responses:
        answer = ctx.input_responses["page"]
    else:
        params = types.ElicitRequestURLParams(mode="url", message=message, url=url)
        return types.InputRequiredResult(input_requests={"page": types.ElicitRequest(params=params)})
    return say(f"The answer was {answer.action}.")


async def the_model() -> Sample:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Sum up."))
    return Sample([message], max_tokens=10)


@server.tool()
async def summarize(answer: Annotated[types.CreateMessageResult, Resolve(the_model)]) -> types.CallToolResult:
    return say(answer.content.text)


async def the_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def places(answer: Annotated[types.ListRootsResult, Resolve(the_roots)]) -> types.CallToolResult:
    return say(" ".join(str(root.uri) for root in answer.roots))


@server.resource(GREETING, mime_type="text/plain")
def greeting() -> str:
    return "Hello."


@server.resource("workbench://number/{n}")
def number(n: str) -> str:
    return n


@server.prompt()
def greet(name: str, tone: str) -> str:
    return f"Greet {name} in a {tone} tone."


@server.completion()
async def complete(ref, argument, context):
    return types.Completion(values=[tone for tone in TONES if tone.startswith(argument.value)])


def say(text):
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


if sys.argv[1] == "stdio":
    server.run()
elif sys.argv[1] == "sse":
    on_free_port("/sse", lambda: server.run("sse"))
else:
    on_free_port("/mcp", lambda: server.run("streamable-http"))
