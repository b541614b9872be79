"""`turnbuckle check` of our servers directly and through `turnbuckle bridge`: the same verdict for each rule.

A row is a server, the era of the bridge towards it, and a transport on both sides. A check is the result of one rule in
one revision.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading

import bridge
from clients import BOTH, SERVER
from rows import LOGS, Row
from servers import COMMAND_LINE, Listening

# A check of all revisions takes about a minute while other rows run.
TIMEOUT = 900

# The verdicts that are different behind a bridge: a pattern of the row, one of revision and rule, and why. A listed difference
# that does not occur in such a row is an error, too.
DIFFERENCES = [
    ("everything", r" (pagination\.(goes-on|invalid-cursor|stable-cursors)|caching\.same-scope)$",
     "a bridge has the lists of its server in memory, and pages of its own, which are longer"),
    ("everything, legacy", r" input\.missing-capability(-status)?$",
     "a tool of a legacy server says in its result what it needs"),
    ("everything, modern", r"^2025-11-25 elicitation\.complete-known$",
     "elicitations of a modern server lack ids; the bridge adds them, and sends the notification"),
    ("turnbuckle serve", r"^2025-06-18 base\.meta-(keys|prefix)$",
     "a bridge adds the ids of gateways to the `_meta` of its handshake, against rings; the server has no `_meta` there"),
    ("turnbuckle serve, modern", r"^2025-11-25 tasks\.never-as-task$",
     "a legacy client may request a task for each tool of a modern server, which the bridge then runs"),
]
# The rules of which it depends on the time whether they can be tested: on when a tool ends, or a notification arrives.
TIMING = {
    "base.error-same-id", "cancellation.no-answer", "cancellation.own-requests", "streams.survive-disconnection",
    "subscriptions.changes-declared", "subscriptions.changes-told", "subscriptions.only-subscribed", "tasks.cancel", "tasks.result-waits",
}
PASSED = {"pass", "not-tested", "not-applicable"}


def run_check(command, log, timeout=TIMEOUT):
    """Runs a check; returns the grade and the reason of each rule in each revision."""
    with open(log.with_suffix(".err"), "wb") as errors:
        check = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=errors, start_new_session=True)
    try:
        output, _ = check.communicate(timeout=timeout)
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
    return found


def compare(expected, found):
    """Returns a line for each verdict that differs, by rule and revision."""
    nothing = ("missing", "")
    return {key: f"{' '.join(expected.get(key, nothing)).strip()} -> {' '.join(found.get(key, nothing)).strip()}"
            for key in sorted({*expected, *found}) if expected.get(key, nothing)[0] != found.get(key, nothing)[0]}


def is_untested(expected, found, key):
    """Returns whether a rule could not be tested without the bridge, or, because of the time, with it."""
    without, through = (verdicts.get(key, ("missing",))[0] for verdicts in (expected, found))
    if through not in PASSED:
        return False
    return without == "not-tested" or (key.split()[-1] in TIMING and without in PASSED)


class Subject:
    """One of our servers, and its verdicts without a bridge. They are found once per transport."""

    def __init__(self, name, stdio, http):
        self.name, self.lines = name, {"stdio": stdio, "http": http}
        self.direct, self.locks = {}, {transport: threading.Lock() for transport in self.lines}

    def command(self, transport, title):
        """The command line of the server. Each one has a data folder of its own."""
        data = LOGS / f"{title}.data"
        shutil.rmtree(data, ignore_errors=True)
        return [str(part).replace("DATA", str(data)) for part in self.lines[transport]]

    def expected(self, transport):
        with self.locks[transport]:
            if transport not in self.direct:
                title = f"check-{self.name.replace(' ', '-')}-{transport}-direct"
                self.direct[transport] = self.check(transport, title, None)
            return self.direct[transport]

    def check(self, transport, title, behind):
        """Checks the server, through a bridge if `behind` is an era."""
        log, program = LOGS / f"{title}.json", self.command(transport, title)
        line = [COMMAND_LINE, "check", "--json", "--allow-writes"]
        with contextlib.ExitStack() as stack:
            if transport == "stdio":
                return run_check([*line, "--", *(bridge.command(behind, "stdio", "--", *program) if behind else program)], log)
            server = stack.enter_context(Listening(program, log.with_suffix(".behind")))
            url = f"http://127.0.0.1:{server.port}/mcp"
            if behind:
                front = bridge.Bridge(bridge.command(behind, "http", url), log.with_suffix(".server"))
                url = f"http://127.0.0.1:{stack.enter_context(front).port}/mcp"
            return run_check([*line, url], log)


class Check(Row):
    """The check of a server behind a bridge, of which every verdict is one check here."""

    package = None

    def __init__(self, subject, behind):
        super().__init__(f"check: {subject.name}, {behind} behind a bridge", "all", BOTH, [], {})
        self.subject, self.behind = subject, behind

    def run(self, transport):
        expected = self.subject.expected(transport)
        title = f"check-{self.subject.name.replace(' ', '-')}-{transport}-{self.behind}"
        found = self.subject.check(transport, title, self.behind)
        differing = {key: text for key, text in compare(expected, found).items() if not is_untested(expected, found, key)}
        patterns = [pattern for row, pattern, _ in DIFFERENCES if re.search(f"^check: {row}", self.name)]
        listed = {key for key in differing for pattern in patterns if re.search(pattern, key)}
        bad = [f"{self.title(transport)}: {key}: {text} ({LOGS / title}.json)"
               for key, text in differing.items() if key not in listed]
        bad += [f"{self.title(transport)}: {pattern}: listed as different, but is the same"
                for pattern in patterns if not any(re.search(pattern, key) for key in listed)]
        total = len({*expected, *found})
        self.results[transport] = total - len(bad), bad
        print(f"{self.title(transport)}: {total - len(bad)} of {total}, {len(listed)} listed", flush=True)


SUBJECTS = [
    Subject("everything", [SERVER], [SERVER, "--listen", "127.0.0.1:0"]),
    Subject("turnbuckle serve", [COMMAND_LINE, "serve", "--stdio", "--data", "DATA"],
            [COMMAND_LINE, "serve", "--listen", "127.0.0.1:0", "--json", "--data", "DATA"]),
]
ROWS = [Check(subject, era) for era in ("legacy", "modern") for subject in SUBJECTS]
