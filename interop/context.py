"""Clients of other projects against `turnbuckle serve`: a typical session of an agent, from end to end.

The first text block of an answer is for people; the JSON of the structured content is in the second.
"""
import json
import shutil
import subprocess

from clients import BOTH, MCP_2, RMCP, SDK_2
from packages import TARGET, Program
from rows import Row
from tap import Tap

TURNBUCKLE = TARGET / "debug" / "turnbuckle"
CHECKS = """
    tools checkpoint search list index repository_search status skill remediation collection resources prompts debug
    debug_create debug_list debug_enable debug_status debug_missing debug_close
""".split()
DEBUG_ONLY = {check: "tried with Python and TypeScript" for check in CHECKS if not check.startswith("debug_")}


class Context(Row):
    def __init__(self, name, revision, driver, lacks):
        super().__init__(f"context: {name}", revision, BOTH, CHECKS, lacks)
        self.package, self.driver = driver.package, driver

    def run(self, transport):
        log = self.log(transport)
        log.unlink(missing_ok=True)
        data = log.with_suffix(".data")
        shutil.rmtree(data, ignore_errors=True)
        serve = [TURNBUCKLE, "serve", "--data", data]
        if transport == "stdio":
            self.drive(transport, self.tapped(transport, [*serve, "--stdio"]))
            return
        with open(log.with_suffix(".server"), "wb") as errors:
            command = [*serve, "--listen", "127.0.0.1:0", "--json"]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        try:
            port = int(json.loads(server.stdout.readline())["url"].split(":")[2].split("/")[0])
            self.drive(transport, [f"http://127.0.0.1:{Tap(port, log).port}/mcp"])
        finally:
            server.terminate()
            server.wait(30)

    def drive(self, transport, target):
        self.judge(transport, self.driver.command(self.name, self.revision, ",".join(self.wanted), transport, *target))


ROWS = [
    Context(name, revision, driver, lacks)
    for name, driver, lacks in [
        ("python 2.3.0", Program(MCP_2.package, "context.py", MCP_2.words[1]), {}),
        ("typescript 2.4.0", Program(SDK_2.package, "context.mjs", SDK_2.words[1]), {}),
        ("rmcp 3.8.0", RMCP, DEBUG_ONLY),
    ]
    for revision in ("2025-11-25", "2026-07-28")
]
