#!/usr/bin/env python3
"""Measures the resident memory of `turnbuckle serve` before, during and after a burst of requests.

    cargo build --release -p turnbuckle-cli --no-default-features --features serve,bundled
    bench/context_memory.py target/release/turnbuckle
    bench/context_memory.py --check target/debug/turnbuckle

Clients search and save in many projects at once; then the server is idle. Prints MiB as a table, and the parts of
the resident memory from /proc, so it runs on Linux only. `--check` measures one short burst and compares its anonymous
memory with limits. Exit codes: 0 passed, 1 a limit is exceeded, 2 could not run.
"""

import argparse
import concurrent.futures
import dataclasses
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

REVISION = "2026-07-28"

# The limits of `--check`, in MiB of anonymous memory. Pages of the binary do not count: a debug build has 50 MiB of them.
# A debug build has 30 to 34 before the burst, and 53 to 60 at its end and afterwards, idle or next to 20 busy processes: most is free, and kept
# by glibc in an arena per thread. With page caches of 2,000 KiB and threads without limit it was 109 and 96.
MAX_PEAK = 100
MAX_AFTER = 80
# Memory afterwards, as a multiple of the memory before; measured: 1.6 to 1.9.
MAX_GROWTH = 2.5

# Seconds until the threads of the burst have ended, which idle threads do after ten.
CHECK_IDLE = 12
WORDS = "session token cache index query parser stream buffer reader writer lock socket handle event timer".split()


class CouldNotRun(Exception):
    """The server did not start, ended, or did not do its work."""


@dataclasses.dataclass
class Burst:
    """Anonymous memory in MiB: before a burst, at most during it, and when the server was idle again."""

    before: float
    peak: float
    after: float


def write_project(folder, files):
    """Writes a project with source files of about 4 KiB."""
    for number in range(files):
        lines = []
        for line in range(80):
            first, second = WORDS[(number + line) % len(WORDS)], WORDS[(number * line) % len(WORDS)]
            lines.append(f"def {first}_{second}_{number}_{line}(value):  # {second} of the {first}")
            lines.append(f"    return value + {line}")
        path = folder / f"part{number % 7}" / f"{WORDS[number % len(WORDS)]}_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines))


def call(url, name, arguments):
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": REVISION,
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=300) as response:
        text = response.read().decode()
    if '"isError":true' in text:
        raise CouldNotRun(f"{name} failed: {text[:300]}")


def work(url, client, projects, rounds):
    for turn in range(rounds):
        for offset in range(len(projects)):
            project = str(projects[(client + offset) % len(projects)])
            word = WORDS[(client + turn + offset) % len(WORDS)]
            call(url, "repository_search", {"query": f"{word} parser", "project_path": project})
            content = f"client {client} round {turn}: {word} " * 20
            call(url, "checkpoint_save", {"content": content, "project_path": project})
            call(url, "checkpoint_search", {"query": word, "project_path": project})


def memory(pid):
    """Returns resident memory and its anonymous part in MiB, and the number of threads."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    if "\nVmRSS:" not in status:
        raise CouldNotRun("the server ended")
    value = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.M)[1])
    return value("VmRSS") / 1024, value("RssAnon") / 1024, value("Threads")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    links = [str(link.readlink()) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    return sum(link.endswith(".db") for link in links)


def report(name, pid):
    """Prints a line of the table, and returns the anonymous memory."""
    resident, anonymous, threads = memory(pid)
    print(f"{name:<28} {resident:8.1f} {anonymous:8.1f} {threads:8} {descriptors(pid):8}", flush=True)
    return anonymous


def start(options, root):
    """Starts the server and returns it with its URL."""
    command = [options.binary, "serve", "--listen", "127.0.0.1:0", "--data", root / "data"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    url = re.search(r"http://\S+", server.stdout.readline())
    if url is None:
        server.kill()
        raise CouldNotRun(f"{options.binary} serve did not print its address")
    return server, url[0]


def run_burst(options, server, url, projects):
    """Runs all clients at once, and returns the peak of resident and of anonymous memory."""
    with concurrent.futures.ThreadPoolExecutor(options.clients) as pool:
        clients = [pool.submit(work, url, client, projects, options.rounds) for client in range(options.clients)]
        resident_peak = peak = 0
        while not all(client.done() for client in clients):
            resident, anonymous, _ = memory(server.pid)
            resident_peak, peak = max(resident_peak, resident), max(peak, anonymous)
            time.sleep(0.05)
        # Raises what a client has raised.
        for client in clients:
            client.result()
    return resident_peak, peak


def measure(options, root):
    """Returns the memory of each burst."""
    projects = [root / f"project{number}" for number in range(options.projects)]
    for project in projects:
        write_project(project, options.files)
    server, url = start(options, root)
    bursts = []
    try:
        print(f"{'':<28} {'RSS':>8} {'anon':>8} {'threads':>8} {'open db':>8}")
        report("started", server.pid)
        for project in projects:
            call(url, "index_repository", {"path": str(project)})
        time.sleep(options.idle)
        before = report("indexed, then idle", server.pid)
        for number in range(options.bursts):
            started = cpu_seconds(server.pid)
            resident_peak, peak = run_burst(options, server, url, projects)
            used = cpu_seconds(server.pid) - started
            end = report(f"burst {number + 1}: end ({used:.1f} s CPU)", server.pid)
            print(f"{'  peak':<28} {resident_peak:8.1f} {max(peak, end):8.1f}")
            time.sleep(options.idle)
            bursts.append(Burst(before, max(peak, end), report("  then idle", server.pid)))
    finally:
        server.terminate()
        server.wait()
    return bursts


def check(options, bursts):
    """Compares bursts with the limits, prints a line about each, and returns whether all are within them."""
    passed = True
    for burst in bursts:
        growth = burst.after / burst.before
        within = burst.peak <= options.max_peak and burst.after <= options.max_after and growth <= options.max_growth
        passed &= within
        print(
            f"memory of turnbuckle serve {'is within' if within else 'exceeds'} its limits: "
            f"peak {burst.peak:.1f} MiB (at most {options.max_peak:g}), afterwards {burst.after:.1f} MiB "
            f"(at most {options.max_after:g}), {growth:.2f} times the memory before (at most {options.max_growth:g})"
        )
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare one short burst with the limits")
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--projects", type=int, default=16)
    parser.add_argument("--files", type=int, default=150)
    parser.add_argument("--rounds", type=int, help="default: 2, with --check 1")
    parser.add_argument("--bursts", type=int, help="default: 2, with --check 1")
    parser.add_argument("--idle", type=float, help=f"seconds; default: 35, with --check {CHECK_IDLE}")
    parser.add_argument("--max-peak", type=float, default=MAX_PEAK, help="limit of --check in MiB")
    parser.add_argument("--max-after", type=float, default=MAX_AFTER, help="limit of --check in MiB")
    parser.add_argument("--max-growth", type=float, default=MAX_GROWTH, help="limit of --check")
    options = parser.parse_args()
    defaults = {"rounds": 1, "bursts": 1, "idle": CHECK_IDLE} if options.check else {"rounds": 2, "bursts": 2, "idle": 35}
    for name, value in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    try:
        with tempfile.TemporaryDirectory() as root:
            bursts = measure(options, pathlib.Path(root))
    except (CouldNotRun, OSError, http.client.HTTPException) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if not options.check or check(options, bursts) else 1


if __name__ == "__main__":
    sys.exit(main())
