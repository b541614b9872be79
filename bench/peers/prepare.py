#!/usr/bin/env python3
"""Builds and installs the peers, and writes how each is started into `bench-peers/peers.json` of the build folder.

prepare.py [NAME…]     only those whose name contains one of the words; what is known of the others stays

    {"rmcp": {"http": [WORD…], "stdio": [WORD…], "lacks": {WHAT: REASON, …}}, "rmcp-client": {"client": [WORD…]}, …}

To the words of `http` comes `--listen ADDRESS`. A peer that could not be had is `{"missing": REASON}`.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import peers
from packages import install, run

NODE = peers.TARGET / "tools" / "node"
NODE_VERSION = 24
BOOK = peers.BUILT / "peers.json"
PROGRAMS = peers.SERVERS | peers.CLIENTS


def main(words):
    programs = {name: program for name, program in PROGRAMS.items()
                if not words or any(word in name for word in words)}
    need_node(programs.values())
    missing = install(program.package for program in programs.values())
    book = read() | {name: entry(name, program, missing.get(program.package)) for name, program in programs.items()}
    BOOK.parent.mkdir(parents=True, exist_ok=True)
    BOOK.write_text(json.dumps({name: book[name] for name in PROGRAMS if name in book}, indent=1) + "\n")
    for name in programs:
        print(f"{name}: {book[name].get('missing', 'ready')}")
    return 1 if missing else 0


def read():
    """Returns what is known of each peer."""
    return json.loads(BOOK.read_text()) if BOOK.exists() else {}


def need_node(programs):
    """Puts a node in front of the path that is new enough, as `./test` does."""
    if all(program.package is not peers.TYPESCRIPT for program in programs) or node_version() >= 22:
        return
    if not NODE.exists():
        try:
            run("npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", NODE,
                f"node@{NODE_VERSION}")
        except (OSError, subprocess.CalledProcessError):
            return  # The package says what it wanted.
    os.environ["PATH"] = f"{NODE / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"


def node_version():
    if shutil.which("node") is None:
        return 0
    return int(re.match(r"v(\d+)", subprocess.check_output(["node", "--version"], text=True))[1])


def entry(name, program, missing):
    if missing is not None:
        return {"missing": missing}
    if name in peers.CLIENTS:
        return {"client": words(program)}
    lacks = peers.LACKS.get(name, {})
    forms = {"http": words(program), "stdio": words(program, "--stdio")}
    return {form: command for form, command in forms.items() if form not in lacks} | {"lacks": lacks}


def words(program, *arguments):
    first, *others = (str(word) for word in program.command(*arguments))
    return [shutil.which(first) or first, *others]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
