"""Clients of other projects against our server: their versions, and the features that each lacks."""
import re
import subprocess
import sys
import time

from packages import HERE, TARGET, Cargo, Npm, Pip, Program
from rows import LOGS, TRANSPORTS, Row
from tap import Tap

SERVER = TARGET / "debug" / "examples" / "everything"
PATHS = {"http": "/mcp", "sse": "/sse"}
BOTH = ("stdio", "http")
EARLY = ("stdio", "sse")

CHECKS = """
    version server_info tools resources templates prompts text content structured list_result missing_argument
    invalid_arguments tool_error unknown_tool progress logging read_text read_bytes read_template missing_resource
    prompt unknown_prompt completion elicitation declined url_elicitation sampling roots undeclared cancellation timeout
    subscription together ping
""".split()
DECLARED = {"undeclared": "this client can be asked everything"}
MODERN = DECLARED | {"ping": "2026-07-28 lacks ping"}
NO_ELICITATION = dict.fromkeys(["elicitation", "declined", "url_elicitation"], "2024-11-05 lacks elicitation")
# Each check of the Inspector is a separate process that connects, sends one request and exits.
INSPECTED = """
    version server_info tools resources templates prompts text structured missing_argument read_text missing_resource
    prompt undeclared
""".split()
UNINSPECTED = {check: "not in the Inspector's --cli, or tried with its package already"
               for check in CHECKS if check not in INSPECTED}

SDK_EARLY = Program(Npm("@modelcontextprotocol/sdk@1.0.4", "zod@3", "eventsource@2"), "driver.mjs", "sdk1")
SDK_1 = Program(Npm("@modelcontextprotocol/sdk@1.32.2", "zod@4"), "driver.mjs", "sdk1")
SDK_2 = Program(Npm("@modelcontextprotocol/client@2.4.0", "zod@4"), "driver.mjs", "sdk2")
MCP_EARLY = Program(Pip("mcp==1.2.1", "pydantic<2.11"), "driver.py", "mcp1")
MCP_1 = Program(Pip("mcp==1.30.0"), "driver.py", "mcp1")
MCP_2 = Program(Pip("mcp==2.3.0"), "driver.py", "mcp2")
FASTMCP = Program(Pip("fastmcp==4.1.2"), "driver.py", "fast4")
RMCP = Program(Cargo("rmcp"), "turnbuckle-interop-rmcp")


class Inspector:
    """The Inspector is a program, so a script of ours runs its command lines."""

    package = Npm("@modelcontextprotocol/inspector@2.12.0")

    def __init__(self, era):
        self.era = era

    def command(self, *arguments):
        program = self.package.folder / "node_modules" / ".bin" / "mcp-inspector"
        return [sys.executable, HERE / "inspector.py", program, self.era, *arguments]


class Client(Row):
    def __init__(self, name, revision, transports, driver, lacks):
        super().__init__(name, revision, transports, CHECKS, lacks)
        self.driver, self.package = driver, driver.package

    def run(self, transport, server):
        log = self.log(transport)
        log.unlink(missing_ok=True)
        if transport == "stdio":
            target = self.tapped(transport, [SERVER])
        else:
            target = [f"http://127.0.0.1:{Tap(server.port, log).port}{PATHS[transport]}"]
        self.judge(transport, self.driver.command(self.name, self.revision, ",".join(self.wanted), transport, *target))


ROWS = [
    Client("typescript 1.0.4", "2024-11-05", EARLY, SDK_EARLY, NO_ELICITATION),
    Client("typescript 1.32.2", "2025-11-25", TRANSPORTS, SDK_1, DECLARED),
    Client("typescript 2.4.0", "2025-11-25", BOTH, SDK_2, DECLARED),
    Client("typescript 2.4.0", "2026-07-28", BOTH, SDK_2, MODERN),
    Client("python 1.2.1", "2024-11-05", EARLY, MCP_EARLY, NO_ELICITATION | {
        "sampling": "this client never declares it",
        "cancellation": "this client lacks an option for it",
    }),
    Client("python 1.30.0", "2025-11-25", TRANSPORTS, MCP_1, DECLARED),
    Client("python 2.3.0", "2025-11-25", BOTH, MCP_2, DECLARED),
    Client("python 2.3.0", "2026-07-28", BOTH, MCP_2, MODERN),
    Client("fastmcp 4.1.2", "2025-11-25", BOTH, FASTMCP, DECLARED),
    Client("fastmcp 4.1.2", "2026-07-28", BOTH, FASTMCP, MODERN),
    Client("rmcp 3.8.0", "2025-11-25", BOTH, RMCP, DECLARED),
    Client("rmcp 3.8.0", "2026-07-28", BOTH, RMCP, MODERN | {
        "url_elicitation": "this client wants the elicitationId that 2026-07-28 dropped",
    }),
    Client("inspector 2.12.0 --cli, legacy", "2025-11-25", TRANSPORTS, Inspector("legacy"), UNINSPECTED),
    Client("inspector 2.12.0 --cli, auto", "2026-07-28", BOTH, Inspector("auto"), UNINSPECTED),
    Client("inspector 2.12.0 --cli, modern", "2026-07-28", BOTH, Inspector("modern"), UNINSPECTED),
]
REASONS = [
    "http: clients of 2024-11-05 know only HTTP+SSE",
    "sse: tried with the packages that still have it and are used with it",
    "progress: TypeScript clients lose what arrives in one piece with the answer; that it was sent is seen as it arrives",
]


class Server:
    """Our server on HTTP, for all clients."""

    def __enter__(self):
        log = LOGS / "server.log"
        with open(log, "wb") as output:
            command = [SERVER, "--listen", "127.0.0.1:0", "--old-transport"]
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        for _ in range(100):
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)/mcp", log.read_text()):
                self.port, self.failures = int(found[1]), []
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        sys.exit(f"error: the server did not say that it listens:\n{log.read_text()}")

    def __exit__(self, *_):
        if self.process.poll() is not None:
            code = self.process.returncode
            self.failures.append(f"our server ended by itself with {code}; {LOGS / 'server.log'} may say why")
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.failures.append("our server did not end within 10 s of SIGTERM")
