//! A context server on stdio with a hand-written client, so that it can be killed at any time.

use std::{
    io::{BufRead, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

/// A server on stdio, and its streams.
pub(crate) struct StdioServer {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl StdioServer {
    /// Starts a program.
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self::with_program(child)
    }

    /// Uses a program that runs, with pipes for its input and output.
    pub(crate) fn with_program(mut child: Child) -> Self {
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            last_id: 0,
        }
    }

    /// Calls a tool without waiting for the response. Returns the request id, if it could be sent.
    pub(crate) fn send(&mut self, tool: &str, arguments: &Value) -> Option<u64> {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Waits for the next response; `None` if the server has ended.
    pub(crate) fn read_response(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).ok()?;
        // A truncated line is not a response.
        serde_json::from_str(&line).ok()
    }

    /// Calls a tool, and returns its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.send(tool, arguments).unwrap();
        loop {
            let response = self.read_response().unwrap();
            if response["id"] == id {
                return response["result"].clone();
            }
        }
    }

    /// Reads a resource, and returns its text.
    pub(crate) fn read(&mut self, uri: &str) -> Option<String> {
        let id = self
            .request("resources/read", json!({ "uri": uri }))
            .unwrap();
        let response = self.read_response().unwrap();
        assert_eq!(response["id"], id);
        let text = &response["result"]["contents"][0]["text"];
        text.as_str().map(str::to_owned)
    }

    /// Ends the input of the server.
    pub(crate) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    fn request(&mut self, method: &str, mut params: Value) -> Option<u64> {
        self.last_id += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        let sent = self
            .stdin
            .as_mut()?
            .write_all(format!("{request}\n").as_bytes());
        sent.ok().map(|()| self.last_id)
    }
}

impl Drop for StdioServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
