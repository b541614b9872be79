"""Clients and servers of other projects on the two sides of `turnbuckle bridge`: the same checks as without it.

The client connects on stdio, HTTP or HTTP+SSE. A server behind the bridge is a program on stdio, except for clients on
HTTP if it serves HTTP, too.
"""
import contextlib
import os
import shlex
import shutil
import signal
import subprocess

import clients
import context
import servers
from packages import TARGET
from servers import Listening
from tap import Tap

TURNBUCKLE = TARGET / "debug" / "turnbuckle"
ITSELF = {"server_info": "clients see the bridge, not the server behind it"}


def command(behind, front, *target):
    """The command line of a bridge. `behind` is the era that it uses towards the server, `front` the transport of clients."""
    front = ["--stdio"] if front == "stdio" else ["--listen", "127.0.0.1:0"]
    return [TURNBUCKLE, "bridge", "--json", "--server-era", behind, *front, *target]


class Bridge(Listening):
    """A bridge on HTTP, which exits with 0 after SIGTERM."""

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Bridged:
    """What the rows of both kinds share. `behind` is the era that the bridge uses towards the server."""

    def drive(self, transport, driver, program, url=None):
        """Runs the checks through a bridge to a program, or to the server at `url`."""
        log = self.log(transport)
        log.unlink(missing_ok=True)
        target = [url] if url else ["--", *program]
        if transport == "stdio":
            # Some clients would read an argument of the bridge as one of their own.
            script = log.with_suffix(".sh")
            words = [str(word) for word in command(self.behind, transport, *target)]
            script.write_text(f"exec {shlex.join(words)}\n")
            self.judge(transport, [*driver, *self.tapped(transport, ["sh", script])])
            return
        with Bridge(command(self.behind, transport, *target), log.with_suffix(".server")) as front:
            self.fronts[transport] = front
            path = clients.PATHS[transport]
            self.judge(transport, [*driver, f"http://127.0.0.1:{Tap(front.port, log).port}{path}"])

    def afterwards(self, transport, log):
        yield from super().afterwards(transport, log)
        if transport != "stdio":
            front = self.fronts[transport]
            front.end()
            code = front.process.returncode
            yield "exit", {"ok": code == 0, "detail": f"the bridge ended with {code}"}


class Client(Bridged, clients.Client):
    """One of their clients. Our server is behind the bridge."""

    def __init__(self, row, behind, lacks):
        super().__init__(f"{row.name}, {behind} server", row.revision, row.transports, row.driver, row.lacks | ITSELF | lacks)
        self.client, self.behind, self.fronts = row.name, behind, {}

    def run(self, transport, server):
        words = [self.client, self.revision, ",".join(self.wanted), transport]
        url = None if transport == "stdio" else f"http://127.0.0.1:{server.port}/mcp"
        self.drive(transport, self.driver.command(*words), [clients.SERVER], url)


class Server(Bridged, servers.Server):
    """One of their servers behind the bridge. `era` is that of our client, and follows from the revision."""

    # Our client and the bridge both wait two seconds for a program, which some servers need on a busy machine.
    ends_by_itself = False

    def __init__(self, name, kind, revision, behind, transports, program, lacks):
        era = "modern" if revision >= "2026" else "legacy"
        super().__init__(name, kind, era, revision, transports, program, lacks | ITSELF)
        self.name, self.behind, self.fronts = f"{name}, {behind}; client {era}", behind, {}

    def run(self, transport):
        words = [*self.driver(), self.kind, self.era, self.revision, ",".join(self.wanted), transport]
        log, program = self.log(transport), self.program.command("stdio")
        if transport != "http" or not getattr(self.program, "serves_http", True):
            self.drive(transport, words, program)
            return
        with Listening(self.program.command("http"), log.with_suffix(".behind")) as server:
            path = getattr(self.program, "path", {}).get("http") or server.path
            self.drive(transport, words, program, f"http://127.0.0.1:{server.port}{path}")


class ByCommandLine(Server, servers.ByCommandLine):
    """Their servers behind the bridge, called by the command line."""


class Context(Bridged, context.Context):
    """A session of one of their clients with `turnbuckle serve` behind the bridge."""

    def __init__(self, row, behind):
        super().__init__(f"{row.name.removeprefix('context: ')}, {behind} server", row.revision, row.driver, row.lacks)
        self.client, self.behind, self.fronts = row.name, behind, {}

    def run(self, transport):
        words = [self.client, self.revision, ",".join(self.wanted), transport]
        data = self.log(transport).with_suffix(".data")
        shutil.rmtree(data, ignore_errors=True)
        self.drive(transport, self.driver.command(*words), [TURNBUCKLE, "serve", "--stdio", "--data", data])


LEGACY, MODERN = "2025-11-25", "2026-07-28"


def both_servers(row):
    """The rows of a client with our server in either era. Within one era it is not tried on stdio."""
    for behind in ("legacy", "modern"):
        client = Client(row, behind, {})
        if (row.revision < MODERN) == (behind == "legacy"):
            client.transports = tuple(transport for transport in row.transports if transport != "stdio")
        yield client


def other_era(row):
    """Returns the row of a session with the server in the other era."""
    return Context(row, "modern" if row.revision < MODERN else "legacy")


def both_clients(name, kind, behind, transports, program, lacks, legacy=(), modern=()):
    """The rows of a server with our client in either era. HTTP+SSE belongs to the legacy era."""
    yield Server(name, kind, LEGACY, behind, transports, program, lacks | dict(legacy))
    transports = tuple(transport for transport in transports if transport != "sse")
    yield Server(name, kind, MODERN, behind, transports, program, lacks | dict(modern))


CLIENTS = [row for client in clients.ROWS for row in both_servers(client)]
SESSIONS = [other_era(session) for session in context.ROWS]
SERVERS = [row for rows in (
    both_clients("server-everything 2026.8.31", "everything", "legacy", servers.ALL, servers.Everything(),
                 servers.NO_TOOL_ERROR | {"cancellation": "this server goes on with what is cancelled"},
                 modern={"logging": "this server logs only for resources/subscribe, which 2026-07-28 lacks"}),
    both_clients("server-filesystem 2026.8.31", "filesystem", "legacy", servers.BOTH, servers.Filesystem(),
                 {check: why for check, why in servers.TOOLS_ONLY.items() if check != "roots"},
                 modern={"roots": "a client of 2026-07-28 reports no changes of its roots, which are kept for an hour"}),
    both_clients("mcp-server-time 2026.10.19", "time", "modern", servers.BOTH, servers.Time(),
                 servers.TOOLS_ONLY | {"structured": "this server answers in text"}),
    both_clients("typescript 2.4.0 dual", "workbench", "modern", servers.BOTH, servers.typescript("dual"),
                 servers.NO_TOOL_ERROR),
    both_clients("typescript 2.4.0 modern only", "workbench", "modern", servers.BOTH, servers.typescript("modern"),
                 servers.NO_TOOL_ERROR),
    both_clients("typescript 2.4.0 legacy only", "workbench", "legacy", servers.BOTH, servers.typescript("legacy"),
                 servers.NO_TOOL_ERROR),
    both_clients("typescript 1.0.4", "workbench", "legacy", ("stdio",), servers.TYPESCRIPT_EARLY,
                 servers.NO_TOOL_ERROR | servers.UNKNOWN),
    both_clients("python 2.3.0", "workbench", "modern", servers.BOTH, servers.PYTHON, servers.NO_TOOL_ERROR,
                 legacy={"logging": "this package does not declare `logging`, which clients before 2026-07-28 need"}),
    both_clients("python 2.3.0", "workbench", "legacy", servers.ALL, servers.PYTHON,
                 servers.NO_TOOL_ERROR | servers.NO_NOTIFICATIONS),
    both_clients("python 1.30.0", "workbench", "legacy", servers.BOTH, servers.PYTHON_1,
                 servers.NO_TOOL_ERROR | servers.NO_NOTIFICATIONS),
    both_clients("fastmcp 4.1.2", "workbench", "modern", servers.BOTH, servers.FASTMCP,
                 servers.NO_TOOL_ERROR | servers.NO_SUBSCRIPTION),
    both_clients("fastmcp 4.1.2", "workbench", "legacy", servers.BOTH, servers.FASTMCP,
                 servers.NO_TOOL_ERROR | servers.NO_SUBSCRIPTION),
    both_clients("rmcp 3.8.0", "workbench", "modern", servers.BOTH, servers.RMCP, servers.NO_TOOL_ERROR),
    both_clients("rmcp 3.8.0", "workbench", "legacy", servers.BOTH, servers.RMCP, servers.NO_TOOL_ERROR),
) for row in rows]
COMMANDS = [
    ByCommandLine("server-everything 2026.8.31, by command line", "everything", MODERN, "legacy", servers.BOTH,
                  servers.Everything(), {"timeout": "tried with servers that stop what is cancelled"}),
    ByCommandLine("typescript 2.4.0 dual, by command line", "workbench", LEGACY, "modern", servers.ALL,
                  servers.typescript("dual"), {}),
]
