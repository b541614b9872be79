#!/usr/bin/env python3
"""Starts a gateway of another project in front of `bare stdio`, on a free port, and prints its address as our programs do.

gateway.py NAME --listen 127.0.0.1:0

The process becomes the gateway, so its CPU time is that of the gateway, without the server behind it.
"""
import json
import os
import shlex
import socket
import sys
import time

import peers

SERVER = [str(peers.TARGET / "dist" / "turnbuckle-bench"), "bare", "stdio"]
START_SECONDS = 60
# The name of a backend and the separator are a prefix of its tools. Both are empty, so that the tool keeps its name.
MCP_PROXY_CONFIG = """\
[proxy]
name = "echo"
separator = ""
[proxy.listen]
host = "127.0.0.1"
port = {port}
[[backends]]
name = ""
transport = "stdio"
command = {command}
args = {arguments}
[observability]
audit = false
log_level = "error"
"""


def main(name):
    port = free_port()
    command = [str(word) for word in COMMANDS[name](port)]
    if os.fork() == 0:
        announce(port, PATHS.get(name, "/mcp"))
        os._exit(0)
    os.execvp(command[0], command)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def announce(port, path):
    """Prints the address once the gateway accepts connections."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            os.write(2, f"\nlistening on http://127.0.0.1:{port}{path}\n".encode())
            return


def supergateway(port):
    return peers.SUPERGATEWAY.command("node_modules/supergateway/dist/index.js", "--stdio", shlex.join(SERVER),
                                      "--outputTransport", "streamableHttp", "--stateful", "--port", port,
                                      "--logLevel", "none")


def mcp_proxy_crates(port):
    config = peers.MCP_PROXY_CRATES.folder / "proxy.toml"
    # Strings and lists of JSON are also those of TOML.
    config.write_text(MCP_PROXY_CONFIG.format(port=port, command=json.dumps(SERVER[0]), arguments=json.dumps(SERVER[1:])))
    return peers.MCP_PROXY_CRATES.command("mcp-proxy", "--config", config)


def mcp_proxy_npm(port):
    return peers.MCP_PROXY_NPM.command("node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs", "--host", "127.0.0.1",
                                       "--port", port, "--server", "stream", "--", *SERVER)


def mcp_proxy_pypi(port):
    return [peers.MCP_PROXY_PYPI.folder / "bin" / "mcp-proxy", "--host", "127.0.0.1", "--port", port, "--", *SERVER]


def fastmcp(port):
    return peers.FASTMCP.command("gateway.py", port, *SERVER)


COMMANDS = {
    "supergateway": supergateway,
    "mcp-proxy-crates": mcp_proxy_crates,
    "mcp-proxy-npm": mcp_proxy_npm,
    "mcp-proxy-pypi": mcp_proxy_pypi,
    "fastmcp": fastmcp,
}
# The path of the endpoint, unless it is `/mcp`.
PATHS = {"mcp-proxy-crates": "/"}

if __name__ == "__main__":
    main(sys.argv[1])
