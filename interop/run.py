#!/usr/bin/env python3
"""Runs real clients of other projects against our server, on stdio, on HTTP, and on the older HTTP+SSE.

run.py [WORD…]     all peers, or those whose name contains one of the words
"""
import concurrent.futures
import sys

import clients
from packages import install, run
from rows import LOGS, print_matrix

# Most of a run is waiting for what must not happen, so more than one fits on a core.
AT_ONCE = 4


def main(words):
    rows = [row for row in clients.ROWS if not words or any(word in row.name for word in words)]
    if not rows:
        sys.exit(f"error: no peer is named like {' or '.join(words)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    run("cargo", "build", "--quiet", "-p", "turnbuckle-examples", "--example", "everything")
    missing = install(row.package for row in rows)
    failures = [f"{row.name} {row.revision}: cannot be installed: {missing[row.package]}"
                for row in rows if row.package in missing]
    with clients.Server() as server:
        run_all([(row, transport, server) for row in rows if row.package not in missing
                 for transport in row.transports])
    failures += server.failures
    print_matrix("client", rows, clients.REASONS)
    return summary(rows, failures)


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
