#!/usr/bin/env python3
"""Runs real clients of other projects against our server, on stdio, on HTTP, and on the older HTTP+SSE.

run.py [WORD…]     all clients, or those whose name contains one of the words

The clients are installed from their registries into the build folder, in the versions named below; a second run only
looks at the stamps. Each is driven through the same checks. What a client cannot do is written beside it with the
reason; a check that is neither made nor excused is a failure, and so is a client that cannot be had.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from tap import Tap

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
TOOLS = TARGET / "tools" / "interop"
LOGS = TARGET / "interop"
SERVER = TARGET / "debug" / "examples" / "everything"
PATIENCE = 120

CHECKS = """
    version server_info tools resources templates prompts text content structured list_result invalid_arguments
    tool_error unknown_tool progress logging read_text read_bytes read_template missing_resource prompt unknown_prompt
    completion elicitation declined url_elicitation sampling roots undeclared cancellation timeout subscription together
    ping
""".split()
DECLARED = {"undeclared": "this client can be asked everything"}
MODERN = DECLARED | {"ping": "2026-07-28 has no ping"}
UNASKED = dict.fromkeys(["elicitation", "declined", "url_elicitation"], "2024-11-05 has no elicitation")
TRANSPORTS = ("stdio", "http", "sse")
BOTH = ("stdio", "http")
EARLY = ("stdio", "sse")
PATHS = {"http": "/mcp", "sse": "/sse"}


class Npm:
    def __init__(self, sdk, *packages):
        self.sdk, self.packages = sdk, packages

    def install(self):
        node = subprocess.check_output(["node", "--version"], text=True).strip()
        if int(re.match(r"v(\d+)", node)[1]) < 22:
            raise OSError(f"Node 22 or newer is needed, and `node` is {node}")
        folder = TOOLS / f"npm-{slug(self.packages[0])}"
        install_once(folder, self.packages, lambda: run(
            "npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder,
            *self.packages))
        # Node looks for packages beside the file that wants them.
        for file in (HERE / "typescript").glob("*.mjs"):
            shutil.copy(file, folder)
        return ["node", folder / "driver.mjs", self.sdk]


class Pip:
    def __init__(self, sdk, *packages):
        self.sdk, self.packages = sdk, packages

    def install(self):
        folder = TOOLS / f"pip-{slug(self.packages[0])}"
        install_once(folder, self.packages, lambda: (
            run(sys.executable, "-m", "venv", folder),
            run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                *self.packages)))
        return [folder / "bin" / "python", "-B", HERE / "python" / "driver.py", self.sdk]


class Cargo:
    def install(self):
        manifest = HERE / "rmcp" / "Cargo.toml"
        run("cargo", "build", "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", TARGET)
        return [TARGET / "debug" / "turnbuckle-interop-rmcp"]


class Client:
    def __init__(self, name, revision, transports, package, lacks):
        self.name, self.revision, self.transports, self.package, self.lacks = name, revision, transports, package, lacks


SDK_EARLY = Npm("sdk1", "@modelcontextprotocol/sdk@1.0.4", "zod@3", "eventsource@2")
SDK_1 = Npm("sdk1", "@modelcontextprotocol/sdk@1.32.2", "zod@4")
SDK_2 = Npm("sdk2", "@modelcontextprotocol/client@2.4.0", "zod@4")
MCP_EARLY = Pip("mcp1", "mcp==1.2.1", "pydantic<2.11")
MCP_1 = Pip("mcp1", "mcp==1.30.0")
MCP_2 = Pip("mcp2", "mcp==2.3.0")
FASTMCP = Pip("fast4", "fastmcp==4.1.2")
RMCP = Cargo()

CLIENTS = [
    Client("typescript 1.0.4", "2024-11-05", EARLY, SDK_EARLY, UNASKED),
    Client("typescript 1.32.2", "2025-11-25", TRANSPORTS, SDK_1, DECLARED),
    Client("typescript 2.4.0", "2025-11-25", BOTH, SDK_2, DECLARED),
    Client("typescript 2.4.0", "2026-07-28", BOTH, SDK_2, MODERN),
    Client("python 1.2.1", "2024-11-05", EARLY, MCP_EARLY, UNASKED | {
        "sampling": "this client never declares it",
        "cancellation": "this client has no word for it",
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
]


def main(words):
    clients = [client for client in CLIENTS if not words or any(word in client.name for word in words)]
    if not clients:
        sys.exit(f"error: no client is named like {' or '.join(words)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    run("cargo", "build", "--quiet", "-p", "turnbuckle-examples", "--example", "everything")
    drivers, failures = install(clients)
    server, tap = start_server()
    results = {}
    try:
        for client in clients:
            for transport in client.transports if client.package in drivers else ():
                results[client, transport] = good, bad = drive(client, transport, drivers[client.package], tap)
                print(f"{client.name} {client.revision} {transport}: {good} of {good + len(bad)}", flush=True)
                failures += bad
    finally:
        failures += stop_server(server)
    print_matrix(clients, results, failures)
    good, total = sum(good for good, _ in results.values()), sum(good + len(bad) for good, bad in results.values())
    print(f"interop: {good} of {total} checks passed in {len(results)} runs")
    return 1 if failures or not total else 0


def install(clients):
    """The command line of each package's driver, and what could not be had."""
    drivers, failures = {}, []
    for package in dict.fromkeys(client.package for client in clients):
        try:
            drivers[package] = package.install()
        except (OSError, subprocess.CalledProcessError) as error:
            named = ", ".join(client.name for client in clients if client.package is package)
            failures.append(f"{named}: cannot be installed: {error}")
    return drivers, failures


def start_server():
    log = LOGS / "server.log"
    with open(log, "wb") as output:
        command = [SERVER, "--listen", "127.0.0.1:0", "--old-transport"]
        server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    for _ in range(100):
        if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)/mcp", log.read_text()):
            return server, Tap(int(found[1]))
        if server.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"error: the server did not say that it listens:\n{log.read_text()}")


def stop_server(server):
    if server.poll() is not None:
        return [f"the HTTP server ended by itself with {server.returncode}; {LOGS / 'server.log'} may say why"]
    server.terminate()
    try:
        server.wait(10)
        return []
    except subprocess.TimeoutExpired:
        server.kill()
        return ["the HTTP server did not end within 10 s of SIGTERM"]


def drive(client, transport, driver, tap):
    """How many checks passed, and a line for each that did not."""
    name = f"{client.name} {client.revision} {transport}"
    log = LOGS / f"{slug(name)}.log"
    log.unlink(missing_ok=True)
    wanted = [check for check in CHECKS if check not in client.lacks]
    if transport == "stdio":
        target = [sys.executable, HERE / "tap.py", log, SERVER]
    else:
        tap.log, target = log, [f"http://127.0.0.1:{tap.port}{PATHS[transport]}"]
    command = [*driver, client.name, client.revision, ",".join(wanted), transport, *target]
    found = {line["check"]: line for line in lines_of(command, log.with_suffix(".err"))}
    if transport == "stdio":
        wanted.append("exit")
        found["exit"] = how_it_ended(log)
    bad = []
    for check in ["connect", *wanted, "close"]:
        line = found.get(check, {"ok": False, "detail": "not reported"})
        if not line["ok"]:
            bad.append(f"{name}: {check}: {line['detail']} ({log})")
    return len(wanted) + 2 - len(bad), bad


def lines_of(command, errors):
    with open(errors, "wb") as stderr:
        driver = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=stderr, start_new_session=True)
    try:
        output, _ = driver.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        output, _ = driver.communicate()
    return [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]


def how_it_ended(log):
    """A server ends with 0, when its input does or when it is told to; a client may start more than one."""
    for _ in range(50):
        events = "; ".join(re.findall(r"^= (.*)$", log.read_text(errors="replace"), re.MULTILINE)) if log.exists() else ""
        if re.search(r"exit -?\d+$", events):
            return {"ok": set(re.findall(r"exit (-?\d+)", events)) == {"0"}, "detail": events}
        time.sleep(0.1)
    return {"ok": False, "detail": f"the server is still running ({events})"}


def print_matrix(clients, results, failures):
    print(f"\n{'client':20}{'revision':14}{'stdio':>8}{'http':>8}{'sse':>8}   not tried")
    for client in clients:
        cells = []
        for transport in TRANSPORTS:
            good, bad = results.get((client, transport), (0, None))
            missing = "none" if transport in client.transports else "-"
            cells.append(missing if bad is None else f"{good}/{good + len(bad)}")
        lacks = ", ".join(check for check in client.lacks if check != "undeclared")
        print(f"{client.name:20}{client.revision:14}{''.join(f'{cell:>8}' for cell in cells)}   {lacks}")
    print("\nnot tried, and why:")
    for check, why in sorted({reason for client in clients for reason in client.lacks.items()}):
        print(f"  {check}: {why}")
    if any("http" not in client.transports for client in clients):
        print("  http: clients of 2024-11-05 know only HTTP+SSE")
    if any("sse" not in client.transports for client in clients):
        print("  sse: tried with the packages that still have it and are used with it")
    for failure in failures:
        print(f"FAILED {failure}")


def install_once(folder, packages, action):
    stamp, wanted = folder / "installed", "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing {' '.join(packages)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    action()
    stamp.write_text(wanted)


def run(*command):
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def slug(name):
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
