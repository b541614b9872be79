"""The libraries that ours is compared with: their versions, the forms of their servers, and their missing features."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "interop"))

from packages import TARGET, Cargo, Crate, Npm, Pip, Program  # noqa: E402

BUILT = TARGET / "bench-peers"
TOOLS = TARGET / "tools" / "bench"


def rust(folder):
    return Cargo(HERE / folder, "release", BUILT)


RMCP = rust("rmcp")
TYPESCRIPT = Npm("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2", "zod@4",
                 scripts=HERE / "typescript", tools=TOOLS)
PYTHON = Pip("mcp==2.3.0", scripts=HERE / "python", tools=TOOLS)

SERVERS = {
    "rmcp": Program(RMCP, "turnbuckle-bench-rmcp"),
    "rmcp-nodelay": Program(RMCP, "turnbuckle-bench-rmcp", "--nodelay"),
    "rmcp-tuned": Program(RMCP, "turnbuckle-bench-rmcp", "--tuned"),
    "tower-mcp": Program(rust("tower-mcp"), "turnbuckle-bench-tower-mcp"),
    "turbomcp": Program(rust("turbomcp"), "turnbuckle-bench-turbomcp"),
    "pmcp": Program(rust("pmcp"), "turnbuckle-bench-pmcp"),
    "typescript": Program(TYPESCRIPT, "server.mjs"),
    "python": Program(PYTHON, "server.py"),
}
# Gateways, which `gateway.py` starts in front of the bare server.
SUPERGATEWAY = Npm("supergateway@4.0.0", scripts=HERE / "gateways", tools=TOOLS)
MCP_PROXY_CRATES = Crate("mcp-proxy", "0.6.0", "protocol-2026-07-28", tools=TOOLS)
MCP_PROXY_NPM = Npm("mcp-proxy@6.7.19", scripts=HERE / "gateways", tools=TOOLS)
MCP_PROXY_PYPI = Pip("mcp-proxy==0.13.0", scripts=HERE / "gateways", tools=TOOLS)
FASTMCP = Pip("fastmcp==4.1.2", scripts=HERE / "gateways", tools=TOOLS)
GATEWAYS = {name: Program(package, name) for name, package in {
    "supergateway": SUPERGATEWAY,
    "mcp-proxy-crates": MCP_PROXY_CRATES,
    "mcp-proxy-npm": MCP_PROXY_NPM,
    "mcp-proxy-pypi": MCP_PROXY_PYPI,
    "fastmcp": FASTMCP,
}.items()}
# Gateways on stdio in front of a server over HTTP. Its URL replaces the word `URL`; stored files stay in the build folder.
MCP_REMOTE = Npm("mcp-remote@0.15.1", scripts=HERE / "gateways", tools=TOOLS)
STDIO_GATEWAYS = {"mcp-remote": Program(MCP_REMOTE, "node_modules/mcp-remote/dist/proxy.js", "URL", "--allow-http",
                                        "--transport", "http-only")}
CLIENTS = {"rmcp-client": Program(rust("rmcp-client"), "turnbuckle-bench-rmcp-client")}

# Why a server cannot do something: by where, in which era, and what, as far as each of these matters. `check.py` sees
# that it is so.
LACKS = {
    "rmcp-nodelay": {
        "stdio": "there it is rmcp as it comes",
    },
    "tower-mcp": {
        "http legacy steps": "in a session it puts progress on the GET stream, never on the answer of the call",
    },
    "pmcp": {
        "steps": "it lets one notification of progress through in 100 ms, and the last",
        "http modern announce": "at most 64 may listen to its changes",
        "http legacy announce": "over HTTP it tells no session of a change",
        "stdio announce": "on stdio a tool cannot reach the server, which alone can tell of a change",
    },
}


def lacks(name, *words):
    """Returns those entries of LACKS that are about all of this."""
    return {what for what in LACKS.get(name, {}) if set(what.split()) <= set(words)}
