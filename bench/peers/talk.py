"""A client of a measured server, with only the standard library.

`Http` and `Stdio` start a server and use one era; both can `request`, `listen` and return what was `received`.
"""
import http.client
import itertools
import json
import re
import subprocess
import threading

# The longest time until a response, in seconds; on a busy machine a cold start of an interpreter takes long.
RESPONSE_TIMEOUT = 60
# The longest time until a listener has received a notification, in seconds.
DELIVERY = 5
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "check", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "0"}}


class Refused(Exception):
    """A server returned an error or no response."""


class Connection:
    def __init__(self, command, era):
        self.command, self.era, self.ids, self.messages = command, era, itertools.count(1), []
        self.arrived = threading.Condition()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def handshake(self):
        """Makes the handshake, if the era has one."""
        if self.era == "legacy":
            self.request("initialize", HANDSHAKE)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method, params, **meta):
        """Returns the result; other messages are added to `messages`."""
        identity = self.send(self.request_message(method, params, meta))
        response = self.wait(lambda message: message.get("id") == identity, f"no response to {method}")
        if "result" not in response:
            raise Refused(response["error"]["message"])
        return response["result"]

    def request_message(self, method, params, meta):
        if self.era == "modern":
            meta = META | meta
        params = params | ({"_meta": meta} if meta else {})
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}

    def received(self, method):
        return [message for message in self.messages if message.get("method") == method]

    def receive(self, message):
        with self.arrived:
            self.messages.append(message)
            self.arrived.notify_all()

    def wait(self, matches, otherwise, timeout=RESPONSE_TIMEOUT):
        found = lambda: next(filter(matches, self.messages), None)
        with self.arrived:
            if not self.arrived.wait_for(found, timeout):
                raise Refused(otherwise)
            return found()

    def listen(self):
        """Subscribes to changes."""
        if self.era == "modern":
            self.listen_modern()
        else:
            self.listen_legacy()

    def listen_modern(self):
        self.send(self.request_message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, {}))
        acknowledged = lambda message: message.get("method") == "notifications/subscriptions/acknowledged"
        self.wait(acknowledged, "subscriptions/listen was not acknowledged")


class Stdio(Connection):
    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.receive(json.loads(line))

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return message.get("id")

    def listen_legacy(self):
        """A stdio client receives changes without a subscription."""


class Http(Connection):
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
        """Opens a second connection to the same server."""
        other = Http(self.command, self.era)
        other.address, other.path = self.address, self.path
        other.handshake()
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
        connection = http.client.HTTPConnection(self.address, timeout=RESPONSE_TIMEOUT)
        connection.request(verb, self.path, message and json.dumps(message), self.headers(message))
        answer = connection.getresponse()
        if answer.status >= 300:
            raise Refused(f"{answer.status} {answer.read().decode()[:200]}")
        # A stream may stay open as long as the server runs.
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
                        self.receive(json.loads(line[5:]))
            elif text := answer.read():
                self.receive(json.loads(text))
        except (OSError, ValueError, http.client.HTTPException):
            pass  # The server was killed, or closed the connection.
