#!/usr/bin/env python3
"""Checks servers with `turnbuckle check` on an idle and on a busy machine; the verdicts must be the same.

check_under_load.py [WORD…]     all servers, or those with one of the words in their name

The servers are ours and those of two other projects. Each is checked once as the machine is, and then RUNS times
while BUSY processes compute. A verdict is the result of one rule in one revision. The last line is the summary.
"""
import json
import os
import signal
import subprocess
import sys
import time

from clients import SERVER
from packages import install, run
from rows import LOGS
from servers import COMMAND_LINE, PYTHON, typescript

BUSY = 16
RUNS = 3
# A check of a server that starts slowly takes a few minutes while the machine is busy.
PATIENCE = 1800


class Ours:
    """The example with every feature."""

    package = None

    def command(self, _):
        return [SERVER]


SERVERS = {
    "turnbuckle": Ours(),
    "python 2.3.0": PYTHON,
    "typescript 2.4.0": typescript("dual"),
}


class Load:
    """Processes that compute until the block ends; only these are ended."""

    def __enter__(self):
        self.busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
        return self

    def __exit__(self, *_):
        for process in self.busy:
            process.kill()
        for process in self.busy:
            process.wait()


def main(words):
    chosen = {name: server for name, server in SERVERS.items() if not words or any(word in name for word in words)}
    if not chosen:
        sys.exit(f"error: no server is named like {' or '.join(words)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    run("cargo", "build", "--quiet", "-p", "turnbuckle-examples", "--example", "everything")
    run("cargo", "build", "--quiet", "-p", "turnbuckle-cli")
    missing = install(server.package for server in chosen.values() if server.package)
    failures = [f"{name}: cannot be installed: {missing[server.package]}"
                for name, server in chosen.items() if server.package in missing]
    same = total = 0
    for name, server in chosen.items():
        if server.package in missing:
            continue
        idle = verdicts(name, server, "idle")
        for number in range(1, RUNS + 1):
            with Load():
                busy = verdicts(name, server, f"busy {number}")
            differences = compare(idle, busy)
            for difference in differences:
                print(f"{name}, run {number}: {difference}", flush=True)
            total += 1
            same += not differences
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"check under load: {same} of {total} runs with {BUSY} busy processes have the verdicts of the idle machine")
    return 1 if failures or same < total or not total else 0


def verdicts(name, server, title):
    """Runs a check; returns the grade and the reason of each rule in each revision."""
    command = [COMMAND_LINE, "check", "--json", "--", *server.command("stdio")]
    log = LOGS / f"check-{name.replace(' ', '-')}-{title.replace(' ', '-')}.json"
    started = time.monotonic()
    with open(log.with_suffix(".err"), "wb") as errors:
        check = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=errors, start_new_session=True)
    try:
        output, _ = check.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(check.pid, signal.SIGTERM)
        output, _ = check.communicate()
    log.write_bytes(output)
    try:
        report = json.loads(output)
    except ValueError:
        return {"report": ("none", f"exit code {check.returncode}, see {log.with_suffix('.err')}")}
    found = {}
    for part in report["runs"]:
        revision = part["revision"]
        found[f"{revision} supported"] = ("no" if "notSpoken" in part else "yes", part.get("notSpoken", ""))
        for ruling in part["rulings"]:
            reason = ruling.get("what") or ruling.get("why") or ""
            found[f"{revision} {ruling['rule']}"] = (ruling["grade"], reason)
    print(f"{name}, {title}: {len(found)} verdicts in {time.monotonic() - started:.0f} s", flush=True)
    return found


def compare(idle, busy):
    """Returns a line for each verdict that differs."""
    nothing = ("missing", "")
    return [f"{key}: {' '.join(idle.get(key, nothing)).strip()} -> {' '.join(busy.get(key, nothing)).strip()}"
            for key in sorted({*idle, *busy}) if idle.get(key, nothing)[0] != busy.get(key, nothing)[0]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
