"""The proxy of FastMCP in front of a command: gateway.py PORT COMMAND…"""
import sys

from fastmcp.server import create_proxy

port, command, *arguments = sys.argv[1:]
proxy = create_proxy({"mcpServers": {"echo": {"command": command, "args": arguments}}})
proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="ERROR")
