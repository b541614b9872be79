"""The coding agents in front of `turnbuckle bridge`: each connects, which needs no account.

Claude Code and Gemini have a command that connects to every configured server and prints whether it succeeded. Codex has
a request of its app server for that, which returns the tools.
"""
import json
import os
import subprocess

import bridge
from clients import BOTH, SERVER
from packages import Npm
from rows import Row
from servers import fresh_folder

TIMEOUT = 60
NAME = "bridged"


class Agent(Row):
    """`package` is pinned, and `connected` returns what is wrong with its report."""

    def __init__(self, name, package, program):
        super().__init__(f"{name}, through a bridge", "its own", BOTH, ["connected"], {})
        self.package, self.program = Npm(package), program

    def run(self, transport):
        log = self.log(transport)
        home = fresh_folder(f"agent-{self.program}-{transport}")
        if transport == "stdio":
            command = [str(part) for part in bridge.command("auto", transport, "--", SERVER)]
            self.report(transport, home, {"command": command[0], "args": command[1:]}, log)
            return
        with bridge.Bridge(bridge.command("auto", transport, "--", SERVER), log.with_suffix(".server")) as front:
            self.report(transport, home, {"type": "http", "url": f"http://127.0.0.1:{front.port}/mcp"}, log)

    def report(self, transport, home, entry, log):
        try:
            problem = self.connected(home, entry, log)
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            problem = f"{type(error).__name__}: {error}"
        bad = [f"{self.title(transport)}: connected: {problem} ({log})"] if problem else []
        self.results[transport] = 1 - len(bad), bad
        print(f"{self.title(transport)}: {1 - len(bad)} of 1", flush=True)

    def execute(self, home, arguments, log, **options):
        """Runs the agent with a home and a project of its own; returns what it printed."""
        project = home / "project"
        project.mkdir(exist_ok=True)
        program = self.package.folder / "node_modules" / ".bin" / self.program
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_COLOR": "1"}
        environment = os.environ | quiet | {"HOME": str(home), "CODEX_HOME": str(home / ".codex")}
        done = subprocess.run([program, *arguments], cwd=project, env=environment, capture_output=True, text=True,
                              timeout=TIMEOUT, **options)
        # Some print their report to stderr if it is not a terminal.
        said = done.stdout + done.stderr
        log.write_text(said)
        return said


class ClaudeCode(Agent):
    def connected(self, home, entry, log):
        self.execute(home, ["mcp", "add-json", "--scope", "user", NAME, json.dumps(entry)], log)
        return listed(self.execute(home, ["mcp", "list"], log, stdin=subprocess.DEVNULL))


class Gemini(Agent):
    def connected(self, home, entry, log):
        folder = home / ".gemini"
        folder.mkdir()
        settings = {"mcpServers": {NAME: entry}, "privacy": {"usageStatisticsEnabled": False}}
        (folder / "settings.json").write_text(json.dumps(settings))
        # It connects to no server in a folder that is not trusted.
        (folder / "trustedFolders.json").write_text(json.dumps({str(home / "project"): "TRUST_FOLDER"}))
        return listed(self.execute(home, ["mcp", "list"], log, stdin=subprocess.DEVNULL))


class Codex(Agent):
    def connected(self, home, entry, log):
        (home / ".codex").mkdir()
        values = "".join(f"{name} = {json.dumps(value)}\n" for name, value in entry.items() if name != "type")
        (home / ".codex" / "config.toml").write_text(f"[mcp_servers.{NAME}]\n{values}")
        program = self.package.folder / "node_modules" / ".bin" / self.program
        environment = os.environ | {"HOME": str(home), "CODEX_HOME": str(home / ".codex")}
        with open(log, "w") as errors, subprocess.Popen(
                [program, "app-server"], cwd=home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, text=True) as server:
            try:
                ask(server, "initialize", {"clientInfo": {"name": "interop", "title": None, "version": "1"}})
                status = ask(server, "mcpServerStatus/list", {})["data"]
            finally:
                server.terminate()
        found = next(entry for entry in status if entry["name"] == NAME)
        return "" if "add" in found["tools"] else f"no tools: {found}"


def ask(server, method, params):
    """Sends a request of the app server's protocol, and returns the result."""
    server.stdin.write(json.dumps({"id": method, "method": method, "params": params}) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == method:
            return message["result"]
    raise ValueError(f"no response to {method}")


def listed(said):
    """Returns the line about the server, unless it says that it is connected."""
    lines = [line for line in said.splitlines() if NAME in line and ("http" in line or "bridge" in line)]
    return "" if any("Connected" in line for line in lines) else f"not connected: {lines or said[-300:]}"


ROWS = [
    ClaudeCode("claude code 2.1.325", "@anthropic-ai/claude-code@2.1.325", "claude"),
    Codex("codex 0.166.0", "@openai/codex@0.166.0", "codex"),
    Gemini("gemini 0.61.0", "@google/gemini-cli@0.61.0", "gemini"),
]
