"""The package `mcp` 2.x: one client for both eras."""
import contextlib
import warnings

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import listen

warnings.simplefilter("ignore")

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@contextlib.asynccontextmanager
async def connect(transport, target, revision, answers):
    server = StdioServerParameters(command=target[0], args=target[1:]) if transport == "stdio" else target[0]
    mode = "auto" if revision >= "2026-07-28" else "legacy"
    async with Client(server, mode=mode, **callbacks(answers)) as client:
        yield Session(client, answers)


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
        if isinstance(message, types.ResourceUpdatedNotification):
            answers.updated.put_nowait(str(message.params.uri))

    return dict(sampling_callback=sample, elicitation_callback=elicit, list_roots_callback=roots,
                logging_callback=log, message_handler=message)


class Session:
    pages = True

    def __init__(self, client, answers):
        self.client, self.answers = client, answers
        self.version = client.protocol_version
        self.server_info = plain(client.server_info)
        self.modern = self.version >= "2026-07-28"

    async def list(self, kind):
        ask, member = {
            "tools": (self.client.list_tools, "tools"),
            "resources": (self.client.list_resources, "resources"),
            "templates": (self.client.list_resource_templates, "resourceTemplates"),
            "prompts": (self.client.list_prompts, "prompts"),
        }[kind]
        found, cursor = [], None
        while True:
            page = plain(await ask(cursor=cursor))
            found += page[member]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def call(self, name, arguments, progress=None, timeout=None, meta=None):
        async def step(*step):
            progress(*step)

        step = step if progress else None
        return plain(await self.client.call_tool(name, arguments, timeout, step, meta=meta))

    async def call_logging(self, name, arguments, level):
        if self.modern:
            return await self.call(name, arguments, meta={LOG_LEVEL: level})
        await self.client.set_logging_level(level)
        return await self.call(name, arguments)

    async def cancelled_call(self, name, arguments, after):
        with anyio.move_on_after(after):
            await self.call(name, arguments)

    async def read(self, uri):
        return plain(await self.client.read_resource(uri))

    async def prompt(self, name, arguments):
        return plain(await self.client.get_prompt(name, arguments))

    async def complete(self, ref, name, value):
        ref = (types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference)(**ref)
        return plain(await self.client.complete(ref, {"name": name, "value": value}))

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        if self.modern:
            # The message handler receives the update too, as after the older request.
            async with listen(self.client.session, resource_subscriptions=[uri]) as subscription:
                assert uri in (subscription.honored.resource_subscriptions or []), subscription.honored
                yield
                assert str((await anext(subscription)).uri) == uri
        else:
            await self.client.session.subscribe_resource(uri)
            yield
            await self.client.session.unsubscribe_resource(uri)

    async def ping(self):
        await self.client.session.send_ping()


def plain(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)
