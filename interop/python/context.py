"""Drives `turnbuckle serve` with a Python client and prints a JSON line per check.

context.py SDK CLIENT REVISION CHECK,… stdio COMMAND… | http URL
"""
import asyncio
import contextlib
import importlib
import json
import pathlib
import sys

FAMILIES = ("checkpoint_", "memory_", "remediation_", "skill_", "collection_", "debug_", "index_", "repository_", "status")


class NoHandlers:
    """The context server sends no client requests."""

    def __init__(self):
        self.logged = self.updated = asyncio.Queue()

    def elicit(self, params):
        raise AssertionError(params)

    sample = elicit

    def roots(self):
        return []


class Checks:
    """A method for each check, in the order of a typical session."""

    def __init__(self, session):
        self.session = session
        project = pathlib.Path("project").resolve()
        (project / ".git").mkdir(parents=True, exist_ok=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (project / "parser.py").write_text("def parse_config(text):\n    return {}\n")
        (project / "server.py").write_text("def accept_loop():\n    pass\n")
        self.project = str(project)

    async def call(self, tool, **arguments):
        result = await self.session.call(tool, arguments)
        assert not result.get("isError"), result
        assert result["content"][0]["text"].strip(), result
        return result["structuredContent"]

    async def tools(self):
        for tool in await self.session.list("tools"):
            assert tool["name"].startswith(FAMILIES), tool["name"]
            assert tool["description"] and tool["annotations"], tool
            assert tool["outputSchema"]["type"] == "object", tool

    async def checkpoint(self):
        saved = await self.call("checkpoint_save", content="The parser reads tables; next: error positions.",
                                project_path=self.project, metadata={"summary": "Parser done"})
        self.saved, self.operation = saved["checkpoint_id"], saved["operation_id"]

    async def search(self):
        found = await self.call("checkpoint_search", query="how far is the parser?", project_path=self.project)
        assert found["checkpoints"][0]["checkpoint"]["id"] == self.saved, found

    async def list(self):
        listed = await self.call("checkpoint_list", project_path=self.project)
        assert [item["summary"] for item in listed["checkpoints"]] == ["Parser done"], listed

    async def index(self):
        steps = []
        result = await self.session.call("index_repository", {"path": self.project},
                                         progress=lambda *step: steps.append(step))
        assert result["structuredContent"]["files_indexed"] == 2, result
        assert steps, "no progress was told"

    async def repository_search(self):
        found = await self.call("repository_search", query="where is the config parsed?", project_path=self.project)
        assert "parser.py" in json.dumps(found), found

    async def status(self):
        assert (await self.call("status"))["status"] == "healthy"
        assert (await self.call("status", operation_id=self.operation))["status"] == "completed"

    async def skill(self):
        await self.call("skill_save", name="release", description="How a release is made", content="1. Tag it.")
        found = await self.call("skill_search", query="make a release")
        assert found["skills"][0]["skill"]["name"] == "release", found

    async def remediation(self):
        await self.call("remediation_save", error_msg="KeyError: 'name' at parser.py:4", solution="Use get().",
                        project_path=self.project)
        found = await self.call("remediation_search", error_msg="KeyError 'name'", project_path=self.project)
        assert len(found["remediations"]) == 1, found

    async def collection(self):
        listed = (await self.call("collection_list"))["collections"]
        name = listed[0]["name"].replace("/main", "/topic")
        await self.call("collection_create", collection_name=name, vector_size=384)
        assert (await self.call("collection_delete", collection_name=name))["deleted"] is True

    async def resources(self):
        uri = f"checkpoint://{self.saved}"
        assert uri in [resource["uri"] for resource in await self.session.list("resources")]
        contents = (await self.session.read(uri))["contents"]
        assert "error positions" in contents[0]["text"], contents
        assert len(await self.session.list("templates")) >= 3

    async def prompts(self):
        prompts = {prompt["name"] for prompt in await self.session.list("prompts")}
        assert prompts == {"resume_work", "record_fix", "explain_repository"}, prompts
        messages = await self.session.prompt("resume_work", {"project_path": self.project})
        assert "Parser done" in json.dumps(messages), messages

    async def debug(self):
        found = await self.call("debug_log_query", function_pattern="checkpoint_*", entry_type="exit")
        assert [entry["function_name"] for entry in found["entries"]][:1] == ["checkpoint_save"], found
        assert all(entry["duration_ms"] > 0 for entry in found["entries"]), found

    async def debug_create(self):
        session = await self.call("debug_create_session", program="build", target_type="native")
        assert session["state"] == "recording" and session["target_type"] == "native", session
        self.debugged = session["session_id"]

    async def debug_list(self):
        assert self.debugged in await self.open_sessions(), "the session is not listed"

    async def debug_enable(self):
        enabled = await self.call("debug_log_enable", pattern="checkpoint_*")
        assert enabled == {"status": "enabled", "filter_pattern": "checkpoint_*"}, enabled

    async def debug_status(self):
        status = await self.call("debug_log_status")
        assert status["enabled"] is True and status["filter_pattern"] == "checkpoint_*", status
        assert status["current_depth"] == 1 and status["entry_count"] > 0, status

    async def debug_missing(self):
        result = await self.session.call("debug_create_session", {})
        assert result["isError"] and "program" in result["content"][0]["text"], result

    async def debug_close(self):
        closed = await self.call("debug_close_session", session_id=self.debugged)
        assert closed == {"closed": self.debugged, "status": "ok"}, closed
        assert self.debugged not in await self.open_sessions(), "the session is still listed"

    async def open_sessions(self):
        listed = await self.call("debug_list_sessions")
        return [session["session_id"] for session in listed["sessions"]]


async def main():
    sdk, client, revision, wanted, transport, *target = sys.argv[1:]
    sdk = importlib.import_module(sdk)

    def report(check, ok, detail=""):
        print(json.dumps({"client": client, "check": check, "ok": ok, "detail": detail[:600]}), flush=True)

    stage = "connect"
    try:
        async with contextlib.AsyncExitStack() as stack:
            session = await stack.enter_async_context(sdk.connect(transport, target, revision, NoHandlers()))
            report("connect", session.version == revision, session.version)
            checks = Checks(session)
            for name in wanted.split(","):
                try:
                    await asyncio.wait_for(getattr(checks, name)(), 20)
                    report(name, True)
                except Exception as error:
                    report(name, False, f"{type(error).__name__}: {error}")
            stage = "close"
        report("close", True)
    except BaseException as error:
        report(stage, False, f"{type(error).__name__}: {error}")


asyncio.run(main())
