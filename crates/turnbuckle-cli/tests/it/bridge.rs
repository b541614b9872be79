//! `turnbuckle bridge`: servers behind HTTP and stdio, and the programs that it starts.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    sandbox::Sandbox,
    serve_process::{ServeProcess, get, processes_with},
    stdio_server::StdioServer,
};

/// The path of the binary.
const BINARY: &str = env!("CARGO_BIN_EXE_turnbuckle");

/// The time that processes have to end: less than a test may take, so that a failure names them.
const END_TIMEOUT: Duration = Duration::from_secs(100);

/// Waits until no process has the text in its command line.
fn assert_no_process_with(text: &str) {
    let started_at = Instant::now();
    loop {
        let left = processes_with(text);
        if left.is_empty() {
            return;
        }
        assert!(started_at.elapsed() < END_TIMEOUT, "left: {left:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A shell that runs the context server on stdio with another process. The command lines of all contain `data`.
fn wrapper(data: &str, first: &str) -> String {
    format!("{first} sh -c 'sleep 1000; : {data}' & {BINARY} serve --stdio --data {data}; : {data}")
}

#[test]
fn a_program_is_served_on_http() {
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge(&sandbox, &["--", BINARY, "serve", "--stdio", "--data", "d"]);

    let tools = sandbox.run(&["tools", &bridge.address]);
    assert!(tools.contains("checkpoint_save"), "{tools}");
    for era in ["modern", "legacy"] {
        let words = ["call", &bridge.address, "checkpoint_list", "--era", era];
        let called = sandbox.run(&[&words[..], &["project_path=/p"]].concat());
        assert!(!called.contains("--- exit 2"), "{era}: {called}");
    }

    let base = bridge.address.strip_suffix("/mcp").unwrap();
    for path in ["/healthz", "/readyz"] {
        let response = get(&format!("{base}{path}"));
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
    let stderr = bridge.stop();
    assert!(stderr.contains("claude mcp add"), "{stderr}");
}

#[test]
fn a_tool_is_called_through_a_bridge() {
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--deny", "picture"]);

    let result = bridge.call(&sandbox, &["forecast", "city=Oslo", "days=2"]);

    assert_eq!(
        result,
        json!({ "summary": "Sun over Oslo for 2 days", "high": 21.5 })
    );
    let tools = sandbox.run(&["tools", &bridge.address]);
    assert!(tools.contains("forecast"), "{tools}");
    assert!(!tools.contains("picture"), "{tools}");
    bridge.stop();
}

#[test]
fn several_servers_have_prefixes_and_one_may_be_down() {
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "unix:/nowhere/files.sock"]);

    let result = bridge.call(&sandbox, &["s_forecast", "city=Oslo"]);

    assert_eq!(result["high"], 21.5);
    let stderr = bridge.stop();
    assert!(stderr.contains("files   down"), "{stderr}");
}

#[test]
fn a_server_on_http_is_served_on_stdio() {
    let sandbox = Sandbox::new();
    let front = ServeProcess::bridge(&sandbox, &["SOCKET"]);
    let mut command = sandbox.command(&["bridge", "--stdio", &front.address]);
    let mut stdio = StdioServer::start(&mut command);

    let result = stdio.call("forecast", &json!({ "city": "Oslo" }));

    assert_eq!(result["structuredContent"]["high"], 21.5, "{result}");
    drop(stdio);
    front.stop();
}

#[test]
fn configured_servers_are_bridged_without_the_bridge_itself() {
    let sandbox = Sandbox::new();
    let weather = ServeProcess::bridge(&sandbox, &["SOCKET"]);
    let config = json!({ "mcpServers": {
        "weather": { "url": weather.address },
        "me": { "command": "turnbuckle", "args": ["bridge", "--all", "--stdio"] },
    } });
    sandbox.write(".mcp.json", &config.to_string());
    let bridge = ServeProcess::bridge(&sandbox, &["--all", "--yes"]);

    let result = bridge.call(&sandbox, &["forecast", "city=Oslo"]);

    assert_eq!(result["high"], 21.5);
    let stderr = bridge.stop();
    assert!(stderr.contains("`me` is this bridge"), "{stderr}");
    weather.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn every_end_of_the_bridge_ends_its_programs() {
    for (signal, first) in [
        (Signal::TERM, ""),
        (Signal::INT, ""),
        (Signal::TERM, "trap '' TERM;"),
        (Signal::KILL, ""),
        (Signal::KILL, "trap '' TERM;"),
    ] {
        let sandbox = Sandbox::new();
        let data = sandbox.path().join("data").display().to_string();
        let script = wrapper(&data, first);
        let bridge = ServeProcess::bridge(&sandbox, &["--", "sh", "-c", &script]);
        assert!(bridge.address.starts_with("http://"), "{}", bridge.address);
        assert!(processes_with(&data).len() > 2);

        bridge.signal(signal);
        let (status, stderr) = bridge.wait();

        assert_no_process_with(&data);
        assert_eq!(status.success(), signal != Signal::KILL, "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_end_of_a_stdio_client_ends_the_programs() {
    let sandbox = Sandbox::new();
    let data = sandbox.path().join("data").display().to_string();
    let script = wrapper(&data, "");
    let mut command = sandbox.command(&["bridge", "--stdio", "--", "sh", "-c", &script]);
    let mut stdio = StdioServer::start(&mut command);
    stdio.call("checkpoint_list", &json!({ "project_path": "/p" }));

    stdio.close_input();

    assert_no_process_with(&data);
}

#[test]
fn invalid_arguments_are_explained() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["bridge"]), @r"
    --- stderr
    error: missing argument TARGET

    hint: see `turnbuckle bridge --help`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["bridge", "a", "--", "b"]), @r"
    --- stderr
    error: unexpected argument `a`: a command after `--` is the only server

    hint: see `turnbuckle bridge --help`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["bridge", "weather"]), @r"
    --- stderr
    error: no server `weather` is configured

    hint: list configured servers with `turnbuckle servers`, or start a program with `-- PROGRAM`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["bridge", "--all"]), @r"
    --- stderr
    error: no configured server can be used

    hint: list configured servers with `turnbuckle servers`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["bridge", "SOCKET", "SOCKET", "--token", "t"]), @r"
    --- stderr
    error: --header and --token would be sent to every server

    hint: put headers into the configuration of the server, or use `turnbuckle login`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["bridge", "SOCKET", "--listen", "0.0.0.0:0"]), @r"
    --- stderr
    error: 0.0.0.0:0 can be reached from other machines, and callers are not authenticated

    hint: use --auth-issuer or --token-file; or listen on 127.0.0.1 and forward the port with ssh; --dangerously-allow-unauthenticated listens anyway
    --- exit 2
    ");
}

#[test]
fn the_only_server_has_to_be_reachable() {
    let sandbox = Sandbox::new();

    let failed = sandbox.run(&["bridge", "unix:/nowhere.sock"]);

    // The first line is of the log, with the time and the reason.
    let (_, rest) = failed
        .split_once("No such file or directory (os error 2)\n")
        .unwrap();
    insta::assert_snapshot!(rest, @r"
    error: server `nowhere` cannot be reached: not found

    hint: `turnbuckle info unix:/nowhere.sock` shows the reason
    --- exit 2
    ");
}
