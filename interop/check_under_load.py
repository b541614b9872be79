#!/usr/bin/env python3
"""Checks servers with `turnbuckle check` on an idle and on a busy machine; the verdicts must be the same.

check_under_load.py [--built] [--all-revisions] [--runs N] [WORD…]     all servers, or those with one of the words in their name

The servers are ours and those of two other projects. Each is checked once as the machine is, and then N times (3)
while BUSY processes compute, all servers at once. A verdict is the result of one rule in one revision; of a server of
another project it is one revision, unless all are asked for. Whether a rule can be tested depends on the time for some rules
(`verdicts.TIMING`), such as one that needs a call that is slow enough to cancel: for these, passed and not tested are the same.
The last line is the summary. --built: our programs are already built.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import time

from clients import SERVER
from packages import install, run
from rows import LOGS
from servers import COMMAND_LINE, PYTHON, typescript
from verdicts import PASSED, TIMING, compare, run_check

BUSY = 16
# Of a server of another project: one that both have.
FOREIGN_REVISION = "2025-11-25"
# A check of a server that starts slowly takes a few minutes for each revision while the machine is busy.
TIMEOUT = 1800
TIMEOUT_OF_ALL = 3 * TIMEOUT


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


# Computes until the script ends, also if the script is killed.
COMPUTE = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(100_000))"


class Load:
    """Processes that compute until the block ends; only these are ended.

    Each has a session of its own: Linux divides the time between sessions (sched_autogroup), so 16 processes in one
    session would share the time of one.
    """

    def __enter__(self):
        command = [sys.executable, "-c", COMPUTE, str(os.getpid())]
        self.busy = [subprocess.Popen(command, start_new_session=True) for _ in range(BUSY)]
        return self

    def __exit__(self, *_):
        for process in self.busy:
            process.kill()
        for process in self.busy:
            process.wait()


def main(options):
    words = options.words
    chosen = {name: server for name, server in SERVERS.items() if not words or any(word in name for word in words)}
    if not chosen:
        sys.exit(f"error: no server is named like {' or '.join(words)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    if not options.built:
        run("cargo", "build", "--quiet", "--workspace", "--all-features", "--bins", "--examples")
    missing = install(server.package for server in chosen.values() if server.package)
    failures = [f"{name}: cannot be installed: {missing[server.package]}"
                for name, server in chosen.items() if server.package in missing]
    had = {name: server for name, server in chosen.items() if server.package not in missing}
    revisions = [] if options.all_revisions else ["--revision", FOREIGN_REVISION]
    idle = {name: verdicts(name, server, "idle", revisions) for name, server in had.items()}
    # Two checks without a report would be equal.
    failures += [f"{name}: no report: {found['report'][1]}" for name, found in idle.items() if "report" in found]
    had = {name: server for name, server in had.items() if "report" not in idle[name]}
    same = total = 0
    for number in range(1, options.runs + 1) if had else ():
        for name, busy in check_busy(had, f"busy {number}", revisions).items():
            differences = {key: difference for key, difference in compare(idle[name], busy).items()
                           if not depends_on_time(idle[name], busy, key)}
            for key, difference in differences.items():
                print(f"{name}, run {number}: {key}: {difference}", flush=True)
            total += 1
            same += not differences
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"check under load: {same} of {total} runs with {BUSY} busy processes have the verdicts of the idle machine")
    return 1 if failures or same < total or not total else 0


def depends_on_time(idle, busy, key):
    """Returns whether a rule passed or could not be tested, and the time decides which."""
    nothing = ("missing", "")
    return key.split()[-1] in TIMING and idle.get(key, nothing)[0] in PASSED and busy.get(key, nothing)[0] in PASSED


def parse(arguments):
    """Reads the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--all-revisions", action="store_true")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be 1 or more")
    return options


def check_busy(servers, title, revisions):
    """Checks all servers at once while the machine is busy; returns the verdicts by name."""
    with Load(), concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
        running = {name: pool.submit(verdicts, name, server, title, revisions) for name, server in servers.items()}
        return {name: check.result() for name, check in running.items()}


def verdicts(name, server, title, revisions):
    """Runs a check; returns the grade and the reason of each rule in each revision."""
    selected = revisions if server.package else []
    command = [COMMAND_LINE, "check", "--json", *selected, "--", *server.command("stdio")]
    log = LOGS / f"check-{name.replace(' ', '-')}-{title.replace(' ', '-')}.json"
    started = time.monotonic()
    found = run_check(command, log, TIMEOUT if selected else TIMEOUT_OF_ALL)
    print(f"{name}, {title}: {len(found)} verdicts in {time.monotonic() - started:.0f} s", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main(parse(sys.argv[1:])))
