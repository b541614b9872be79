"""The libraries that ours is measured beside: their versions, the forms of their servers, and what each cannot do."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "interop"))

from packages import TARGET, Cargo, Npm, Pip, Program  # noqa: E402

BUILT = TARGET / "bench-peers"
TOOLS = TARGET / "tools" / "bench"


def rust(name, *switches):
    return Program(PACKAGES.setdefault(name, Cargo(HERE / name, "release", BUILT)), f"turnbuckle-bench-{name}", *switches)


PACKAGES = {}
TYPESCRIPT = Npm("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2", "zod@4",
                 scripts=HERE / "typescript", tools=TOOLS)
PYTHON = Pip("mcp==2.3.0", scripts=HERE / "python", tools=TOOLS)

SERVERS = {
    "rmcp": rust("rmcp"),
    "rmcp-nodelay": rust("rmcp", "--nodelay"),
    "rmcp-tuned": rust("rmcp", "--tuned"),
    "tower-mcp": rust("tower-mcp"),
    "turbomcp": rust("turbomcp"),
    "pmcp": rust("pmcp"),
    "typescript": Program(TYPESCRIPT, "server.mjs"),
    "python": Program(PYTHON, "server.py"),
}
CLIENTS = {"rmcp-client": rust("rmcp-client")}

# By server, then by what it is asked: why it cannot. `check.py` sees that this is so.
LACKS = {}
