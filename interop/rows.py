"""A row of the matrix: one peer, tried on each transport it has. Runs the drivers and evaluates their reports.

A driver prints a JSON line per check. A feature that a peer lacks is listed with the reason; a check that is
neither made nor listed is a failure.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from packages import HERE, TARGET, slug

LOGS = TARGET / "interop"
TRANSPORTS = ("stdio", "http", "sse")
TIMEOUT = 120


class Row:
    """`checks` are those of its kind; `lacks` has the ones that are skipped, and why."""

    # The rows that a driver reports before and after its checks.
    first, last = ["connect"], ["close"]

    def __init__(self, name, revision, transports, checks, lacks):
        self.name, self.revision, self.transports, self.lacks = name, revision, transports, lacks
        self.wanted = [check for check in checks if check not in lacks]
        self.results = {}

    def log(self, transport):
        return LOGS / f"{slug(self.title(transport))}.log"

    def title(self, transport):
        return f"{self.name} {self.revision} {transport}"

    def tapped(self, transport, command):
        """The command line that runs a server on stdio and logs its messages."""
        return [sys.executable, HERE / "tap.py", self.log(transport), *command]

    def judge(self, transport, command):
        """Runs a driver; records how many checks passed, and a line for each that did not."""
        log, wanted = self.log(transport), [*self.first, *self.wanted, *self.last]
        found = {line["check"]: line for line in lines_of(command, log.with_suffix(".err"))}
        for check, line in self.afterwards(transport, log):
            wanted.append(check)
            found[check] = line
        bad = []
        for check in wanted:
            line = found.get(check, {"ok": False, "detail": "not reported"})
            if not line["ok"]:
                bad.append(f"{self.title(transport)}: {check}: {line['detail']} ({log})")
        self.results[transport] = len(wanted) - len(bad), bad
        print(f"{self.title(transport)}: {len(wanted) - len(bad)} of {len(wanted)}", flush=True)

    def afterwards(self, transport, log):
        """Checks that need the end of the run."""
        if transport == "stdio":
            yield "exit", how_it_ended(log)


def lines_of(command, errors):
    folder = errors.with_suffix(".folder")
    folder.mkdir(exist_ok=True)
    with open(errors, "wb") as stderr:
        driver = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=stderr, start_new_session=True, cwd=folder)
    try:
        output, _ = driver.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        output, _ = driver.communicate()
    return [json.loads(line) for line in output.splitlines() if line.startswith(b"{")]


def how_it_ended(log, expected=None, by_itself=False):
    """A server exits with 0, at the end of its input or, unless it is `by_itself`, on a signal; a client may start more than
    one."""
    for _ in range(50):
        said = log.read_text(errors="replace") if log.exists() else ""
        events = "; ".join(re.findall(r"^= (.*)$", said, re.MULTILINE))
        started, ended = re.findall(r"pid \d+", events), re.findall(r"exit (-?\d+)", events)
        if started and len(ended) == len(started):
            good = ended == expected if expected else set(ended) == {"0"}
            return {"ok": good and not (by_itself and "signal" in events), "detail": events}
        time.sleep(0.1)
    return {"ok": False, "detail": f"a server is still running ({events})"}


def print_matrix(heading, rows, reasons=()):
    width = max(len(heading), *(len(row.name) for row in rows)) + 2
    print(f"\n{heading:{width}}{'revision':12}{'stdio':>8}{'http':>8}{'sse':>8}   not tried")
    for row in rows:
        cells = []
        for transport in TRANSPORTS:
            good, bad = row.results.get(transport, (0, None))
            missing = "none" if transport in row.transports else "-"
            cells.append(missing if bad is None else f"{good}/{good + len(bad)}")
        lacks = ", ".join(check for check, why in row.lacks.items() if why not in UNSAID)
        if len(row.lacks) > len(row.wanted):
            lacks = f"{len(row.lacks)} checks"
        print(f"{row.name:{width}}{row.revision:12}{''.join(f'{cell:>8}' for cell in cells)}   {lacks}")
    print("\nnot tried, and why:")
    excused = {}
    for check, why in sorted({reason for row in rows for reason in row.lacks.items()}):
        excused.setdefault(why, []).append(check)
    for why, checks in excused.items():
        print(f"  {', '.join(checks)}: {why}")
    for reason in reasons:
        print(f"  {reason}")


# Reasons that do not depend on the peer of a row.
UNSAID = {"this client can be asked everything"}
