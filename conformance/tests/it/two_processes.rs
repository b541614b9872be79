//! A call that continues in another process than the one that started it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use turnbuckle_spec_coverage::{req, saw_message};

const TOOL: &str = "test_input_required_result_multi_round";

/// A server process; dropping it kills it.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start(secret: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_conformance-server"))
            .args(["--listen", "127.0.0.1:0", "--state-key", secret])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening on http://").unwrap();
        let address = url.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, address }
    }

    /// Calls the tool with the members that the client adds in this round trip.
    fn call(&self, id: u32, round: &Value) -> Value {
        let mut params = json!({
            "name": TOOL,
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            },
        });
        let more = round.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(more);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        self.post(&body.to_string())
    }

    fn post(&self, body: &str) -> Value {
        saw_message(body);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: {TOOL}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the retry that responds to all input requests of a response.
fn respond_to_all(required: &Value) -> Value {
    let result = &required["result"];
    assert_eq!(result["resultType"], "input_required", "{required}");
    let requests = result["inputRequests"].as_object().unwrap();
    let accept = json!({ "action": "accept", "content": { "name": "Ada", "color": "red" } });
    let responses: serde_json::Map<_, _> = requests
        .keys()
        .map(|key| (key.clone(), accept.clone()))
        .collect();
    json!({ "inputResponses": responses, "requestState": result["requestState"] })
}

#[test]
fn a_call_continues_in_another_process_after_the_first_one_exited() {
    req!("mrtr.state.integrity", "mrtr.server.repeat");
    let secret = "a secret of both processes";
    let first = Process::start(secret);
    let second = Process::start(secret);

    let required = first.call(1, &json!({}));
    let required_again = second.call(2, &respond_to_all(&required));
    drop(first);
    let done = second.call(3, &respond_to_all(&required_again));

    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert!(done["result"]["content"][0]["text"].is_string());
}

#[test]
fn a_process_with_another_key_rejects_the_state() {
    req!("mrtr.state.reject");
    let first = Process::start("a secret of the first");
    let other = Process::start("a secret of its own");

    let required = first.call(1, &json!({}));
    let refused = other.call(2, &respond_to_all(&required));

    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
