//! A context server on stdio that is spoken to by hand, so that it can be killed at any moment.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A server on stdio, and its two streams.
pub(crate) struct Wire {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last: u64,
}

impl Wire {
    /// Starts a program.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            last: 0,
        }
    }

    /// Calls a tool without waiting for the answer; returns the id of the request, if it could be sent.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> Option<u64> {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Waits for the next answer; there is none once the server is dead.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok()?;
        // A line that the death of the server cut off is no answer.
        serde_json::from_str(&line).ok()
    }

    /// Calls a tool, and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.send(tool, arguments).unwrap();
        loop {
            let answer = self.answer().unwrap();
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    }

    /// Reads a resource, and returns its text.
    pub(crate) fn read(&mut self, uri: &str) -> Option<String> {
        let id = self
            .request("resources/read", json!({ "uri": uri }))
            .unwrap();
        let answer = self.answer().unwrap();
        assert_eq!(answer["id"], id);
        let text = &answer["result"]["contents"][0]["text"];
        text.as_str().map(str::to_owned)
    }

    /// Kills the server at once.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    fn request(&mut self, method: &str, mut params: Value) -> Option<u64> {
        self.last += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        let sent = self
            .stdin
            .as_mut()?
            .write_all(format!("{request}\n").as_bytes());
        sent.ok().map(|()| self.last)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
