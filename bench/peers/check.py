#!/usr/bin/env python3
"""Tests each prepared peer with the requests of the benchmarks, and prints the results.

check.py [NAME…]     only those with one of the words in their name

A cell is `ok` or `-`. Exits 1 if something fails that `peers.py` does not list, or if everything works that it lists.
"""
import json
import resource
import subprocess
import sys
import time

import peers
from prepare import read
from talk import DELIVERY, Http, Refused, Stdio

MESSAGE = "caf\u00e9\n" * 10


def echo(server):
    expect(text(server, "echo", message=MESSAGE), MESSAGE)


def add(server):
    expect(call(server, "add", a=2, b=3)["structuredContent"], {"sum": 5})


def list_tools(server):
    listed = server.request("tools/list", {})["tools"]
    extra = [tool for tool in listed if tool["name"].startswith("tool-")]
    expect(len(listed), 102)
    expect(len(extra), 98)
    for tool in extra:
        properties = tool["inputSchema"]["properties"]
        expect([tool["description"][:5], sorted(properties)], ["Looks", ["limit", "place", "query"]])
        expect(all("description" in one for one in properties.values()), True)


def steps(server):
    expect(call(server, "steps", {"progressToken": "check"})["content"][0]["text"], "done")
    # On stdio some send the response first.
    server.wait(lambda _: len(progress(server)) == 3, "not every progress notification arrived", DELIVERY)
    expect(progress(server), [(1, 3), (2, 3), (3, 3)])


def progress(server):
    return [(message["params"]["progress"], message["params"]["total"])
            for message in server.received("notifications/progress")]


def announce(server):
    check_delivery(server, [server])


def crowd(server):
    check_delivery(server, [server.another() for _ in range(1000)])


def check_delivery(server, listeners):
    for listener in listeners:
        listener.listen()
    # Many servers acknowledge a subscription before it is active.
    time.sleep(0.5)
    expect(text(server, "announce"), "told")
    changed = lambda message: message.get("method") == "notifications/tools/list_changed"
    for listener in listeners:
        listener.wait(changed, "not every listener was notified", DELIVERY)


# A server is started for each, so that no check affects another.
CHECKS = {"echo": (echo, []), "add": (add, []), "list": (list_tools, ["--tools", "100", "--more"]),
          "steps": (steps, ["--more"]), "announce": (announce, ["--more"]), "crowd": (crowd, ["--more"])}
WAYS = [(place, era) for place in ("http", "stdio") for era in ("modern", "legacy")]


def call(server, name, meta=None, **arguments):
    result = server.request("tools/call", {"name": name, "arguments": arguments}, **(meta or {}))
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
            server.handshake()
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
        expect(sorted(json.loads(line)), ["calls", "cpu_seconds", "seconds"])
    except (Refused, OSError, ValueError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"


def check_server(name, entry):
    """Tries all on one server, and prints a line for each way to talk to it; returns what was not as expected."""
    wrong, proven = [], {place for place in ("http", "stdio") if place not in entry}
    for place, era in WAYS:
        if place not in entry:
            continue
        cells = []
        for what, (check, arguments) in CHECKS.items():
            if check is crowd and place == "stdio":
                continue
            trouble = outcome(entry[place], place, era, check, arguments)
            cells.append("-" if trouble else "ok")
            known = peers.lacks(name, place, era, "announce" if check is crowd else what)
            if trouble and not known:
                wrong.append(f"{name}, {place} {era} {what}: {trouble}")
            proven |= known if trouble else set()
        show(name, place, era, cells)
    unproven = peers.LACKS.get(name, {}).keys() - proven
    return wrong + [f"{name}, {what}: works, although `peers.py` has a reason why not" for what in unproven]


def check_client(name, entry, server):
    """The same of a client, which calls a server."""
    wrong = []
    for place, era in WAYS:
        trouble = calls(entry["client"], place, era, server)
        show(name, place, era, ["-" if trouble else "ok"])
        wrong += [f"{name}, {place} {era}: {trouble}"] if trouble else []
    return wrong


def show(name, place, era, cells):
    print(f"{name:14}{place:6}{era:8}" + "".join(f"{cell:10}" for cell in cells), flush=True)


def main(words):
    # A listener needs a descriptor here, and one in the server.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    print(f"{'':28}" + "".join(f"{what:10}" for what in CHECKS))
    book, wrong = read(), []
    for name, entry in book.items():
        if words and not any(word in name for word in words):
            continue
        if "missing" in entry:
            wrong.append(f"{name}: {entry['missing']}")
        elif "client" in entry:
            wrong += check_client(name, entry, book["rmcp-tuned"])
        else:
            wrong += check_server(name, entry)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
