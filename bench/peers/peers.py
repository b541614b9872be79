"""The libraries that ours is measured beside: their versions, the forms of their servers, and what each cannot do."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "interop"))

from packages import TARGET, Cargo, Npm, Pip, Program  # noqa: E402

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
CLIENTS = {"rmcp": Program(rust("rmcp-client"), "turnbuckle-bench-rmcp-client")}

# Why a server cannot do something, by the ability that `compare` asks for. `check.py` sees that each of these is so.
LACKS = {
    "tower-mcp": {
        "steps-in-sessions": "in a session it puts progress on the GET stream, never on the answer of the call",
    },
}


def abilities(place, era, what):
    """Returns what a server needs to pass a check, as `compare` calls it."""
    needs = [era]
    if (place, era) == ("stdio", "modern"):
        needs.append("modern-on-stdio")
    if what in ("announce", "crowd") and place == "stdio":
        return needs  # Nobody is measured with it.
    in_sessions = "-in-sessions" if era == "legacy" else ""
    needs += {"tools": ["tools"], "steps": [f"steps{in_sessions}"], "announce": [f"announce{in_sessions}"],
              "crowd": [f"announce{in_sessions}"]}.get(what, [])
    return needs
