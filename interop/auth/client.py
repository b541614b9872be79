"""Drives a server that wants a token with the client of the package `mcp`, 1.x or 2.x, and prints a JSON line per check.

client.py '{"url", "revision", "issuer", "client", "checks", …}'
"""
import asyncio
import contextlib
import http.cookiejar
import json
import sys
import urllib.error
import urllib.parse
import urllib.request
import warnings

from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

try:
    import httpx2 as httpx
    from mcp import Client
    from mcp.client.auth import AuthorizationCodeResult
except ImportError:
    import httpx
    from mcp import ClientSession

    Client = None

warnings.simplefilter("ignore")
task = json.loads(sys.argv[1])
REDIRECT = "http://127.0.0.1:9/callback"
METADATA = {
    "client_name": "interop", "redirect_uris": [REDIRECT], "application_type": "native",
    "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none",
}


class Memory:
    """What came of a login."""

    tokens = information = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        if task["client"] == "known":
            return OAuthClientInformationFull(client_id="known", **METADATA)
        return self.information

    async def set_client_info(self, information):
        self.information = information


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def visit(url):
    """A browser without a person: follows redirects with its cookies until they lead back to us."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(cookies, Stay)
    while not url.startswith(REDIRECT):
        try:
            browser.open(url, timeout=10)
            raise OSError("the login ended elsewhere")
        except urllib.error.HTTPError as answer:
            url = urllib.parse.urljoin(url, answer.headers["location"])
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


class Checks:
    def __init__(self):
        self.memory, self.stack, self.came = Memory(), contextlib.AsyncExitStack(), {}

    async def send_away(self, url):
        self.came = await asyncio.to_thread(visit, url)

    async def come_back(self):
        if "error" in self.came:
            raise OSError(self.came["error"])
        if Client is None:
            return self.came["code"], self.came.get("state")
        return AuthorizationCodeResult(**self.came)

    async def open(self):
        document = task["document"] if task["client"] == "document" else None
        provider = OAuthClientProvider(
            server_url=task["url"], client_metadata=OAuthClientMetadata(**METADATA), storage=self.memory,
            redirect_handler=self.send_away, callback_handler=self.come_back, client_metadata_url=document)
        web = await self.stack.enter_async_context(httpx.AsyncClient(auth=provider, timeout=20))
        if Client is None:
            streams = await self.stack.enter_async_context(streamable_http_client(task["url"], http_client=web))
            self.client = await self.stack.enter_async_context(ClientSession(*streams[:2]))
            return (await self.client.initialize()).protocolVersion
        mode = "auto" if task["revision"] >= "2026-07-28" else "legacy"
        transport = streamable_http_client(task["url"], http_client=web)
        self.client = await self.stack.enter_async_context(Client(transport, mode=mode))
        return self.client.protocol_version

    async def connect(self):
        equal(await self.open(), task["revision"])

    async def denied(self):
        try:
            await self.open()
        except BaseException as error:
            holds(story(error), "access_denied")
        else:
            raise AssertionError("it was let in")

    async def whoami(self):
        caller = json.loads((await self.client.call_tool("whoami", {})).content[0].text)
        holds(caller["scopes"], "mcp:read")
        equal(caller["subject"], task["subject"])

    async def many(self):
        for _ in range(10):
            await self.whoami()

    async def refreshed(self):
        self.old = self.memory.tokens.refresh_token
        await self.again()

    async def rotated(self):
        if self.memory.tokens.refresh_token in (None, self.old):
            raise AssertionError("it is the same token")

    async def again(self):
        await asyncio.sleep(task["ttl"] + 1.5)
        await self.whoami()

    async def close(self):
        await self.stack.aclose()


def story(error):
    """An error with all that is in it."""
    parts = [error, *getattr(error, "exceptions", ()), error.__cause__]
    return " ".join([repr(error), *(story(part) for part in parts[1:] if part)])


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def holds(whole, part):
    if part not in whole:
        raise AssertionError(f"expected {part!r} in {whole!r}")


async def main():
    checks = Checks()
    for check in task["checks"]:
        detail = ""
        try:
            await getattr(checks, check)()
        except BaseException as error:
            detail = story(error)[:600]
        print(json.dumps({"check": check, "ok": not detail, "detail": detail}), flush=True)


asyncio.run(main())
