"""A test server on the package `fastmcp` 4.x, for our client.

server4.py stdio|http
"""
import sys

import anyio
import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.tools import ToolResult
from free_port import on_free_port
from pydantic import BaseModel

GREETING = "workbench://greeting"
TONES = ["warm", "wary", "plain"]

server = FastMCP("workbench", version="1", instructions="Try everything.")
given_up_calls = 0


@server.tool
def echo(text: str) -> ToolResult:
    return say(text)


class Sum(BaseModel):
    sum: float


@server.tool
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool
async def count(to: int, ctx: Context) -> ToolResult:
    for step in range(1, to + 1):
        await ctx.report_progress(step, to)
    return say(f"counted to {to}")


@server.tool
async def wait(seconds: float) -> ToolResult:
    global given_up_calls
    try:
        await anyio.sleep(seconds)
    except anyio.get_cancelled_exc_class():
        given_up_calls += 1
        raise
    return say("waited")


@server.tool
def given_up() -> ToolResult:
    return say(str(given_up_calls))


@server.tool
async def touch(ctx: Context) -> ToolResult:
    params = types.ResourceUpdatedNotificationParams(uri=GREETING)
    await ctx.send_notification(types.ResourceUpdatedNotification(params=params))
    return say("touched")


@server.tool
async def log(ctx: Context) -> ToolResult:
    await ctx.info("at work")
    return say("logged")


@server.tool
async def ask(ctx: Context) -> ToolResult | types.InputRequiredResult:
    schema = {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "formal": {"type": "boolean", "default": True}}}
    params = types.ElicitRequestFormParams(message="Who is there?", requested_schema=schema)
    answer = await answer_of(ctx, types.ElicitRequest(params=params), lambda: ctx.session.elicit_form(
        "Who is there?", schema, related_request_id=ctx.request_id))
    if isinstance(answer, types.InputRequiredResult):
        return answer
    if answer.action != "accept":
        return say(f"The answer was {answer.action}.")
    return say(f"Good day, {answer.content['name']}." if answer.content.get("formal", True) else "Hi.")


@server.tool
async def visit(ctx: Context) -> ToolResult | types.InputRequiredResult:
    url = "https://example.com/login"
    params = types.ElicitRequestURLParams(mode="url", message="Log in.", url=url)
    answer = await answer_of(ctx, types.ElicitRequest(params=params), lambda: ctx.session.elicit_url(
        "Log in.", url, "1", related_request_id=ctx.request_id))
    return answer if isinstance(answer, types.InputRequiredResult) else say(f"The answer was {answer.action}.")


@server.tool
async def summarize(ctx: Context) -> ToolResult | types.InputRequiredResult:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Sum up."))
    params = types.CreateMessageRequestParams(messages=[message], max_tokens=10)
    answer = await answer_of(ctx, types.CreateMessageRequest(params=params), lambda: ctx.session.create_message(
        [message], max_tokens=10, related_request_id=ctx.request_id))
    return answer if isinstance(answer, types.InputRequiredResult) else say(answer.content.text)


@server.tool
async def places(ctx: Context) -> ToolResult | types.InputRequiredResult:
    answer = await answer_of(ctx, types.ListRootsRequest(), lambda: ctx.session.list_roots())
    if isinstance(answer, types.InputRequiredResult):
        return answer
    return say(" ".join(str(root.uri) for root in answer.roots))


async def answer_of(ctx, request, ask):
    """The answer of the client: to a request of the server, or in the second round trip of the call."""
    if ctx.request_context.protocol_version < "2026-07-28":
        return await ask()
    if ctx.input_responses:
        return ctx.input_responses["it"]
    return types.InputRequiredResult(input_requests={"it": request})


@server.resource(GREETING, mime_type="text/plain")
def greeting() -> str:
    return "Hello."


@server.resource("workbench://number/{n}")
def number(n: str) -> str:
    return n


@server.prompt
def greet(name: str, tone: str) -> str:
    return f"Greet {name} in a {tone} tone."


@server.completion
def complete(ref, argument, context):
    return [tone for tone in TONES if tone.startswith(argument.value)]


def say(text):
    return ToolResult(content=[types.TextContent(type="text", text=text)])


if sys.argv[1] == "stdio":
    server.run(show_banner=False)
else:
    on_free_port("/mcp", lambda: server.run("http", show_banner=False, path="/mcp"))
