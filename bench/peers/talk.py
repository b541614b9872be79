"""A conversation with a measured server, with nothing but the standard library.

`Http` and `Stdio` start a server and talk to it in one era; both can `ask`, `listen` and say what was `heard`.
"""
import http.client
import itertools
import json
import re
import subprocess
import threading

# How long an answer may take; where processors are busy, a cold start of an interpreter takes long.
PATIENCE = 60
# How long it takes at most until a listener has what it was told of.
DELIVERY = 5
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "check", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "0"}}


class Refused(Exception):
    """What a server answered instead of a result, or that it did not answer."""


class Conversation:
    def __init__(self, command, era):
        self.command, self.era, self.ids, self.messages = command, era, itertools.count(1), []
        self.arrived = threading.Condition()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def greet(self):
        """Makes the handshake, if the era has one."""
        if self.era == "legacy":
            self.ask("initialize", HANDSHAKE)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method, params, **meta):
        """Returns the result; what else arrives is in `messages`."""
        identity = self.send(self.request(method, params, meta))
        answer = self.wait(lambda message: message.get("id") == identity, f"no answer to {method}")
        if "result" not in answer:
            raise Refused(answer["error"]["message"])
        return answer["result"]

    def request(self, method, params, meta):
        if self.era == "modern":
            meta = META | meta
        params = params | ({"_meta": meta} if meta else {})
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}

    def heard(self, method):
        return [message for message in self.messages if message.get("method") == method]

    def hear(self, message):
        with self.arrived:
            self.messages.append(message)
            self.arrived.notify_all()

    def wait(self, wanted, otherwise, patience=PATIENCE):
        found = lambda: next(filter(wanted, self.messages), None)
        with self.arrived:
            if not self.arrived.wait_for(found, patience):
                raise Refused(otherwise)
            return found()

    def listen(self):
        """Begins to listen to changes."""
        if self.era == "modern":
            self.listen_modern()
        else:
            self.listen_legacy()

    def listen_modern(self):
        self.send(self.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, {}))
        acknowledged = lambda message: message.get("method") == "notifications/subscriptions/acknowledged"
        self.wait(acknowledged, "subscriptions/listen was not acknowledged")


class Stdio(Conversation):
    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.hear(json.loads(line))

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return message.get("id")

    def listen_legacy(self):
        """Whoever made the handshake listens."""


class Http(Conversation):
    session = None

    def start(self):
        self.process = subprocess.Popen([*self.command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.match(r"listening on http://([^/]+)(/.*)", line):
                self.address, self.path = found.groups()
                break
        else:
            raise Refused(f"it ended with {self.process.wait()} before it listened")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def another(self):
        """Begins a second conversation with the same server."""
        other = Http(self.command, self.era)
        other.address, other.path = self.address, self.path
        other.greet()
        return other

    def send(self, message):
        answer = self.exchange("POST", message)
        if self.era == "legacy" and message["method"] == "initialize":
            self.session = answer.headers["mcp-session-id"]
        return message.get("id")

    def listen_legacy(self):
        if self.session is None:
            raise Refused("it gave no session")
        self.exchange("GET")

    def exchange(self, verb, message=None):
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        connection.request(verb, self.path, message and json.dumps(message), self.headers(message))
        answer = connection.getresponse()
        if answer.status >= 300:
            raise Refused(f"{answer.status} {answer.read().decode()[:200]}")
        # A stream may stay open as long as the server lives.
        threading.Thread(target=self.read, args=(answer,), daemon=True).start()
        return answer

    def headers(self, message):
        headers = {"accept": "application/json, text/event-stream" if message else "text/event-stream"}
        if message:
            headers["content-type"] = "application/json"
        if self.era == "modern":
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
            if "name" in message["params"]:
                headers["mcp-name"] = message["params"]["name"]
        elif self.session:
            headers |= {"mcp-protocol-version": "2025-11-25", "mcp-session-id": self.session}
        return headers

    def read(self, answer):
        try:
            if (answer.headers["content-type"] or "").startswith("text/event-stream"):
                for line in answer:
                    if line.startswith(b"data:") and line[5:].strip():
                        self.hear(json.loads(line[5:]))
            elif text := answer.read():
                self.hear(json.loads(text))
        except (OSError, ValueError, http.client.HTTPException):
            pass  # The server was killed, or has nothing more to say.
