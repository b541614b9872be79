#!/usr/bin/env python3
"""Tries what each prepared peer is measured with, and prints what works.

check.py [NAME…]     only those whose name contains one of the words

A cell is `ok`, or `-` for what `peers.py` says it cannot do. Exits 1 if that is not so.
"""
import json
import resource
import subprocess
import sys
import time

import peers
from prepare import BOOK
from talk import DELIVERY, Http, Refused, Stdio

MESSAGE = "caf\u00e9\n" * 10


def echo(server):
    expect(text(server, "echo", message=MESSAGE), MESSAGE)


def add(server):
    expect(call(server, "add", a=2, b=3)["structuredContent"], {"sum": 5})


def tools(server):
    listed = server.ask("tools/list", {})["tools"]
    extra = [tool for tool in listed if tool["name"].startswith("tool-")]
    expect(len(listed), 102)
    expect(len(extra), 98)
    for tool in extra:
        properties = tool["inputSchema"]["properties"]
        expect([tool["description"][:8], sorted(properties)], ["Searches", ["folder", "limit", "text"]])
        expect(all("description" in one for one in properties.values()), True)


def steps(server):
    expect(call(server, "steps", {"progressToken": "check"})["content"][0]["text"], "done")
    heard = [(message["params"]["progress"], message["params"]["total"])
             for message in server.heard("notifications/progress")]
    expect(heard, [(1, 3), (2, 3), (3, 3)])


def announce(server):
    told(server, [server])


def crowd(server):
    told(server, [server.another() for _ in range(1000)])


def told(server, listeners):
    for listener in listeners:
        listener.listen()
    # Many servers say that one is a listener before one is.
    time.sleep(0.5)
    expect(text(server, "announce"), "told")
    changed = lambda message: message.get("method") == "notifications/tools/list_changed"
    for listener in listeners:
        listener.wait(changed, "not every listener was told", DELIVERY)


# A server is started for each, so that none is disturbed by what another left.
CHECKS = {"echo": (echo, []), "add": (add, []), "tools": (tools, ["--tools", "100", "--more"]),
          "steps": (steps, ["--more"]), "announce": (announce, ["--more"]), "crowd": (crowd, ["--more"])}
WAYS = [(place, era) for place in ("http", "stdio") for era in ("modern", "legacy")]


def call(server, name, meta=None, **arguments):
    result = server.ask("tools/call", {"name": name, "arguments": arguments}, **(meta or {}))
    if result.get("isError"):
        raise Refused(json.dumps(result))
    return result


def text(server, name, **arguments):
    return call(server, name, **arguments)["content"][0]["text"]


def expect(found, wanted):
    if found != wanted:
        raise Refused(f"{found!r:.200} instead of {wanted!r:.200}")


def outcome(command, place, era, check, arguments):
    """Returns why it does not work, or None."""
    try:
        with (Http if place == "http" else Stdio)([*command, *arguments], era) as server:
            server.greet()
            check(server)
    except (Refused, OSError, KeyError, IndexError) as error:
        return f"{type(error).__name__}: {error}"


def calls(client, place, era, server):
    """Lets a client call a server; returns why that does not work, or None."""
    try:
        with Http(server["http"], era) as running:
            where = {"http": ["--url", f"http://{running.address}{running.path}"],
                     "stdio": ["--stdio", " ".join(server["stdio"])]}[place]
            line = subprocess.run([*client, *where, "--era", era, "--calls", "20", "--at-once", "4"], check=True,
                                  capture_output=True, timeout=60).stdout
        expect([*json.loads(line)], ["calls", "seconds", "cpu_seconds"])
    except (Refused, OSError, ValueError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"


def server_row(name, entry, place, era):
    """Returns a cell for each check, and what was not as expected."""
    cells, wrong = [], []
    for what, (check, arguments) in CHECKS.items():
        if check is crowd and place == "stdio":
            continue
        known = peers.lacks(name, place, era, what)
        trouble = outcome(entry[place], place, era, check, arguments)
        cells.append("-" if trouble else "ok")
        if trouble and not known:
            wrong.append(f"{name}, {place} {era} {what}: {trouble}")
        elif known and not trouble:
            wrong.append(f"{name}, {place} {era} {what}: works, although `peers.py` says: {known}")
    return cells, wrong


def client_row(name, entry, place, era, server):
    trouble = calls(entry["client"], place, era, server)
    return ["-" if trouble else "ok"], [f"{name}, {place} {era}: {trouble}"] if trouble else []


def main(words):
    # A listener needs a descriptor here, and one in the server.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    book = json.loads(BOOK.read_text())
    print(f"{'':28}" + "".join(f"{what:10}" for what in CHECKS))
    wrong = []
    for name in [*peers.SERVERS, *peers.CLIENTS]:
        if words and not any(word in name for word in words):
            continue
        entry = book.get(name, {"missing": "not prepared"})
        if "missing" in entry:
            wrong.append(f"{name}: {entry['missing']}")
            continue
        for place, era in WAYS:
            if "client" in entry:
                cells, more = client_row(name, entry, place, era, book["rmcp-tuned"])
            elif place in entry:
                cells, more = server_row(name, entry, place, era)
            else:
                continue
            wrong += more
            print(f"{name:14}{place:6}{era:8}" + "".join(f"{cell:10}" for cell in cells), flush=True)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
