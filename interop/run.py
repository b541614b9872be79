#!/usr/bin/env python3
"""Runs clients of other projects against our server, and our client against servers of other projects.

run.py [--built] [--bridge] [WORD…]     all peers, or those with one of the words in their name

--built: our programs are already built. --bridge: only what passes through `turnbuckle bridge`; without it, nothing does.
"""
import concurrent.futures
import sys

import agents
import authorization
import bridge
import clients
import context
import servers
import verdicts
from packages import install, run
from rows import LOGS, print_matrix

# Most of a run is waiting, so more than one fits on a core.
AT_ONCE = 4


def main(options):
    words = [word for word in options if not word.startswith("--")]
    if "--bridge" in options:
        rows = [*verdicts.ROWS, *bridge.CLIENTS, *bridge.SESSIONS, *bridge.SERVERS, *bridge.COMMANDS,
                *authorization.bridged_rows(), *agents.ROWS]
    else:
        rows = [*clients.ROWS, *context.ROWS, *servers.ROWS, *authorization.rows(words)]
    ours = [row for row in rows if not words or any(word in row.name for word in words)]
    if not ours:
        sys.exit(f"error: no peer is named like {' or '.join(words)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    if "--built" not in options:
        run("cargo", "build", "--quiet", "--workspace", "--all-features", "--bins", "--examples")
    missing = install(row.package for row in ours if row.package)
    failures = [f"{row.name} {row.revision}: cannot be installed: {missing[row.package]}"
                for row in ours if row.package in missing]
    had = [row for row in ours if row.package not in missing]
    bridged = [row for row in had if isinstance(row, (bridge.Bridged, verdicts.Check, agents.Agent))]
    their_clients = [row for row in had if isinstance(row, clients.Client)]
    sessions = [row for row in had if isinstance(row, context.Context)]
    their_servers = [row for row in had if isinstance(row, servers.Server)]
    logins = [row for row in had if isinstance(row, authorization.Login)]
    alone = [row for row in had if isinstance(row, (verdicts.Check, agents.Agent))]
    with clients.Server() as server:
        # The longest ones first.
        run_all([(row, transport) for row in alone for transport in row.transports] +
                [(row, transport, server) for row in their_clients for transport in row.transports] +
                [(row, transport) for row in sessions + their_servers + logins for transport in row.transports])
    for heading, kind, reasons in [
        ("their client, our server", their_clients, clients.REASONS),
        ("their client, turnbuckle serve", sessions, ()),
        ("our client, their server", their_servers, ()),
    ]:
        if direct := [row for row in kind if row not in bridged]:
            print_matrix(heading, direct, reasons)
    if bridged:
        print_matrix("through turnbuckle bridge", bridged)
    if logins:
        authorization.print_cases(logins)
    return summary(had, failures + server.failures)


def run_all(runs):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(row.run, *arguments) for row, *arguments in runs]:
            done.result()


def summary(rows, failures):
    results = [result for row in rows for result in row.results.values()]
    good, bad = sum(good for good, _ in results), [line for _, bad in results for line in bad]
    for failure in failures + bad:
        print(f"FAILED {failure}")
    print(f"interop: {good} of {good + len(bad)} checks passed in {len(results)} runs")
    return 1 if failures or bad or not good else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
