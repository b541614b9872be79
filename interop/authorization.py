"""Servers that require a token: our client and our server with those of other projects, and an authorization server of a third.

A case says how the authorization server is set up (`auth/as.mjs` has the switches), how the client is known to it, and what
is tried. Afterwards the journal of the authorization server says what was really asked of it.
"""
import itertools
import json
import re

from packages import HERE, TARGET, TOOLS, Npm, Pip, Program
from rows import Row
from servers import Listening
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
        yield "granted", self.granted(by_route("token"))
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

    def granted(self, lines):
        """Tokens are obtained with the expected grants, each for this server."""
        good = [line for line in lines if line["status"] == 200]
        grants = [line["said"]["grant_type"] for line in good]
        # A client that refreshes ahead of time does so more often.
        grants = [grant for i, grant in enumerate(grants) if grant == CODE or grants[i - 1:i] != [grant]]
        aimed = all(line["said"].get("resource") == self.url for line in good)
        proven = all(line["proof"] == self.case.dpop for line in good)
        return verdict(grants == self.case.grants and aimed and proven, lines)

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
