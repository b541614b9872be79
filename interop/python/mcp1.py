"""The package `mcp` 1.x, with a session that grew over time; features that an early version lacks are built from its types."""
import asyncio
import contextlib
import importlib.metadata
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl

EARLY = importlib.metadata.version("mcp") < "1.3"


@contextlib.asynccontextmanager
async def connect(transport, target, revision, answers):
    async with streams(transport, target) as (read, write):
        session = ClientSession(read, write) if EARLY else ClientSession(read, write, **callbacks(answers))
        async with session:
            listener = asyncio.ensure_future(listen_early(session, answers)) if EARLY else None
            yield Session(session, await session.initialize(), answers)
            if listener:
                listener.cancel()


@contextlib.asynccontextmanager
async def streams(transport, target):
    if transport == "stdio":
        async with stdio_client(StdioServerParameters(command=target[0], args=target[1:])) as pair:
            yield pair
    elif transport == "sse":
        from mcp.client.sse import sse_client

        async with sse_client(target[0]) as pair:
            yield pair
    else:
        from mcp.client.streamable_http import streamable_http_client

        async with streamable_http_client(target[0]) as (read, write, _):
            yield read, write


def callbacks(answers):
    async def sample(_, params):
        return types.CreateMessageResult(**answers.sample(plain(params)))

    async def elicit(_, params):
        return types.ElicitResult(**answers.elicit(plain(params)))

    async def roots(_):
        return types.ListRootsResult(roots=answers.roots())

    async def log(params):
        answers.logged.put_nowait(plain(params))

    async def message(message):
        noticed(message, answers)

    return dict(sampling_callback=sample, elicitation_callback=elicit, list_roots_callback=roots,
                logging_callback=log, message_handler=message)


async def listen_early(session, answers):
    """Early sessions stop reading until a caller takes what they have read."""
    async for message in session.incoming_messages:
        if hasattr(message, "respond"):
            await message.respond(types.ClientResult(types.ListRootsResult(roots=answers.roots())))
        else:
            noticed(message, answers)


def noticed(message, answers):
    if not isinstance(message, types.ServerNotification):
        return
    method, params = message.root.method, plain(message.root.params) if message.root.params else {}
    if method == "notifications/resources/updated":
        answers.updated.put_nowait(params["uri"])
    elif method == "notifications/message" and EARLY:
        answers.logged.put_nowait(params)
    elif method == "notifications/progress" and EARLY:
        answers.progressed(params["progress"], params["total"])


class Session:
    # Early sessions put a cursor outside of the parameters, where no server looks for it.
    pages = not EARLY

    def __init__(self, session, initialized, answers):
        self.session, self.answers = session, answers
        self.version = initialized.protocolVersion
        self.server_info = plain(initialized.serverInfo)

    async def list(self, kind):
        ask, member = {
            "tools": ("list_tools", "tools"),
            "resources": ("list_resources", "resources"),
            "templates": ("list_resource_templates", "resourceTemplates"),
            "prompts": ("list_prompts", "prompts"),
        }[kind]
        if EARLY:
            return plain(await getattr(self, ask, getattr(self.session, ask, None))())[member]
        found, cursor = [], None
        while True:
            params = cursor and types.PaginatedRequestParams(cursor=cursor)
            page = plain(await getattr(self.session, ask)(params=params))
            found += page[member]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def list_resource_templates(self):
        request = types.ListResourceTemplatesRequest(method="resources/templates/list")
        return await self.session.send_request(types.ClientRequest(request), types.ListResourceTemplatesResult)

    async def call(self, name, arguments, progress=None, timeout=None):
        if not EARLY:
            async def step(*step):
                progress(*step)

            timeout = timeout and timedelta(seconds=timeout)
            return plain(await self.session.call_tool(name, arguments, timeout, step if progress else None))
        if progress:
            self.answers.progressed = progress
            params = types.CallToolRequestParams(name=name, arguments=arguments, _meta={"progressToken": "steps"})
            request = types.ClientRequest(types.CallToolRequest(method="tools/call", params=params))
            return plain(await self.session.send_request(request, types.CallToolResult))
        return plain(await asyncio.wait_for(self.session.call_tool(name, arguments), timeout))

    async def call_logging(self, name, arguments, level):
        await self.session.set_logging_level(level)
        return await self.call(name, arguments)

    async def cancelled_call(self, name, arguments, after):
        # This session leaves the notification to its user.
        request = self.session._request_id
        call = asyncio.ensure_future(self.call(name, arguments))
        await asyncio.sleep(after)
        params = types.CancelledNotificationParams(requestId=request, reason="tried")
        notification = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(notification))
        call.cancel()

    async def read(self, uri):
        return plain(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments):
        return plain(await self.session.get_prompt(name, arguments))

    async def complete(self, ref, name, value):
        if ref["type"] == "ref/prompt":
            ref = types.PromptReference(**ref)
        else:
            ref = (types.ResourceReference if EARLY else types.ResourceTemplateReference)(**ref)
        return plain(await self.session.complete(ref, {"name": name, "value": value}))

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        await self.session.subscribe_resource(AnyUrl(uri))
        yield
        await self.session.unsubscribe_resource(AnyUrl(uri))

    async def ping(self):
        await self.session.send_ping()


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
