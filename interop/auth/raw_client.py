#!/usr/bin/env python3
"""Sends valid and invalid tokens to a server without an MCP package, and prints a JSON line per check.

raw_client.py '{"url", "issuer", "checks", "secret", …}'
"""
import base64
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

task = json.loads(sys.argv[1])
url = task["url"]
PING = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw-client", "version": "1"}}}


class Checks:
    def no_token(self):
        """A request without a token gets the metadata URL, and no error code."""
        status, challenge, _ = post()
        equal(status, 401)
        contains(challenge.lower(), "bearer")
        contains(challenge, 'resource_metadata="')

    def metadata(self):
        _, challenge, _ = post()
        metadata_url = challenge.split('resource_metadata="')[1].split('"')[0]
        for document in {metadata_url, well_known(url)}:
            metadata = json.loads(urllib.request.urlopen(document, timeout=10).read())
            equal(metadata["resource"], url)
            equal(metadata["authorization_servers"], [task["issuer"]])
            if "offline_access" in metadata.get("scopes_supported", []):
                raise AssertionError("offline_access is advertised")

    def bad_token(self):
        expect_rejected(post("Bearer not.a.token"), 401, "invalid_token")

    def query_token(self):
        """A token in a URL is not accepted."""
        status, _, _ = post(to=f"{url}?access_token={token()}")
        equal(status, 401)

    def foreign_token(self):
        """A valid token for another server."""
        expect_rejected(post(f"Bearer {token(resource='http://127.0.0.1:9/other')}"), 401, "invalid_token")

    def small_scope(self):
        """A valid token with too few scopes."""
        _, challenge, _ = response = post(f"Bearer {token(scope='mcp:write')}")
        expect_rejected(response, 403, "insufficient_scope")
        contains(challenge, "mcp:read")

    def two_tokens(self):
        """Two tokens are ambiguous."""
        status, _, _ = post(f"Bearer {token()}, Bearer {token()}")
        if status not in (400, 401):
            raise AssertionError(f"got status {status}")

    def good_token(self):
        """A valid token is accepted; the scheme is case-insensitive."""
        for word in ("Bearer", "bearer"):
            status, _, body = post(f"{word} {token()}")
            equal(status, 200)
            contains(body, "serverInfo")

    def expired_token(self):
        old = token()
        time.sleep(task["ttl"] + 1.5)
        expect_rejected(post(f"Bearer {old}"), 401, "invalid_token")


def post(authorization=None, to=url):
    """Returns the status, the challenge and the body."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if authorization:
        headers["authorization"] = authorization
    request = urllib.request.Request(to, json.dumps(PING).encode(), headers)
    try:
        response = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        response = error
    return response.status, ", ".join(response.headers.get_all("www-authenticate", [])), response.read().decode()


def token(resource=url, scope="mcp:read"):
    """Returns a token of the client `service`, by client credentials."""
    pair = ":".join(urllib.parse.quote_plus(part) for part in ("service", task["secret"]))
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "resource": resource, "scope": scope})
    headers = {"authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    request = urllib.request.Request(f"{task['issuer']}/token", form.encode(), headers)
    return json.loads(urllib.request.urlopen(request, timeout=10).read())["access_token"]


def well_known(resource):
    parts = urllib.parse.urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"


def expect_rejected(response, status, error):
    equal(response[0], status)
    contains(response[1], f'error="{error}"')


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def contains(whole, part):
    if part not in whole:
        raise AssertionError(f"expected {part!r} in {whole!r}")


for check in task["checks"]:
    detail = ""
    try:
        getattr(Checks(), check)()
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"[:600]
    print(json.dumps({"check": check, "ok": not detail, "detail": detail}), flush=True)
