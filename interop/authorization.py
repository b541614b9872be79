"""Servers that require a token: our client and our server with those of other projects, and an authorization server of a third.

A case says how the authorization server is set up (`auth/as.mjs` has the switches), how the client is known to it, and what
is tried. Afterwards the journal of the authorization server says what was really asked of it.
"""
import base64
import contextlib
import itertools
import json
import os
import re
import subprocess
import threading
import urllib.parse
import urllib.request

import bridge
from packages import HERE, TARGET, TOOLS, Npm, Pip, Program
from rows import Row
from servers import Listening, fresh_folder
from tap import Tap

DOCUMENT = {
    "client_id": "https://client.example/interop.json",
    "client_name": "interop",
    "application_type": "native",
    "token_endpoint_auth_method": "none",
    "redirect_uris": ["http://127.0.0.1/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
}


def npm(*packages):
    return Npm(*packages, "jose@6.2.17", scripts=HERE / "auth", tools=TOOLS / "auth")


class Ours:
    """A program of interop/auth, which run.py builds."""

    def __init__(self, binary):
        self.binary = TARGET / "debug" / binary

    def install(self):
        pass

    def command(self, *arguments):
        return [self.binary, *arguments]


class Together:
    """Packages that are needed together."""

    def __init__(self, *packages):
        self.packages = packages

    def install(self):
        for package in self.packages:
            package.install()


PROVIDER = npm("oidc-provider@9.13.3")
THEIR_CLIENT = npm("@modelcontextprotocol/client@2.4.0", "zod@4")
THEIR_SERVER = npm("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2", "zod@4")
PYTHON, PYTHON_1 = (Pip(f"mcp=={version}", scripts=HERE / "auth") for version in ("2.3.0", "1.30.0"))
PACKAGES = Together(PROVIDER, THEIR_CLIENT, THEIR_SERVER, PYTHON, PYTHON_1)
CLIENTS = {
    "turnbuckle": Ours("turnbuckle-interop-auth-client"),
    "typescript 2.4.0": Program(THEIR_CLIENT, "client.mjs"),
    "python 2.3.0": Program(PYTHON, "client.py"),
    "python 1.30.0": Program(PYTHON_1, "client.py"),
    "raw client": Ours(HERE / "auth" / "raw_client.py"),
}
SERVERS = {
    "turnbuckle": Ours("turnbuckle-interop-auth-server"),
    "typescript 2.4.0": Program(THEIR_SERVER, "server.mjs"),
    "python 2.3.0": Program(PYTHON, "server.py"),
    "python 1.30.0": Program(PYTHON_1, "server.py"),
}
PAIRS = [("turnbuckle", "turnbuckle"), ("turnbuckle", "typescript 2.4.0"), ("typescript 2.4.0", "turnbuckle")]
# The cases that the Python package supports, in the revision of each version.
PYTHONS = [("python 2.3.0", "2026-07-28"), ("python 1.30.0", "2025-11-25")]
PYTHON_CLIENTS = [
    "metadata of RFC 8414", "path, metadata of OpenID", "path, metadata behind it", "known client",
    "client metadata document", "expiry", "denial", "introspection",
]
PYTHON_SERVERS = [
    "metadata of RFC 8414", "path, metadata of OpenID", "known client", "expiry", "expiry, two processes",
    "stolen refresh token", "denial", "another device", "client credentials, secret", "client credentials, key",
]
# Their client with their server shows whether the test setup is at fault; only on request.
CONTROL = ("typescript 2.4.0", "typescript 2.4.0")

CODE, REFRESH, MACHINE = "authorization_code", "refresh_token", "client_credentials"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


class Case:
    """`grants` are the grants used, in this order; `errors` the errors that the authorization server may return as well; `lacks`
    has the peers that do not support it, and why."""

    def __init__(self, name, switches, checks, grants, client="dynamic", *, dpop=False, registrations=1, errors=(),
                 lacks=(), revisions=("2026-07-28",)):
        self.name, self.switches, self.checks, self.grants = name, switches, checks.split(), grants
        self.client, self.dpop, self.lacks, self.revisions = client, dpop, dict(lacks), revisions
        self.errors = set(errors)
        self.registrations = registrations if client == "dynamic" else 0


BOTH = ("2025-11-25", "2026-07-28")
NO_PROOFS = {("server", "typescript 2.4.0"): "this package verifies no proofs of possession"}
SILENT = {("client", "python 1.30.0"): "the connection of this package ends before it can say why"}
NO_DEVICE = {("client", "typescript 2.4.0"): "this package knows no login on another device"}
HASTY = {("client", "typescript 2.4.0"): "this package refreshes for each call, by a token that is good for one of them"}
ALONE = {("client", "typescript 2.4.0"): "this package lacks a store that processes could share"}
BY_SCOPE = {("client", "typescript 2.4.0"): "this package registers for what it needs first, and may not ask for more"}
UNENCODED = {("client", "typescript 2.4.0"): "this package sends a secret without the encoding of RFC 6749, 2.3.1"}
CASES = [
    Case("metadata of RFC 8414", {"documents": ["oauth"]}, "connect whoami close", [CODE], revisions=BOTH),
    Case("metadata of OpenID", {"documents": ["oidc"]}, "connect whoami close", [CODE]),
    Case("path, metadata of RFC 8414", {"path": "/tenant", "documents": ["oauth"]}, "connect whoami close", [CODE]),
    Case("path, metadata of OpenID", {"path": "/tenant", "documents": ["oidc"]}, "connect whoami close", [CODE]),
    Case("path, metadata behind it", {"path": "/tenant", "documents": ["appended"]}, "connect whoami close", [CODE]),
    Case("known client", {"registration": False}, "connect whoami close", [CODE], "known"),
    Case("client metadata document", {"document": DOCUMENT}, "connect whoami close", [CODE], "document"),
    Case("expiry", {"ttl": 2}, "connect whoami refreshed rotated again close", [CODE, REFRESH], revisions=BOTH),
    Case("expiry, refresh to be asked for", {"ttl": 2, "refresh": "asked"}, "connect whoami refreshed rotated close",
         [CODE, REFRESH]),
    Case("expiry, many calls", {"ttl": 2}, "connect whoami together together close", [CODE, REFRESH], lacks=HASTY),
    Case("expiry, two processes", {"ttl": 2}, "connect whoami shared close", [CODE, REFRESH], lacks=ALONE),
    Case("expiry, two processes, proofs", {"ttl": 2, "nonce": True}, "connect whoami shared close", [CODE, REFRESH],
         dpop=True, errors=["use_dpop_nonce"], lacks=ALONE | NO_PROOFS),
    Case("stolen refresh token", {"ttl": 2}, "connect whoami refreshed rotated reused again close", [CODE, REFRESH, CODE],
         errors=["invalid_grant"]),
    Case("forgotten client", {"ttl": 2}, "connect whoami forgotten again close", [CODE, CODE], registrations=2,
         errors=["invalid_client"]),
    Case("step-up", {"registration": False}, "connect whoami stepped_up whoami close", [CODE, CODE], "known",
         revisions=BOTH),
    Case("step-up, dynamic client", {}, "connect whoami stepped_up whoami close", [CODE, CODE], lacks=BY_SCOPE),
    Case("denial", {"deny": True}, "denied", [], revisions=BOTH, errors=["access_denied"], lacks=SILENT),
    Case("another device", {"ttl": 2}, "connect whoami refreshed rotated close", [DEVICE, REFRESH], "known",
         errors=["authorization_pending"], lacks=NO_DEVICE),
    Case("introspection", {"tokens": "opaque"}, "connect whoami many close", [CODE], revisions=BOTH),
    Case("introspection, expiry", {"tokens": "opaque", "ttl": 2}, "connect whoami refreshed rotated close",
         [CODE, REFRESH]),
    Case("proof of possession", {}, "connect whoami many close", [CODE], dpop=True, lacks=NO_PROOFS, revisions=BOTH),
    Case("proof of possession, nonces", {"nonce": True, "ttl": 2}, "connect whoami refreshed rotated close",
         [CODE, REFRESH], dpop=True, errors=["use_dpop_nonce"], lacks=NO_PROOFS),
    Case("client credentials, secret", {}, "connect whoami close", [MACHINE], "service", revisions=BOTH),
    Case("client credentials, odd secret", {"secret": "sesame: 100% & +"}, "connect whoami close", [MACHINE], "service",
         lacks=UNENCODED),
    Case("client credentials, key", {}, "connect whoami close", [MACHINE], "signer"),
    Case("client credentials, expiry", {"ttl": 2}, "connect whoami again close", [MACHINE], "service"),
]


# Tokens from the authorization server are sent to the server in every invalid form.
REFUSALS = "no_token metadata bad_token query_token foreign_token small_scope two_tokens good_token expired_token"
STRANGE = [
    Case("invalid tokens", {"ttl": 3}, REFUSALS, []),
    Case("invalid tokens, introspection", {"ttl": 3, "tokens": "opaque"}, REFUSALS, []),
]


class BridgeCase(Case):
    """A case with a bridge, which requires tokens of one authorization server and has tokens of another one. `credentials` are
    those of the bridge, and `grants_behind` the grants that they take."""

    def __init__(self, name, switches, checks, credentials, grants_behind, grants=(CODE,), **others):
        super().__init__(f"bridge, {name}", switches, checks, list(grants), **others)
        self.credentials, self.grants_behind = credentials, grants_behind


LENIENT = {("client", "typescript 2.4.0"): "this package refreshes only what was rejected, and a bridge allows a minute"}
# A token that expires between the login and the first call is renewed as well, but its grants are other ones.
SHORT = {"ttl": 6}
BRIDGED = [
    BridgeCase("client secret behind", {}, "connect whoami many close", "secret", [MACHINE], revisions=BOTH),
    BridgeCase("client key behind", {}, "connect whoami close", "key", [MACHINE]),
    BridgeCase("login behind", {}, "connect whoami many close", "login", [CODE], revisions=BOTH),
    BridgeCase("token file behind", SHORT, "connect whoami again close", "file", [MACHINE], [CODE, REFRESH],
               lacks=LENIENT),
    BridgeCase("expiry, client secret behind", SHORT, "connect whoami refreshed rotated close", "secret",
               [MACHINE], [CODE, REFRESH], revisions=BOTH, lacks=LENIENT),
    BridgeCase("expiry, login behind", SHORT, "connect whoami refreshed rotated close", "login", [CODE, REFRESH],
               [CODE, REFRESH], lacks=LENIENT),
]
# A bridge allows for clocks that differ by a minute, so an expired token is tried elsewhere.
REFUSED_BY_BRIDGE = BridgeCase("invalid tokens", {}, REFUSALS.removesuffix(" expired_token"), "secret", [MACHINE], [])


class Login(Row):
    """A case with one client, one server, and one authorization server."""

    first = last = []
    package = PACKAGES

    def __init__(self, case, revision, client, server):
        self.case, self.client, self.server = case, client, server
        super().__init__(f"auth: {case.name}, {client} with {server}", revision, ("http",), case.checks, {})

    def run(self, transport):
        log = self.log(transport)
        log.unlink(missing_ok=True)
        key = log.with_suffix(".pem")
        switches = json.dumps(self.case.switches | {"key": str(key)})
        self.journal = log.with_suffix(".as")
        with Listening(PROVIDER.command("as.mjs", switches), self.journal) as provider:
            issuer = f"http://127.0.0.1:{provider.port}{provider.path or ''}"
            # The server gets its public address before it listens.
            tap = Tap(0, log)
            self.url = f"http://127.0.0.1:{tap.port}/mcp"
            command = SERVERS[self.server].command(json.dumps(self.wishes(issuer)))
            with Listening(command, log.with_suffix(".server")) as server:
                tap.target = server.port
                self.judge(transport, CLIENTS[self.client].command(json.dumps(self.task(issuer, key))))

    def wishes(self, issuer):
        """The requirements of the server."""
        switches = self.case.switches
        return {"issuer": issuer, "resource": self.url, "tokens": switches.get("tokens", "jwt"), "dpop": self.case.dpop,
                "nonce": switches.get("nonce", False)}

    def task(self, issuer, key):
        """The configuration of the client."""
        case = self.case
        return {
            "url": self.url, "revision": self.revision, "issuer": issuer, "client": case.client, "dpop": case.dpop,
            "ttl": case.switches.get("ttl", 300), "secret": case.switches.get("secret", "open-sesame"),
            "key": str(key), "document": DOCUMENT["client_id"], "checks": case.checks,
            "device": DEVICE in case.grants, "subject": None if MACHINE in case.grants else "ada",
        }

    def afterwards(self, transport, log):
        journal = [json.loads(line) for line in self.journal.read_text().splitlines() if line.startswith("{")]
        by_route = lambda route: [line for line in journal if line.get("route") == route]
        yield "registered", self.registered(by_route("registration"))
        yield "asked", self.asked(by_route("authorization"))
        yield "granted", self.granted(by_route("token"), self.case.grants, self.url)
        yield "untroubled", self.untroubled(journal)
        yield "no_secrets", self.no_secrets(log)
        if self.server == "turnbuckle" and self.case.switches.get("tokens") == "opaque":
            yield "remembered", self.remembered(by_route("introspection"), by_route("token"))

    def registered(self, lines):
        """Registers no more often than needed, and as a native application."""
        # Only 2026-07-28 requires the application type.
        kind = {} if self.client == "python 1.30.0" else {"application_type": "native"}
        good = [line["status"] == 201 and kind.items() <= line["said"].items() for line in lines]
        return verdict(good == [True] * self.case.registrations, lines)

    def asked(self, lines):
        """Every login uses PKCE, and names the server that the token is for."""
        wanted = 1 if self.case.switches.get("deny") else self.case.grants.count(CODE)
        for line in lines:
            said = line["said"]
            bound = said.get("code_challenge_method") == "S256" and len(said.get("state", "")) >= 20
            if not bound or said.get("resource") != self.url:
                return verdict(False, line)
        return verdict(len(lines) == wanted, lines)

    def granted(self, lines, expected, url):
        """Tokens are obtained with the expected grants, each for this server."""
        good = [line for line in lines if line["status"] == 200]
        grants = [line["said"]["grant_type"] for line in good]
        # A client that refreshes ahead of time does so more often.
        grants = [grant for i, grant in enumerate(grants) if grant == CODE or grants[i - 1:i] != [grant]]
        aimed = all(line["said"].get("resource") == url for line in good)
        proven = all(line["proof"] == self.case.dpop for line in good)
        return verdict(grants == expected and aimed and proven, lines)

    def untroubled(self, journal):
        """Only expected requests are rejected."""
        errors = {line["error"] for line in journal if "error" in line}
        return verdict(errors <= self.case.errors, sorted(errors))

    def no_secrets(self, log):
        """A token is sent in a header and nowhere else."""
        said = log.read_text(errors="replace")
        return verdict(not re.search(r"^> \[\d+\] \w+ \S*(access_token|eyJ)", said, re.MULTILINE), "a token in a URL")


    def remembered(self, introspections, tokens):
        """A token is introspected once while it is valid and once after it has expired, not for each request."""
        return verdict(0 < len(introspections) <= 2 * len(tokens), introspections)


class InvalidTokens(Login):
    """A client without an MCP package that sends invalid tokens to our server."""

    def afterwards(self, transport, log):
        return ()


class BridgedLogin(Login):
    """A bridge between client and server, with an authorization server on each side."""

    def run(self, transport):
        log = self.log(transport)
        self.home = fresh_folder(log.with_suffix(".home").name)
        self.behind = log.with_suffix(".behind")
        for file in (log, self.behind):
            file.unlink(missing_ok=True)
        key, self.journal, self.journal_behind = log.with_suffix(".pem"), log.with_suffix(".as"), log.with_suffix(".as2")
        with contextlib.ExitStack() as stack:
            issuer, issuer_behind = (self.provider(stack, journal, key) for journal in (self.journal, self.journal_behind))
            tap, tap_behind = Tap(0, log), Tap(0, self.behind)
            self.url, self.url_behind = (f"http://127.0.0.1:{tap.port}/mcp" for tap in (tap, tap_behind))
            wishes = self.wishes(issuer_behind) | {"resource": self.url_behind}
            server = Listening(SERVERS[self.server].command(json.dumps(wishes)), log.with_suffix(".behind.server"))
            tap_behind.target = stack.enter_context(server).port
            configuration = self.configuration(stack, issuer_behind, key)
            command = self.within_home("bridge", "--json", "--yes", "--listen", "127.0.0.1:0", "--config", configuration,
                                       "--auth-issuer", issuer, "--audience", self.url, "--require-scope", "mcp:read",
                                       "--audit", self.home / "audit.jsonl")
            front = stack.enter_context(bridge.Bridge(command, log.with_suffix(".server")))
            # Its URL is the audience.
            health = json.loads(front.log.read_text().splitlines()[0])["health"]
            tap.target = urllib.parse.urlsplit(health).port
            self.judge(transport, CLIENTS[self.client].command(json.dumps(self.task(issuer, key))))

    def provider(self, stack, journal, key):
        """Starts an authorization server; returns its issuer."""
        # The last one is the one behind, and its client `signer` has the key.
        switches = json.dumps(self.case.switches | {"key": str(key)})
        provider = stack.enter_context(Listening(PROVIDER.command("as.mjs", switches), journal))
        return f"http://127.0.0.1:{provider.port}{provider.path or ''}"

    def within_home(self, *arguments):
        """The command line of `turnbuckle` with a home of its own, and a browser that logs in at once."""
        environment = {"HOME": self.home, "DISPLAY": ":0", "PATH": f"{HERE / 'auth'}:{os.environ['PATH']}"}
        for name in ("CONFIG", "STATE", "DATA"):
            environment[f"XDG_{name}_HOME"] = self.home / name.lower()
        return ["env", *(f"{name}={value}" for name, value in environment.items()), bridge.TURNBUCKLE, *arguments]

    def configuration(self, stack, issuer, key):
        """The file with the server and the credentials for it."""
        secret, token, file = self.home / "secret", self.home / "token", self.home / "bridge.toml"
        secret.write_text("open-sesame")
        settings = {
            "secret": f'kind = "client-credentials", client-id = "service", client-secret-file = "{secret}"',
            "key": f'kind = "client-credentials", client-id = "signer", client-key-file = "{key}"',
            "login": 'kind = "login"',
            "file": f'kind = "token-file", file = "{token}"',
        }
        if self.case.credentials == "login":
            subprocess.run([str(part) for part in self.within_home("login", self.url_behind)], check=True, timeout=30,
                           capture_output=True)
        if self.case.credentials == "file":
            stack.enter_context(RenewedToken(token, issuer, self.url_behind))
        for private in (secret, key):
            private.chmod(0o600)
        file.write_text(f'[servers.guarded]\nurl = "{self.url_behind}"\nauth = {{ {settings[self.case.credentials]} }}\n')
        file.chmod(0o600)
        return file

    def task(self, issuer, key):
        # The server sees the bridge, and not its callers. Only the Python package has a subject without a user.
        machine = {"secret": "service", "key": "signer", "file": "service"}.get(self.case.credentials)
        subject = "ada" if machine is None else machine if self.server.startswith("python") else None
        return super().task(issuer, key) | {"subject": subject}

    def afterwards(self, transport, log):
        yield from super().afterwards(transport, log)
        journal = [json.loads(line) for line in self.journal_behind.read_text().splitlines() if line.startswith("{")]
        tokens = [line for line in journal if line.get("route") == "token"]
        yield "granted_behind", self.granted(tokens, self.case.grants_behind, self.url_behind)
        yield "untroubled_behind", self.untroubled(journal)
        yield "apart", self.apart(log)
        records = [json.loads(line) for line in (self.home / "audit.jsonl").read_text().splitlines()]
        yield "audited", verdict(records and all("ada" in json.dumps(record["principal"]) for record in records), records)

    def apart(self, log):
        """No token of the client reaches the server, and no token of the bridge the client."""
        front, behind = log.read_text(errors="replace"), self.behind.read_text(errors="replace")
        sent, sent_behind = (set(re.findall(r"^authorization: *\w+ (\S+)", text, re.MULTILINE | re.IGNORECASE))
                             for text in (front, behind))
        leaked = [token for token in sent if token in behind] + [token for token in sent_behind if token in front]
        return verdict(sent and sent_behind and not leaked, leaked)


class BridgedInvalidTokens(BridgedLogin):
    """A client without an MCP package that sends invalid tokens to a bridge. None of them reaches the server."""

    def afterwards(self, transport, log):
        yield "apart", self.apart(log)


class RenewedToken:
    """A file with a token, which is replaced before the token expires, as a helper program would."""

    def __init__(self, file, issuer, resource):
        self.file, self.issuer, self.resource = file, issuer, resource
        self.ended = threading.Event()

    def __enter__(self):
        self.renew()
        threading.Thread(target=self.keep, daemon=True).start()

    def __exit__(self, *_):
        self.ended.set()

    def keep(self):
        while not self.ended.wait(1):
            with contextlib.suppress(OSError):
                self.renew()

    def renew(self):
        form = {"grant_type": MACHINE, "resource": self.resource, "scope": "mcp:read"}
        basic = base64.b64encode(b"service:open-sesame").decode()
        request = urllib.request.Request(f"{self.issuer}/token", urllib.parse.urlencode(form).encode(),
                                         {"authorization": f"Basic {basic}"})
        token = json.load(urllib.request.urlopen(request, timeout=10))["access_token"]
        fresh = self.file.with_suffix(".new")
        fresh.touch(0o600)
        fresh.write_text(token)
        fresh.replace(self.file)


def verdict(ok, seen):
    return {"ok": ok, "detail": json.dumps(seen)[:400]}


def rows(words):
    """One row for each case, revision and pair; their client with their server only with `control`."""
    pairs = PAIRS + ([CONTROL] if "control" in words else [])
    for case in CASES:
        for revision, (client, server) in itertools.product(case.revisions, pairs):
            if ("client", client) not in case.lacks and ("server", server) not in case.lacks:
                yield Login(case, revision, client, server)
        for peer, revision in PYTHONS:
            if case.name in PYTHON_SERVERS:
                yield Login(case, revision, "turnbuckle", peer)
            if case.name in PYTHON_CLIENTS and ("client", peer) not in case.lacks:
                yield Login(case, revision, peer, "turnbuckle")
    for case in STRANGE:
        yield InvalidTokens(case, "any", "raw client", "turnbuckle")
        if "control" in words:
            yield InvalidTokens(case, "any", "raw client", CONTROL[1])


def bridged_rows():
    """The same with a bridge in between; the peers of a row have nothing in common but the bridge."""
    for case in BRIDGED:
        for revision, (client, server) in itertools.product(case.revisions, PAIRS):
            if ("client", client) not in case.lacks:
                yield BridgedLogin(case, revision, client, server)
        for peer, revision in PYTHONS:
            yield BridgedLogin(case, revision, peer, peer)
    yield BridgedInvalidTokens(REFUSED_BY_BRIDGE, "any", "raw client", "turnbuckle")


def print_cases(rows):
    """A line for each case and revision, a column for each pair, four of them."""
    pairs = list(dict.fromkeys((row.client, row.server) for row in rows))
    for columns in (pairs[i:i + 4] for i in range(0, len(pairs), 4)):
        print_table([row for row in rows if (row.client, row.server) in columns], columns)
    lacks = sorted({reason for row in rows for reason in row.case.lacks.items()})
    print("\n" + "\n".join(["not tried, and why:", *(f"  {side} {peer}: {why}" for (side, peer), why in lacks)]))


def print_table(rows, pairs):
    heading = "a token is wanted"
    width = max(len(heading), *(len(row.case.name) for row in rows)) + 2
    print(f"\n{heading:{width}}{'revision':12}" + "".join(f"{client + ' with':>24}" for client, _ in pairs))
    print(" " * (width + 12) + "".join(f"{server:>24}" for _, server in pairs))
    lines = {}
    for row in rows:
        good, bad = row.results.get("http", (0, ["not run"]))
        lines.setdefault((row.case.name, row.revision), {})[row.client, row.server] = f"{good}/{good + len(bad)}"
    for (name, revision), cells in lines.items():
        print(f"{name:{width}}{revision:12}" + "".join(f"{cells.get(pair, '-'):>24}" for pair in pairs))
