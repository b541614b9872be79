"""Servers of other projects for our client: their versions, and the features that each lacks."""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from packages import HERE, TARGET, Cargo, Npm, Pip, Program
from rows import LOGS, Row, how_it_ended
from tap import Tap

COMMAND_LINE = TARGET / "debug" / "turnbuckle"
CLIENT = TARGET / "debug" / "turnbuckle-interop-client"
ALL = ("stdio", "http", "sse")
BOTH = ("stdio", "http")

CHECKS = """
    version server_info tools resources templates prompts text structured missing_argument tool_error unknown_tool
    progress logging read_text read_template missing_resource prompt completion elicitation declined url_elicitation
    sampling roots cancellation timeout subscription together ping nothing_odd
""".split()
CLIENT_REQUESTS = """
    version server_info tools text structured missing_argument unknown_tool resources read_text missing_resource prompts
    prompt completion elicitation timeout ping
""".split()
TOOLS_ONLY = dict.fromkeys(
    """resources templates prompts progress logging read_text read_template missing_resource prompt completion
    elicitation declined url_elicitation sampling roots cancellation timeout subscription together""".split(),
    "this server has only tools, and quick ones")
NO_TOOL_ERROR = {"tool_error": "tested with servers that have failing tools"}
NO_NOTIFICATIONS = dict.fromkeys(["logging", "subscription"], "this package declares neither before 2026-07-28")
NO_SUBSCRIPTION = {"subscription": "this package lacks subscriptions to resources"}
DEADLY = dict.fromkeys(["cancellation", "timeout"], "this server dies of notifications/cancelled")
UNKNOWN = dict.fromkeys(["structured", "elicitation", "declined", "url_elicitation"], "2024-11-05 does not have it")
STATELESS = dict.fromkeys(["elicitation", "declined", "url_elicitation", "sampling", "roots", "subscription"],
                          "without a session this package neither asks nor tells")

SERVERS = Npm("@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31",
              "@modelcontextprotocol/server-memory@2026.8.31")
SDK_2 = Npm("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2", "zod@4")
TYPESCRIPT_EARLY = Program(Npm("@modelcontextprotocol/sdk@1.0.4", "zod@3", "eventsource@2"), "server1.mjs")
PYTHON = Program(Pip("mcp==2.3.0"), "server.py")
PYTHON_1 = Program(Pip("mcp==1.30.0"), "server1.py")
PYTHON_EARLY = Program(Pip("mcp==1.2.1", "pydantic<2.11"), "server1.py")
FASTMCP = Program(Pip("fastmcp==4.1.2"), "server4.py")
TIME = Pip("mcp-server-time==2026.10.19")
RMCP = Program(Cargo("rmcp"), "turnbuckle-interop-rmcp-server")


class Everything:
    """The reference server, with its own names of the transports."""

    package, path = SERVERS, {"http": "/mcp", "sse": "/sse"}

    def command(self, transport):
        word = {"stdio": "stdio", "http": "streamableHttp", "sse": "sse"}[transport]
        return reference("everything", word)


class Filesystem:
    package, serves_http = SERVERS, False

    def command(self, _):
        return reference("filesystem", fresh_folder("files"))


class Memory:
    package, serves_http = SERVERS, False

    def command(self, _):
        return ["env", f"MEMORY_FILE_PATH={fresh_folder('memory') / 'graph.jsonl'}", *reference("memory")]


class Time:
    package, serves_http = TIME, False

    def command(self, _):
        return [TIME.folder / "bin" / "python", "-B", "-m", "mcp_server_time"]


def reference(name, *arguments):
    script = SERVERS.folder / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
    return ["node", "-r", SERVERS.folder / "loopback.cjs", script, *arguments]


def fresh_folder(name):
    folder = LOGS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class Server(Row):
    """`kind` selects the checks, `era` is the option of our client."""

    checks = CHECKS
    # The end of its input is enough.
    ends_by_itself = True

    def __init__(self, name, kind, era, revision, transports, program, lacks):
        super().__init__(f"{name}, {era}", revision, transports, self.checks, lacks)
        self.kind, self.era, self.program, self.package = kind, era, program, program.package

    def run(self, transport):
        log = self.log(transport)
        log.unlink(missing_ok=True)
        command = [*self.driver(), self.kind, self.era, self.revision, ",".join(self.wanted), transport]
        if transport == "stdio":
            self.judge(transport, [*command, *self.tapped(transport, self.program.command(transport))])
            return
        with Listening(self.program.command(transport), log.with_suffix(".server")) as server:
            path = server.path or self.program.path[transport]
            self.judge(transport, [*command, f"http://127.0.0.1:{Tap(server.port, log).port}{path}"])

    def driver(self):
        return [CLIENT]

    def afterwards(self, transport, log):
        if transport == "stdio":
            yield "exit", how_it_ended(log, by_itself=self.ends_by_itself)
        if transport == "http":
            yield "farewell", farewell(log)
            yield "session_id", session_id(log)


class ByCommandLine(Server):
    """The same servers, called by the command line: a process and a connection for each check."""

    checks, last = CLIENT_REQUESTS, []

    def __init__(self, name, *others):
        super().__init__(f"{name}, by command line", *others)

    def driver(self):
        return [sys.executable, HERE / "cli.py", COMMAND_LINE]

    def afterwards(self, transport, log):
        yield from super().afterwards(transport, log)
        # On HTTP 2026-07-28 cancels by closing the response.
        if "timeout" in self.wanted and (transport != "http" or self.revision < "2026"):
            told = "notifications/cancelled" in log.read_text(errors="replace")
            yield "cancelled", {"ok": told, "detail": "a call that took too long was not cancelled"}


class Refused(Server):
    """Our client uses an era that the server does not support."""

    checks, first, last = ["refused"], [], []

    def __init__(self, name, *others):
        super().__init__(f"{name}, refused", *others, {})


class Restarted(Server):
    """A server that ends while our client is connected, and is started again on the same port."""

    checks = ["text", "restarted", "elicitation", "logging", "subscription", "ping"]

    def __init__(self, name, *others):
        super().__init__(f"{name}, restarted", *others, {})

    def run(self, transport):
        log = self.log(transport)
        log.unlink(missing_ok=True)
        program = self.program.command(transport)
        with contextlib.ExitStack() as stack, socket.create_server(("127.0.0.1", 0)) as control:
            server = stack.enter_context(Listening(program, log.with_suffix(".server")))

            def restart():
                """Restarts the server when the driver connects; the end of that connection says that it listens again."""
                driver, _ = control.accept()
                with driver:
                    server.end()
                    again = ["env", f"LOOPBACK_PORT={server.port}", *program]
                    stack.enter_context(Listening(again, log.with_suffix(".again")))

            threading.Thread(target=restart, daemon=True).start()
            tap = Tap(server.port, log)
            self.judge(transport, [*self.driver(), self.kind, self.era, self.revision, ",".join(self.wanted), transport,
                                   f"http://127.0.0.1:{tap.port}{self.program.path[transport]}",
                                   "127.0.0.1:%d" % control.getsockname()[1]])

    def afterwards(self, transport, log):
        requests, _ = said_on_http(log)
        used = {request.session for request in requests if request.session}
        ended = {request.session for request in requests if request.session and request.method == "DELETE"}
        yield "farewell", {"ok": len(used) == 2 and len(ended) == 1 and ended <= used,
                           "detail": f"{len(used)} sessions were begun, and {len(ended)} ended"}
        yield "session_id", session_id(log)


class Fragile(Server):
    """A server that exits on the first request of 2026-07-28, and is started again."""

    def afterwards(self, transport, log):
        if transport == "stdio":
            yield "exit", how_it_ended(log, ["1", "0"])


def farewell(log):
    """Our client deletes every session that it opened."""
    requests, _ = said_on_http(log)
    used = {request.session for request in requests if request.session}
    ended = {request.session for request in requests if request.session and request.method == "DELETE"}
    return {"ok": used == ended, "detail": f"{len(used)} sessions were begun, and {len(ended)} ended"}


def session_id(log):
    """Where the server has sessions, every message after `initialize` names one, and none comes after its end."""
    requests, has_sessions = said_on_http(log)
    bad, ended = [], set()
    for request in requests if has_sessions else []:
        if request.method == "POST" and not request.session and not request.begins:
            bad.append(f"without Mcp-Session-Id: {request.text[-300:]}")
        if request.session in ended:
            bad.append(f"after DELETE: {request.text[-300:]}")
        if request.method == "DELETE":
            ended.add(request.session)
    return {"ok": not bad, "detail": "; ".join(bad)}


class Request:
    """One HTTP request of a log."""

    def __init__(self, text):
        self.text = text

    @property
    def method(self):
        return self.text.split(" ", 1)[0]

    @property
    def session(self):
        return self.header("mcp-session-id")

    @property
    def begins(self):
        """Returns whether it is outside of a session: a handshake, or a request of 2026-07-28."""
        return re.search(r'"method":\s*"initialize"', self.text) or (self.header("mcp-protocol-version") or "") >= "2026-07-28"

    def header(self, name):
        head = re.split(r"\r?\n\r?\n", self.text, maxsplit=1)[0]
        found = re.search(rf"^{name}: *(\S+)", head, re.MULTILINE | re.IGNORECASE)
        return found and found[1]


def said_on_http(log):
    """Returns the requests of a log in their order, and whether the server assigned a session id."""
    requests, latest, has_sessions = [], {}, False
    for part in re.split(r"^(?=[<>] \[\d+\] )", log.read_text(errors="replace"), flags=re.MULTILINE):
        found = re.match(r"([<>]) \[(\d+)\] (.*)", part, re.DOTALL)
        if not found:
            continue
        mark, connection, text = found.groups()
        if mark == "<":
            has_sessions |= bool(re.match(r"HTTP/.*?^mcp-session-id:", text, re.MULTILINE | re.DOTALL | re.IGNORECASE))
        elif re.match(r"[A-Z]+ \S+ HTTP/", text):
            requests.append(Request(text))
            latest[connection] = requests[-1]
        elif connection in latest:
            # The body may arrive in a separate chunk.
            latest[connection].text += text
    return requests, has_sessions


class Listening:
    """A server that prints its address, and is stopped when it is no longer needed."""

    def __init__(self, command, log):
        self.command, self.log = [str(part) for part in command], log

    def __enter__(self):
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT, start_new_session=True)
        for _ in range(200):
            said = self.log.read_text(errors="replace")
            if found := re.search(r"(?:listening on |\"url\":\")http://127\.0\.0\.1:(\d+)(/\w+)?[\n\"]", said):
                self.port, self.path = int(found[1]), found[2]
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.end()
        raise OSError(f"the server did not say that it listens: {said}")

    def __exit__(self, *_):
        self.end()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def typescript(mode):
    return Program(SDK_2, "server.mjs", mode)


ROWS = [
    Server("server-everything 2026.8.31", "everything", "auto", "2025-11-25", ALL, Everything(),
           NO_TOOL_ERROR | {"cancellation": "this server goes on with what is cancelled"}),
    Restarted("server-everything 2026.8.31", "everything", "auto", "2025-11-25", ("http",), Everything()),
    Server("server-filesystem 2026.8.31", "filesystem", "auto", "2025-11-25", ("stdio",), Filesystem(),
           {check: why for check, why in TOOLS_ONLY.items() if check != "roots"}),
    Server("server-memory 2026.8.31", "memory", "auto", "2025-11-25", ("stdio",), Memory(), TOOLS_ONLY | NO_TOOL_ERROR),
    Server("mcp-server-time 2026.10.19", "time", "auto", "2026-07-28", ("stdio",), Time(),
           TOOLS_ONLY | {"structured": "this server answers in text"}),
    Server("mcp-server-time 2026.10.19", "time", "legacy", "2025-11-25", ("stdio",), Time(),
           TOOLS_ONLY | {"structured": "this server answers in text"}),
    Server("typescript 2.4.0 dual", "workbench", "auto", "2026-07-28", BOTH, typescript("dual"), NO_TOOL_ERROR),
    Server("typescript 2.4.0 dual", "workbench", "legacy", "2025-11-25", ("stdio",), typescript("dual"), NO_TOOL_ERROR),
    Server("typescript 2.4.0 dual, no session", "workbench", "legacy", "2025-11-25", ("http",), typescript("dual"),
           NO_TOOL_ERROR | STATELESS),
    Server("typescript 2.4.0 modern only", "workbench", "auto", "2026-07-28", BOTH, typescript("modern"), NO_TOOL_ERROR),
    Server("typescript 2.4.0 legacy only", "workbench", "auto", "2025-11-25", BOTH, typescript("legacy"), NO_TOOL_ERROR),
    Server("typescript 1.0.4", "workbench", "auto", "2024-11-05", ("stdio", "sse"), TYPESCRIPT_EARLY,
           NO_TOOL_ERROR | UNKNOWN),
    Server("python 2.3.0", "workbench", "auto", "2026-07-28", BOTH, PYTHON, NO_TOOL_ERROR),
    Server("python 2.3.0", "workbench", "legacy", "2025-11-25", ALL, PYTHON,
           NO_TOOL_ERROR | NO_NOTIFICATIONS),
    Server("python 1.30.0", "workbench", "auto", "2025-11-25", ALL, PYTHON_1, NO_TOOL_ERROR | NO_NOTIFICATIONS),
    Server("fastmcp 4.1.2", "workbench", "auto", "2026-07-28", BOTH, FASTMCP, NO_TOOL_ERROR | NO_SUBSCRIPTION),
    Server("fastmcp 4.1.2", "workbench", "legacy", "2025-11-25", BOTH, FASTMCP, NO_TOOL_ERROR | NO_SUBSCRIPTION),
    Fragile("python 1.2.1", "workbench", "auto", "2024-11-05", ("stdio", "sse"), PYTHON_EARLY,
            NO_TOOL_ERROR | NO_NOTIFICATIONS | UNKNOWN | DEADLY | {"completion": "this package leaves it out",
            "together": "this server answers one after the other"}),
    Server("rmcp 3.8.0", "workbench", "auto", "2026-07-28", BOTH, RMCP, NO_TOOL_ERROR),
    Server("rmcp 3.8.0", "workbench", "legacy", "2025-11-25", BOTH, RMCP, NO_TOOL_ERROR),
    Refused("typescript 2.4.0 modern only", "workbench", "legacy", "none", BOTH, typescript("modern")),
    Refused("typescript 2.4.0 legacy only", "workbench", "modern", "none", BOTH, typescript("legacy")),
    ByCommandLine("server-everything 2026.8.31", "everything", "auto", "2025-11-25", ALL, Everything(),
                  {"timeout": "tried with servers that stop what is cancelled"}),
    ByCommandLine("typescript 2.4.0 dual", "workbench", "auto", "2026-07-28", BOTH, typescript("dual"), {}),
    ByCommandLine("python 2.3.0", "workbench", "legacy", "2025-11-25", ALL, PYTHON, {}),
]
