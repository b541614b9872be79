//! Calls of modern clients that wait for input: request states of `turnbuckle bridge`, their keys and their number.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
};

use serde_json::{Value, json};

use crate::{sandbox::Sandbox, serve_process::ServeProcess};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Writes a file that only the user can read.
fn write_secret(sandbox: &Sandbox, file: &str, text: &str) {
    sandbox.write(file, text);
    let file = sandbox.path().join(file);
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Calls the tool that requests input, as a modern client.
fn rename(url: &str, token: Option<&str>, more: &Value) -> Value {
    let mut params = json!({
        "name": "rename",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = call.to_string();
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let authorization = token.map_or(String::new(), |token| {
        format!("Authorization: Bearer {token}\r\n")
    });
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{authorization}\
         Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: rename\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len(),
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    // The response may be an event of a stream.
    let json = response.lines().find_map(|line| {
        let line = line.strip_prefix("data:").unwrap_or(line).trim();
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("id").is_some().then_some(message)
    });
    json.unwrap_or_else(|| panic!("{response}"))
}

/// Returns the rest of a retry that accepts what a result requests.
fn acceptance(response: &Value) -> Value {
    let result = &response["result"];
    assert_eq!(result["resultType"], "input_required", "{response}");
    let key = result["inputRequests"].as_object().unwrap().keys().next();
    let accepted = json!({ "action": "accept", "content": { "name": "Ada" } });
    json!({
        "requestState": result["requestState"],
        "inputResponses": { (key.unwrap()): accepted },
    })
}

#[test]
fn with_a_key_file_another_bridge_continues_a_call_of_a_modern_server() {
    let sandbox = Sandbox::new();
    write_secret(&sandbox, "keys", &format!("# new\n{KEY}2\n{KEY}1\n"));
    write_secret(&sandbox, "old-keys", &format!("{KEY}1\n"));
    let words = ["SOCKET", "--server-era", "modern", "--state-key-file"];
    let start = |file: &str| ServeProcess::bridge(&sandbox, &[&words[..], &[file]].concat());
    let first = start("old-keys");
    let waiting = rename(&first.address, None, &json!({}));
    first.stop();

    let second = start("keys");
    let finished = rename(&second.address, None, &acceptance(&waiting));
    assert_eq!(finished["result"]["content"][0]["text"], "It is Ada now.");
    second.stop();

    let other = ServeProcess::bridge(&sandbox, &["SOCKET", "--server-era", "modern"]);
    let refused = rename(&other.address, None, &acceptance(&waiting));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(refused.to_string().contains("call again"), "{refused}");
    other.stop();
}

#[test]
fn a_suspended_call_of_another_bridge_is_never_started_again() {
    let sandbox = Sandbox::new();
    write_secret(&sandbox, "keys", KEY);
    let words = [
        "SOCKET",
        "--server-era",
        "legacy",
        "--state-key-file",
        "keys",
    ];
    let first = ServeProcess::bridge(&sandbox, &words);
    let audited = [&words[..], &["--audit", "audit.jsonl"]].concat();
    let second = ServeProcess::bridge(&sandbox, &audited);

    let waiting = rename(&first.address, None, &json!({}));
    let refused = rename(&second.address, None, &acceptance(&waiting));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(refused.to_string().contains("call again"), "{refused}");
    // A call that had been started would have requested input.
    assert!(!refused.to_string().contains("inputRequests"), "{refused}");
    let finished = rename(&first.address, None, &acceptance(&waiting));
    assert_eq!(finished["result"]["content"][0]["text"], "It is Ada now.");
    first.stop();
    second.stop();
}

#[test]
fn a_key_file_that_cannot_be_used_is_explained() {
    let sandbox = Sandbox::new();
    let words = ["bridge", "SOCKET", "--state-key-file", "keys"];

    insta::assert_snapshot!(sandbox.run(&words), @r"
    --- stderr
    error: cannot read the state keys ~/keys: No such file or directory (os error 2)

    hint: make a key with `(umask 077; openssl rand -hex 32 > ~/keys)`
    --- exit 2
    ");
    sandbox.write("keys", KEY);
    let path = sandbox.path().join("keys");
    fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    insta::assert_snapshot!(sandbox.run(&words), @r"
    --- stderr
    error: other users can read the state keys ~/keys

    hint: run `chmod 600 ~/keys`
    --- exit 2
    ");
    write_secret(&sandbox, "keys", "short\n");
    insta::assert_snapshot!(sandbox.run(&words), @r"
    --- stderr
    error: the state keys ~/keys are invalid: line 1 has fewer than 32 characters

    hint: make a key with `(umask 077; openssl rand -hex 32 > ~/keys)`
    --- exit 2
    ");
}

#[test]
fn one_at_a_time_lets_a_shared_legacy_server_request_input() {
    let sandbox = Sandbox::new();
    let words = ["SOCKET", "--server-era", "legacy", "--share", "all"];
    let plain = ServeProcess::bridge(&sandbox, &words);
    let refused = rename(&plain.address, None, &json!({}));
    assert_eq!(refused["result"].get("inputRequests"), None, "{refused}");
    plain.stop();

    let bridge = ServeProcess::bridge(&sandbox, &[&words[..], &["--one-at-a-time"]].concat());
    let waiting = rename(&bridge.address, None, &json!({}));
    let finished = rename(&bridge.address, None, &acceptance(&waiting));
    assert_eq!(finished["result"]["content"][0]["text"], "It is Ada now.");
    bridge.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn calls_that_are_never_retried_are_limited_per_caller_and_in_memory() {
    const CALLERS: usize = 70;
    const PER_CALLER: usize = 18;
    let sandbox = Sandbox::new();
    let token = |number: usize| format!("0123456789abcdef-{number:03}");
    let tokens: String = (0..CALLERS)
        .map(|number| format!("{} caller-{number}\n", token(number)))
        .collect();
    write_secret(&sandbox, "tokens", &tokens);
    let words = ["SOCKET", "--server-era", "legacy", "--token-file", "tokens"];
    let bridge = ServeProcess::bridge(&sandbox, &words);
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", bridge.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<usize>().unwrap()
    };
    let suspend = |caller: usize, calls: usize| {
        let mut suspended = 0;
        for _ in 0..calls {
            let response = rename(&bridge.address, Some(&token(caller)), &json!({}));
            if response["result"]["resultType"] == "input_required" {
                suspended += 1;
            } else {
                assert_eq!(response["error"]["code"], -32603, "{response}");
            }
        }
        suspended
    };
    let before = memory();

    // The first call of a caller opens its connection to the server.
    let first: usize = (0..CALLERS).map(|number| suspend(number, 1)).sum();
    assert_eq!(first, 64);
    let connected = memory();
    let mut suspended = first;
    for number in 0..CALLERS {
        let of_caller = suspend(number, PER_CALLER);
        assert!(of_caller < 16, "{of_caller} more of caller {number}");
        suspended += of_caller;
    }

    assert_eq!(suspended, 1_024);
    let now = memory();
    let more = now.saturating_sub(before);
    let later = now.saturating_sub(connected);
    let bytes = later * 1024 / (suspended - first);
    eprintln!(
        "{suspended} suspended calls: {more} KiB; {bytes} bytes for each after the first of a caller"
    );
    assert!(more < 64 * 1024, "{more} KiB");
    bridge.stop();
}
