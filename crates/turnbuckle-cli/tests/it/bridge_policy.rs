//! Tool lock, audit log and metrics of `turnbuckle bridge`.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::{
    sandbox::Sandbox,
    serve_process::{ServeProcess, get},
    stdio_server::StdioServer,
    tool_changes::Bank,
};

/// Writes the tool lock of a bank to `tools.lock`.
fn write_lock(bank: &Bank) {
    let words = ["unix:bank", "--lock", "tools.lock", "--lock-update"];
    ServeProcess::bridge(&bank.sandbox, &words).stop();
}

#[test]
fn a_missing_lock_file_names_the_option_that_writes_it() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["bridge", "SOCKET", "--lock", "tools.lock"]), @r"
    --- stderr
    error: the tool lock ~/tools.lock does not exist

    hint: write the definitions of the servers to it with --lock-update
    --- exit 2
    ");
    assert!(!sandbox.path().join("tools.lock").exists());
}

#[test]
fn an_invalid_lock_file_and_a_server_without_a_lock_are_errors() {
    let bank = Bank::new();
    bank.sandbox.write("invalid.lock", "nonsense = 1\n");
    insta::assert_snapshot!(bank.sandbox.run(&["bridge", "unix:bank", "--lock", "invalid.lock"]), @r"
    --- stderr
    error: the tool lock ~/invalid.lock is invalid: line 1, column 1: unknown key `nonsense`
    --- exit 2
    ");

    write_lock(&bank);
    insta::assert_snapshot!(bank.sandbox.run(&["bridge", "SOCKET", "--lock", "tools.lock"]), @r"
    --- stderr
    error: server `s` is not in the tool lock ~/tools.lock

    hint: add it with --lock-update
    --- exit 2
    ");
}

#[test]
fn an_update_writes_the_lock_and_shows_what_has_changed() {
    let bank = Bank::new();
    let path = bank.sandbox.path().join("tools.lock");

    write_lock(&bank);
    let first = fs::read_to_string(&path).unwrap();
    assert!(first.contains("bank") && first.contains("pay"), "{first}");
    bank.set_description("Pays the attacker");
    let words = ["unix:bank", "--lock", "tools.lock", "--lock-update"];
    let stderr = ServeProcess::bridge(&bank.sandbox, &words).stop();

    assert!(stderr.contains("description"), "{stderr}");
    assert_ne!(fs::read_to_string(&path).unwrap(), first);
    let names = fs::read_dir(bank.sandbox.path()).unwrap().flatten();
    let temporary = names.filter(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(temporary.count(), 0);
}

#[test]
fn a_changed_tool_is_left_out_and_its_call_tells_the_model_why() {
    let bank = Bank::new();
    write_lock(&bank);
    let words = ["unix:bank", "--lock", "tools.lock"];
    let same = ServeProcess::bridge(&bank.sandbox, &words);
    let tools = bank.sandbox.run(&["tools", &same.address]);
    assert!(tools.contains("pay"), "{tools}");
    same.stop();

    bank.set_description("Pays the attacker");
    let changed = ServeProcess::bridge(&bank.sandbox, &words);
    let tools = bank.sandbox.run(&["tools", &changed.address]);
    assert!(!tools.contains("pay"), "{tools}");
    changed.stop();

    let words = ["bridge", "--stdio", "unix:bank", "--lock", "tools.lock"];
    let mut stdio = StdioServer::start(&mut bank.sandbox.command(&words));
    let result = stdio.call("pay", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    insta::assert_snapshot!(result["content"][0]["text"].as_str().unwrap(), @"tool `pay` of server `bank` has changed since it was locked: description; after a review, `--lock-update` accepts it");
    assert_eq!(bank.payments(), 0);
}

#[test]
fn audit_records_are_private_and_have_no_argument_values() {
    let sandbox = Sandbox::new();
    let words = ["SOCKET", "--deny", "picture", "--audit", "audit.jsonl"];
    let bridge = ServeProcess::bridge(&sandbox, &words);

    bridge.call(&sandbox, &["forecast", "city=Reykjavik"]);
    sandbox.run(&["call", &bridge.address, "picture", "--args", "{}"]);
    bridge.stop();

    let path = sandbox.path().join("audit.jsonl");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(path).unwrap();
    assert!(!text.contains("Reykjavik"), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let calls: Vec<Value> = lines
        .filter(|record: &Value| record["method"] == "tools/call")
        .collect();
    let members = |call: &Value| (call["target"].clone(), call["outcome"].clone());
    let calls_made: Vec<_> = calls.iter().map(members).collect();
    assert_eq!(
        calls_made,
        [
            (json!("forecast"), json!("ok")),
            (json!("picture"), json!("denied"))
        ]
    );
    assert_eq!(calls[0]["argumentsSha256"].as_str().unwrap().len(), 64);
}

#[test]
fn an_audit_log_that_cannot_be_opened_is_an_error() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["bridge", "SOCKET", "--audit", "none/audit.jsonl"]), @r"
    --- stderr
    error: cannot write the audit log ~/none/audit.jsonl: No such file or directory (os error 2)
    --- exit 2
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_once_and_calls_go_on() {
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--audit", "/dev/full"]);

    for city in ["city=Oslo", "city=Bergen", "city=Odense"] {
        let result = bridge.call(&sandbox, &["forecast", city]);
        assert_eq!(result["high"], 21.5);
    }

    let stderr = bridge.stop();
    let warnings = stderr.matches("writing the audit log failed").count();
    assert_eq!(warnings, 1, "{stderr}");
}

#[test]
fn metrics_are_served_as_text() {
    let sandbox = Sandbox::new();
    // Nothing else uses ports of this address, so that the port is still free when the bridge starts.
    let port = TcpListener::bind("127.83.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    drop(port);
    let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--metrics", &address]);
    bridge.call(&sandbox, &["forecast", "city=Oslo"]);

    let response = get(&format!("http://{address}/metrics"));
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("Content-Type: text/plain; version=0.0.4"));
    let call = response.lines().find(|line| {
        line.starts_with("mcp_server_operation_duration_seconds_count")
            && line.contains("tools/call")
    });
    assert!(call.is_some_and(|line| line.ends_with(" 1")), "{response}");
    let other = get(&format!("http://{address}/other"));
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    bridge.stop();
}

#[test]
fn metrics_are_not_served_to_other_machines() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["bridge", "SOCKET", "--metrics", "0.0.0.0:9100"]), @r"
    --- stderr
    error: --metrics listens on loopback addresses only, not on 0.0.0.0:9100
    --- exit 2
    ");
}

/// The file of the user, below the home directory.
const FILE: &str = ".config/turnbuckle/bridge.toml";

#[test]
fn a_tool_lock_in_the_file_is_used_and_the_option_takes_precedence() {
    let bank = Bank::new();
    let sandbox = &bank.sandbox;
    sandbox.write(FILE, "[policy]\nlock = \"mcp.lock\"\n");
    let missing = sandbox.run(&["bridge", "unix:bank"]);
    assert!(
        missing.contains("~/.config/turnbuckle/mcp.lock does not exist"),
        "{missing}"
    );

    ServeProcess::bridge(sandbox, &["unix:bank", "--lock-update"]).stop();
    let path = sandbox.path().join(".config/turnbuckle/mcp.lock");
    assert!(fs::read_to_string(path).unwrap().contains("pay"));
    bank.set_description("Pays the attacker");
    let locked = ServeProcess::bridge(sandbox, &["unix:bank"]);
    let tools = sandbox.run(&["tools", &locked.address]);
    assert!(!tools.contains("pay"), "{tools}");
    locked.stop();

    write_lock(&bank);
    let other = ServeProcess::bridge(sandbox, &["unix:bank", "--lock", "tools.lock"]);
    let tools = sandbox.run(&["tools", &other.address]);
    assert!(tools.contains("pay"), "{tools}");
    other.stop();
}

#[test]
fn an_update_without_a_tool_lock_is_an_error() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["bridge", "SOCKET", "--lock-update"]), @r"
    --- stderr
    error: --lock-update needs a tool lock

    hint: name it with --lock FILE, or `lock` in `[policy]` of bridge.toml
    --- exit 2
    ");
}

#[test]
fn another_tool_lock_in_a_changed_file_is_an_error() {
    let bank = Bank::new();
    let sandbox = &bank.sandbox;
    sandbox.write(FILE, "[policy]\nlock = \"mcp.lock\"\n");
    ServeProcess::bridge(sandbox, &["unix:bank", "--lock-update"]).stop();
    let bridge = ServeProcess::bridge(sandbox, &["unix:bank"]);

    sandbox.write(FILE, "[policy]\n");
    bridge.signal(rustix::process::Signal::HUP);
    bridge.wait_for_stderr("`lock` in `[policy]` has changed, and is read at the start only");

    let tools = sandbox.run(&["tools", &bridge.address]);
    assert!(tools.contains("pay"), "{tools}");
    bridge.stop();
}
