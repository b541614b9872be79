"""Tests a server that requires a token with the client of the package `mcp`, 1.x or 2.x, and prints a JSON line per check.

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


class MemoryStorage:
    """Stores tokens and the client registration."""

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


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def follow_redirects(url):
    """Acts as a browser: follows redirects with cookies until the redirect URI."""
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(cookies, NoRedirect)
    while not url.startswith(REDIRECT):
        try:
            browser.open(url, timeout=10)
            raise OSError("the login ended elsewhere")
        except urllib.error.HTTPError as response:
            url = urllib.parse.urljoin(url, response.headers["location"])
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


class Checks:
    def __init__(self):
        self.storage, self.stack, self.callback = MemoryStorage(), contextlib.AsyncExitStack(), {}

    async def open_login_page(self, url):
        self.callback = await asyncio.to_thread(follow_redirects, url)

    async def read_callback(self):
        if "error" in self.callback:
            raise OSError(self.callback["error"])
        if Client is None:
            return self.callback["code"], self.callback.get("state")
        return AuthorizationCodeResult(**self.callback)

    async def open(self):
        document = task["document"] if task["client"] == "document" else None
        provider = OAuthClientProvider(
            server_url=task["url"], client_metadata=OAuthClientMetadata(**METADATA), storage=self.storage,
            redirect_handler=self.open_login_page, callback_handler=self.read_callback, client_metadata_url=document)
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
            contains(error_chain(error), "access_denied")
        else:
            raise AssertionError("the request was accepted")

    async def whoami(self):
        caller = json.loads((await self.client.call_tool("whoami", {})).content[0].text)
        contains(caller["scopes"], "mcp:read")
        equal(caller["subject"], task["subject"])

    async def many(self):
        for _ in range(10):
            await self.whoami()

    async def refreshed(self):
        self.old = self.storage.tokens.refresh_token
        await self.again()

    async def rotated(self):
        if self.storage.tokens.refresh_token in (None, self.old):
            raise AssertionError("the refresh token was not rotated")

    async def again(self):
        await asyncio.sleep(task["ttl"] + 1.5)
        await self.whoami()

    async def close(self):
        await self.stack.aclose()


def error_chain(error):
    """Returns an error with its causes."""
    parts = [error, *getattr(error, "exceptions", ()), error.__cause__]
    return " ".join([repr(error), *(error_chain(part) for part in parts[1:] if part)])


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def contains(whole, part):
    if part not in whole:
        raise AssertionError(f"expected {part!r} in {whole!r}")


async def main():
    checks = Checks()
    for check in task["checks"]:
        detail = ""
        try:
            await getattr(checks, check)()
        except BaseException as error:
            detail = error_chain(error)[:600]
        print(json.dumps({"check": check, "ok": not detail, "detail": detail}), flush=True)


asyncio.run(main())
