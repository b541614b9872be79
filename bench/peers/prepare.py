#!/usr/bin/env python3
"""Builds and installs the peers, and writes how each is started into `bench-peers/peers.json` of the build folder.

prepare.py [NAME…]     only those with one of the words in their name; entries of the others stay

    {"rmcp": {"http": [WORD…], "stdio": [WORD…], "lacks": {WHAT: REASON, …}}, "rmcp-client": {"client": [WORD…]}, …}

`--listen ADDRESS` is appended to the words of `http`. A peer that could not be installed is `{"missing": REASON}`.
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
PEERS_FILE = peers.BUILT / "peers.json"
PROGRAMS = peers.SERVERS | peers.CLIENTS | peers.GATEWAYS | peers.STDIO_GATEWAYS


def main(words):
    programs = {name: program for name, program in PROGRAMS.items()
                if not words or any(word in name for word in words)}
    need_node(programs.values())
    missing = install(program.package for program in programs.values())
    entries = read() | {name: entry(name, program, missing.get(program.package)) for name, program in programs.items()}
    PEERS_FILE.parent.mkdir(parents=True, exist_ok=True)
    PEERS_FILE.write_text(json.dumps({name: entries[name] for name in PROGRAMS if name in entries}, indent=1) + "\n")
    for name in programs:
        print(f"{name}: {entries[name].get('missing', 'ready')}")
    return 1 if missing else 0


def read():
    """Returns the stored entries of the peers."""
    return json.loads(PEERS_FILE.read_text()) if PEERS_FILE.exists() else {}


def need_node(programs):
    """Puts a recent node at the front of the path, as `./test` does."""
    if all(not isinstance(program.package, peers.Npm) for program in programs) or node_version() >= 22:
        return
    if not NODE.exists():
        try:
            run("npm", "install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", NODE,
                f"node@{NODE_VERSION}")
        except (OSError, subprocess.CalledProcessError):
            return  # Installing the package reports the error.
    os.environ["PATH"] = f"{NODE / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"


def node_version():
    if shutil.which("node") is None:
        return 0
    return int(re.match(r"v(\d+)", subprocess.check_output(["node", "--version"], text=True))[1])


def entry(name, program, missing):
    if missing is not None:
        return {"missing": missing}
    if name in peers.GATEWAYS:
        return {"gateway": [sys.executable, str(peers.HERE / "gateway.py"), name]}
    if name in peers.STDIO_GATEWAYS:
        return {"stdio_gateway": ["env", f"MCP_REMOTE_CONFIG_DIR={program.package.folder / 'state'}", *words(program)]}
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
