"""The package `fastmcp` 4, which wraps the client of `mcp` 2 under other names."""
import contextlib

import mcp2
import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from mcp2 import plain


@contextlib.asynccontextmanager
async def connect(transport, target, revision, answers):
    stdio = transport == "stdio"
    server = StdioTransport(target[0], target[1:], keep_alive=False) if stdio else target[0]
    mode = "auto" if revision >= "2026-07-28" else "legacy"
    async with Client(server, mode=mode, **callbacks(answers)) as client:
        yield Session(client, answers)


def callbacks(answers):
    async def sample(_, params, __):
        return types.CreateMessageResult(**answers.sample(plain(params)))

    async def elicit(_, __, params, ___):
        return ElicitResult(**answers.elicit(plain(params)))

    given = mcp2.callbacks(answers)
    return dict(roots=[types.Root(**root) for root in answers.roots()], sampling_handler=sample,
                elicitation_handler=elicit, log_handler=given["logging_callback"],
                message_handler=given["message_handler"])


class Session(mcp2.Session):
    async def list(self, kind):
        ask = {
            "tools": self.client.list_tools,
            "resources": self.client.list_resources,
            "templates": self.client.list_resource_templates,
            "prompts": self.client.list_prompts,
        }[kind]
        return [plain(item) for item in await ask()]

    async def call(self, name, arguments, progress=None, timeout=None, meta=None):
        async def step(*step):
            progress(*step)

        step = step if progress else None
        return plain(await self.client.call_tool_mcp(name, arguments, step, timeout, meta))

    async def read(self, uri):
        return plain(await self.client.read_resource_mcp(uri))

    async def prompt(self, name, arguments):
        return plain(await self.client.get_prompt_mcp(name, arguments))

    async def complete(self, ref, name, value):
        ref = (types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference)(**ref)
        return plain(await self.client.complete_mcp(ref, {"name": name, "value": value}))
