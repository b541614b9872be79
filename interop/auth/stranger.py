#!/usr/bin/env python3
"""Shows a server tokens, good ones and bad ones, and prints a JSON line per check.

stranger.py '{"url", "issuer", "checks", "secret", …}'
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
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "stranger", "version": "1"}}}


class Checks:
    def no_token(self):
        """Whoever says nothing is told where to go, and not that anything is wrong with a token."""
        status, challenge, _ = post()
        equal(status, 401)
        holds(challenge.lower(), "bearer")
        holds(challenge, 'resource_metadata="')

    def metadata(self):
        _, challenge, _ = post()
        place = challenge.split('resource_metadata="')[1].split('"')[0]
        for document in {place, well_known(url)}:
            said = json.loads(urllib.request.urlopen(document, timeout=10).read())
            equal(said["resource"], url)
            equal(said["authorization_servers"], [task["issuer"]])
            if "offline_access" in said.get("scopes_supported", []):
                raise AssertionError("offline_access is offered")

    def bad_token(self):
        refused(post("Bearer nobody.ever.signed"), 401, "invalid_token")

    def query_token(self):
        """A token has no business in a URL."""
        status, _, _ = post(to=f"{url}?access_token={token()}")
        equal(status, 401)

    def foreign_token(self):
        """A good token, for another server."""
        refused(post(f"Bearer {token(resource='http://127.0.0.1:9/other')}"), 401, "invalid_token")

    def small_scope(self):
        """A good token that is good for too little."""
        _, challenge, _ = answer = post(f"Bearer {token(scope='mcp:write')}")
        refused(answer, 403, "insufficient_scope")
        holds(challenge, "mcp:read")

    def two_tokens(self):
        """Which of the two is meant is not for a server to guess."""
        status, _, _ = post(f"Bearer {token()}, Bearer {token()}")
        if status not in (400, 401):
            raise AssertionError(f"answered with {status}")

    def good_token(self):
        """Otherwise the refusals above say nothing; the word before a token may be written in any case."""
        for word in ("Bearer", "bearer"):
            status, _, body = post(f"{word} {token()}")
            equal(status, 200)
            holds(body, "serverInfo")

    def expired_token(self):
        old = token()
        time.sleep(task["ttl"] + 1.5)
        refused(post(f"Bearer {old}"), 401, "invalid_token")


def post(authorization=None, to=url):
    """Answers with the status, the challenge and the body."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if authorization:
        headers["authorization"] = authorization
    request = urllib.request.Request(to, json.dumps(PING).encode(), headers)
    try:
        answer = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    return answer.status, ", ".join(answer.headers.get_all("www-authenticate", [])), answer.read().decode()


def token(resource=url, scope="mcp:read"):
    """A token for a machine, which the client `service` gets for its secret."""
    pair = ":".join(urllib.parse.quote_plus(part) for part in ("service", task["secret"]))
    form = urllib.parse.urlencode({"grant_type": "client_credentials", "resource": resource, "scope": scope})
    headers = {"authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    request = urllib.request.Request(f"{task['issuer']}/token", form.encode(), headers)
    return json.loads(urllib.request.urlopen(request, timeout=10).read())["access_token"]


def well_known(place):
    parts = urllib.parse.urlsplit(place)
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"


def refused(answer, status, error):
    equal(answer[0], status)
    holds(answer[1], f'error="{error}"')


def equal(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


def holds(whole, part):
    if part not in whole:
        raise AssertionError(f"expected {part!r} in {whole!r}")


for check in task["checks"]:
    detail = ""
    try:
        getattr(Checks(), check)()
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"[:600]
    print(json.dumps({"check": check, "ok": not detail, "detail": detail}), flush=True)
