"""Drives a server of another project with our command line and prints a JSON line per check.

cli.py PROGRAM SERVER ERA REVISION CHECK,… stdio COMMAND… | http URL | sse URL
"""
import functools
import json
import subprocess
import sys

program, kind, era, revision, wanted, transport, *target = sys.argv[1:]

KNOWN = {
    "workbench": dict(
        name="workbench", say=["echo", "text=hello"], said="hello", add=["add", "a:=1", "b:=2"], added={"sum": 3},
        needy="echo", uri="workbench://greeting", content="Hello.", prompt=["greet", "name=Ada", "tone=warm"],
        message="Greet Ada in a warm tone.", ask="ask", complete=["--prompt", "greet", "tone", "wa"],
        completed=["warm", "wary"]),
    "everything": dict(
        name="mcp-servers/everything", say=["echo", "message=hello"], said="Echo: hello",
        add=["get-structured-content", "location=Chicago"],
        added={"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}, needy="get-sum",
        uri="demo://resource/dynamic/text/1", content="Resource 1", prompt=["completable-prompt", "department=Sales",
                                                                             "name=Eve"],
        message="Please promote Eve to the head of the Sales team.", ask="trigger-elicitation-request",
        complete=["--prompt", "completable-prompt", "department", "S"], completed=["Sales", "Support"]),
}
known = KNOWN[kind]


@functools.cache
def run(command, *words, timeout_limit="10s"):
    """The standard output, the standard error, and the exit code."""
    line = [program, "--json", "--era", era, "--timeout", timeout_limit, command]
    line += [*words, "--", *target] if transport == "stdio" else [target[0], *words]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    return json.loads(done.stdout) if done.stdout else None, done.stderr, done.returncode


def result_of(command, *words):
    result, error, code = run(command, *words)
    assert code == 0, f"ended with {code}: {error}"
    return result


def version():
    equal(result_of("info")["protocolVersion"], revision)


def server_info():
    equal(result_of("info")["serverInfo"]["name"], known["name"])


def tools():
    assert known["needy"] in [tool["name"] for tool in result_of("tools")["tools"]], result_of("tools")


def text():
    equal(result_of("call", *known["say"])["content"][0]["text"], known["said"])


def structured():
    equal(result_of("call", *known["add"])["structuredContent"], known["added"])


def missing_argument():
    """The call fails, in a result or in an error, with exit code 1."""
    result, error, code = run("call", known["needy"])
    equal(code, 1)
    assert result.get("isError") or "error" in result, result
    assert error.startswith("error: "), error


def unknown_tool():
    result, error, code = run("call", "no_such_tool")
    equal(code, 1)
    assert "no_such_tool" in error, error


def resources():
    assert result_of("resources")["resources"], "there are none"


def read_text():
    content = result_of("read", known["uri"])["contents"][0]["text"]
    assert known["content"] in content, content


def missing_resource():
    _, error, code = run("read", "nowhere://at/all")
    equal(code, 1)
    assert error.startswith("error: "), error


def prompts():
    assert known["prompt"][0] in [prompt["name"] for prompt in result_of("prompts")["prompts"]], result_of("prompts")


def prompt():
    equal(result_of("prompt", *known["prompt"])["messages"][0]["content"]["text"], known["message"])


def completion():
    found = result_of("complete", *known["complete"])
    equal(found["completion"]["values"], known["completed"])


def elicitation():
    """Without a terminal the elicitation is cancelled."""
    result, error, code = run("call", known["ask"])
    assert "needs a terminal" in error and "cancel" in json.dumps(result), f"ended with {code}: {result} {error}"


def timeout():
    """A call that takes too long ends with an error; the cancellation is checked afterwards."""
    _, error, code = run("call", "wait", "seconds:=60", timeout_limit="5s")
    equal(code, 2)
    assert "got no response within 5s" in error, error


def ping():
    assert result_of("ping")["milliseconds"] > 0


def equal(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


def attempt(check, action):
    try:
        action()
        ok, detail = True, ""
    except Exception as error:  # whatever it is, it is the answer to the check
        ok, detail = False, f"{type(error).__name__}: {error}"[:600]
    print(json.dumps({"check": check, "ok": ok, "detail": detail}), flush=True)


attempt("connect", lambda: result_of("info"))
for check in wanted.split(","):
    attempt(check, globals()[check])
