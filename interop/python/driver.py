"""Drives a server with a Python client and prints a JSON line per check.

driver.py SDK CLIENT REVISION CHECK,… stdio COMMAND… | http URL | sse URL

SDK names the module in this folder that adapts one package: each provides the same few calls, and
answers with plain dictionaries in the words of the wire. What is expected of the server is said here, once.
"""
import asyncio
import base64
import contextlib
import importlib
import json
import sys
import time
import uuid

TOOLS = {"add", "find", "count_words", "remind", "tidy", "card", "sign", "connect", "summarize", "places"}
RESOURCES = {"notes://about", "notes://all", "notes://pixel"}
ABOUT = "Notes, kept in memory."


class Answers:
    """The client's handlers of server requests, and the notifications that it received."""

    def __init__(self):
        self.questions = []
        self.declines = False
        self.logged = asyncio.Queue()
        self.updated = asyncio.Queue()

    def elicit(self, params):
        self.questions.append(params)
        if self.declines:
            return {"action": "decline"}
        if params.get("mode") == "url":
            return {"action": "accept"}
        return {"action": "accept", "content": {"name": "Ada", "dated": True}}

    def sample(self, params):
        self.questions.append(params)
        return {"role": "assistant", "model": "none", "content": {"type": "text", "text": "all is well"}}

    def roots(self):
        return [{"uri": "file:///srv/interop", "name": "here"}]


class Checks:
    """A method for each check."""

    def __init__(self, session, answers, revision):
        self.session, self.answers, self.revision = session, answers, revision
        self.mark = uuid.uuid4().hex

    async def version(self):
        equal(self.session.version, self.revision)

    async def server_info(self):
        equal(self.session.server_info["name"], "notes")

    async def tools(self):
        tools = await self.session.list("tools")
        equal(names(tools), TOOLS if self.session.pages else TOOLS & names(tools))
        equal(len(tools), len(names(tools)))
        for tool in tools:
            equal(tool["inputSchema"]["type"], "object")

    async def resources(self):
        equal({resource["uri"] for resource in await self.session.list("resources")}, RESOURCES)

    async def templates(self):
        templates = await self.session.list("templates")
        equal({template["uriTemplate"] for template in templates}, {"notes://note/{number}"})

    async def prompts(self):
        equal(names(await self.session.list("prompts")), {"review"})

    async def text(self):
        equal(text(await self.session.call("tidy", {})), "All is in order.")

    async def content(self):
        blocks = (await self.session.call("card", {}))["content"]
        equal([block["type"] for block in blocks], ["text", "image", "resource"])
        equal(blocks[1]["mimeType"], "image/png")
        equal(blocks[2]["resource"]["text"], ABOUT)

    async def structured(self):
        result = await self.session.call("add", {"text": f"structured {self.mark}"})
        told = json.loads(text(result))
        if self.revision >= "2025-06-18":
            equal(result["structuredContent"], told)
        equal(told["uri"], f"notes://note/{told['count']}")

    async def list_result(self):
        """A result that is an array, which revisions before the newest cannot hold as structured content."""
        result = await self.session.call("find", {"text": f"structured {self.mark}"})
        found = json.dumps(result)
        assert f"structured {self.mark}" in found, found

    async def missing_argument(self):
        result = await self.session.call("add", {})
        equal(result["isError"], True)
        assert "text" in text(result), text(result)

    async def invalid_arguments(self):
        result = await self.session.call("add", {"text": 7})
        equal(result["isError"], True)
        assert "text" in text(result), text(result)

    async def tool_error(self):
        result = await self.session.call("add", {"text": " "})
        equal(result["isError"], True)
        assert "must not be empty" in text(result), text(result)

    async def unknown_tool(self):
        await fails(self.session.call("no_such_tool", {}), -32602)

    async def progress(self):
        seen = []
        await self.session.call("tidy", {}, progress=lambda *step: seen.append(step[:2]))
        equal(seen, [(1, 3), (2, 3), (3, 3)])

    async def logging(self):
        drain(self.answers.logged)
        await self.session.call_logging("tidy", {}, "info")
        message = await asyncio.wait_for(self.answers.logged.get(), 5)
        equal((message["level"], message["data"]), ("info", "tidying up"))

    async def read_text(self):
        contents = (await self.session.read("notes://about"))["contents"]
        equal([(part["uri"], part["text"]) for part in contents], [("notes://about", ABOUT)])

    async def read_bytes(self):
        contents = (await self.session.read("notes://pixel"))["contents"]
        equal(contents[0]["mimeType"], "image/png")
        equal(base64.b64decode(contents[0]["blob"])[:4], b"\x89PNG")

    async def read_template(self):
        added = json.loads(text(await self.session.call("add", {"text": f"template {self.mark}"})))
        contents = (await self.session.read(added["uri"]))["contents"]
        equal(contents[0]["text"], f"template {self.mark}")

    async def missing_resource(self):
        missing = -32602 if self.revision >= "2026-07-28" else -32002
        await fails(self.session.read("notes://nowhere"), missing)
        await fails(self.session.read("notes://note/999999"), missing)

    async def prompt(self):
        messages = (await self.session.prompt("review", {"tone": "frank"}))["messages"]
        equal([message["content"]["type"] for message in messages], ["resource", "text"])
        equal(messages[1]["content"]["text"], "Go through these notes in a frank tone.")

    async def unknown_prompt(self):
        await fails(self.session.prompt("no_such_prompt", {}), -32602)

    async def completion(self):
        answer = await self.session.complete({"type": "ref/prompt", "name": "review"}, "tone", "fr")
        equal(set(answer["completion"]["values"]), {"friendly", "frank"})
        template = {"type": "ref/resource", "uri": "notes://note/{number}"}
        answer = await self.session.complete(template, "number", "1")
        assert "1" in answer["completion"]["values"], answer

    async def elicitation(self):
        equal(text(await self.session.call("sign", {})), "Signed by Ada.")
        question = self.answers.questions[-1]
        equal(question["message"], "Who signs this note?")
        assert "name" in question["requestedSchema"]["properties"], question

    async def declined(self):
        self.answers.declines = True
        answer = text(await self.session.call("sign", {}))
        self.answers.declines = False
        equal(answer, "The user did not want to sign.")

    async def url_elicitation(self):
        equal(text(await self.session.call("connect", {})), "The user went to the page.")
        equal(self.answers.questions[-1]["url"], "https://example.com/login")

    async def sampling(self):
        answer = text(await self.session.call("summarize", {}))
        assert "all is well" in answer, answer

    async def roots(self):
        equal(text(await self.session.call("places", {})), "file:///srv/interop")

    async def undeclared(self):
        """A client request that this client does not support ends the call, and nothing is sent to it."""
        result = await self.session.call("summarize", {})
        equal(result["isError"], True)

    async def cancellation(self):
        """The tool would leave a note after the time; it must not, once its call is cancelled."""
        note = f"cancelled {self.mark}"
        await self.session.cancelled_call("remind", {"text": note, "seconds": 1.5}, after=0.2)
        await asyncio.sleep(1.6)
        found = json.dumps(await self.session.call("find", {"text": note}))
        assert note not in found, found

    async def timeout(self):
        started = time.monotonic()
        try:
            await self.session.call("remind", {"text": "late", "seconds": 1.5}, timeout=0.2)
        except Exception:
            assert time.monotonic() - started < 1.4
        else:
            raise AssertionError("the call was not given up")
        await asyncio.sleep(1.5)
        equal(text(await self.session.call("tidy", {})), "All is in order.")

    async def subscription(self):
        drain(self.answers.updated)
        async with self.session.subscribed("notes://all"):
            await self.session.call("add", {"text": f"update {self.mark}"})
            equal(await asyncio.wait_for(self.answers.updated.get(), 5), "notes://all")

    async def together(self):
        """A slow call does not delay others on the same connection."""
        slow = asyncio.ensure_future(self.session.call("remind", {"text": f"slow {self.mark}", "seconds": 1}))
        await asyncio.sleep(0.05)
        quick = await asyncio.gather(*(self.session.call("tidy", {}) for _ in range(8)))
        assert not slow.done(), "the slow call ended first"
        equal({text(result) for result in quick}, {"All is in order."})
        await slow

    async def ping(self):
        await self.session.ping()


def equal(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


def names(items):
    return {item["name"] for item in items}


def text(result):
    return result["content"][0]["text"]


def drain(queue):
    while not queue.empty():
        queue.get_nowait()


async def fails(call, code):
    try:
        result = await call
    except Exception as error:
        equal(getattr(getattr(error, "error", error), "code", error), code)
    else:
        raise AssertionError(f"expected error {code}, got {result!r}")


def reason(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def main():
    sdk, client, revision, wanted, transport, *target = sys.argv[1:]
    sdk = importlib.import_module(sdk)

    def report(check, ok, detail=""):
        line = {"client": client, "transport": transport, "check": check, "ok": ok, "detail": detail[:600]}
        print(json.dumps(line), flush=True)

    answers, stage = Answers(), "connect"
    try:
        async with contextlib.AsyncExitStack() as stack:
            session = await stack.enter_async_context(sdk.connect(transport, target, revision, answers))
            report("connect", True)
            checks = Checks(session, answers, revision)
            for name in wanted.split(","):
                try:
                    await asyncio.wait_for(getattr(checks, name)(), 10)
                    report(name, True)
                except Exception as error:
                    report(name, False, reason(error))
            stage, closing = "close", time.monotonic()
        taken = time.monotonic() - closing
        report("close", taken < 1.9, f"{taken:.2f} s")
    except BaseException as error:
        report(stage, False, reason(error))


asyncio.run(main())
