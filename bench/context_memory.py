#!/usr/bin/env python3
"""Measures the resident memory of `turnbuckle serve` before, during and after a burst of requests.

    cargo build --release -p turnbuckle-cli --no-default-features --features bundled
    bench/context_memory.py target/release/turnbuckle

Clients search and save in many projects at once; then the server is idle. Prints MiB as a table, and the parts of
the resident memory from /proc, so it runs on Linux only.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import urllib.request

REVISION = "2026-07-28"
WORDS = "session token cache index query parser stream buffer reader writer lock socket handle event timer".split()


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
        raise SystemExit(f"{name} failed: {text[:300]}")


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
    value = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.M)[1])
    return value("VmRSS") / 1024, value("RssAnon") / 1024, value("Threads")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid):
    links = [str(link.readlink()) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    return sum(link.endswith(".db") for link in links)


def report(name, pid):
    resident, anonymous, threads = memory(pid)
    print(f"{name:<28} {resident:8.1f} {anonymous:8.1f} {threads:8} {descriptors(pid):8}", flush=True)


def measure(options, root):
    projects = [root / f"project{number}" for number in range(options.projects)]
    for project in projects:
        write_project(project, options.files)
    command = [options.binary, "serve", "--listen", "127.0.0.1:0", "--data", root / "data"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = re.search(r"http://\S+", server.stdout.readline())[0]
        print(f"{'':<28} {'RSS':>8} {'anon':>8} {'threads':>8} {'open db':>8}")
        report("started", server.pid)
        for project in projects:
            call(url, "index_repository", {"path": str(project)})
        time.sleep(options.idle)
        report("indexed, then idle", server.pid)
        for burst in range(options.bursts):
            clients = [
                threading.Thread(target=work, args=(url, client, projects, options.rounds))
                for client in range(options.clients)
            ]
            started, peak = cpu_seconds(server.pid), 0
            for client in clients:
                client.start()
            while any(client.is_alive() for client in clients):
                peak = max(peak, memory(server.pid)[0])
                time.sleep(0.05)
            used = cpu_seconds(server.pid) - started
            report(f"burst {burst + 1}: end ({used:.1f} s CPU)", server.pid)
            print(f"{'  peak':<28} {peak:8.1f}")
            time.sleep(options.idle)
            report("  then idle", server.pid)
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--projects", type=int, default=16)
    parser.add_argument("--files", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bursts", type=int, default=2)
    parser.add_argument("--idle", type=float, default=35, help="seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        measure(options, pathlib.Path(root))


if __name__ == "__main__":
    main()
