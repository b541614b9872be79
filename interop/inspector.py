"""Drives a server with the Inspector's `--cli` and prints a JSON line per check.

inspector.py PROGRAM ERA CLIENT REVISION CHECK,… stdio COMMAND… | http URL | sse URL
"""
import functools
import json
import os
import subprocess
import sys
import tempfile

program, era, name, revision, wanted, transport, *target = sys.argv[1:]
TOOLS = ["add", "card", "connect", "count_words", "find", "places", "remind", "sign", "summarize", "tidy"]
# Its settings must not come from the machine that runs this, nor stay there.
home = tempfile.TemporaryDirectory()


@functools.cache
def ask(method, *options):
    """The printed result, the message of the printed error, and the exit code."""
    command = ["node", program, "--cli", "--format", "json", "--quiet", "--protocol-era", era, *target]
    command += ["--transport", transport, "--method", method, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
                          env=os.environ | {"HOME": home.name})
    result = json.loads(done.stdout)["result"] if done.stdout else None
    errors = [json.loads(line)["error"]["message"] for line in done.stderr.splitlines() if line.startswith('{"error"')]
    if done.returncode == 0 and result is None:
        raise AssertionError(f"nothing was printed: {done.stderr}")
    return result, "".join(errors), done.returncode


def told(method, *options):
    result, error, code = ask(method, *options)
    assert code == 0, f"ended with {code}: {error}"
    return result


def call(tool, *options):
    return ask("tools/call", "--tool-name", tool, *options)


def names(method, member, key="name"):
    return sorted(item[key] for item in told(method)[member])


def version():
    equal(told("initialize")["protocolVersion"], revision)


def server_info():
    equal(told("initialize")["serverInfo"]["name"], "notes")


def tools():
    equal(names("tools/list", "tools"), TOOLS)


def resources():
    equal(names("resources/list", "resources", "uri"), ["notes://about", "notes://all", "notes://pixel"])


def templates():
    equal(names("resources/templates/list", "resourceTemplates", "uriTemplate"), ["notes://note/{number}"])


def prompts():
    equal(names("prompts/list", "prompts"), ["review"])


def text():
    result, _, code = call("tidy")
    equal((code, result["content"][0]["text"]), (0, "All is in order."))


def structured():
    result, _, code = call("add", "--tool-arg", "text=inspected")
    equal((code, result["structuredContent"]), (0, json.loads(result["content"][0]["text"])))


def missing_argument():
    result, error, code = call("add")
    assert code != 0 and result["isError"], f"ended with {code}: {result}"
    assert "text" in result["content"][0]["text"], result


def read_text():
    equal(told("resources/read", "--uri", "notes://about")["contents"][0]["text"], "Notes, kept in memory.")


def missing_resource():
    _, error, code = ask("resources/read", "--uri", "notes://nowhere")
    assert code != 0 and "not found" in error, f"ended with {code}: {error}"


def prompt():
    messages = told("prompts/get", "--prompt-name", "review", "--prompt-args", "tone=frank")["messages"]
    equal(messages[1]["content"]["text"], "Go through these notes in a frank tone.")


def undeclared():
    """A client request that this client does not support ends the call, and nothing is sent to it."""
    result, error, code = call("sign")
    assert code != 0 and "elicitation" in json.dumps([result, error]), f"ended with {code}: {result} {error}"


def equal(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


def attempt(check, action):
    try:
        action()
        ok, detail = True, ""
    except Exception as error:  # whatever it is, it is the answer to the check
        ok, detail = False, f"{type(error).__name__}: {error}"[:600]
    print(json.dumps({"client": name, "transport": transport, "check": check, "ok": ok, "detail": detail}), flush=True)


attempt("connect", lambda: told("initialize"))
for check in wanted.split(","):
    attempt(check, globals()[check])
attempt("close", home.cleanup)
