//! The side of `turnbuckle bridge` that clients see: its transports, hosts, eras and names.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    auth_server::AuthServer, http::serve_http_sse, login::PendingLogin, sandbox::Sandbox,
    serve_process::ServeProcess, stdio_server::StdioServer,
};

/// A client of 2024: an event stream, and a path to post messages to.
struct SseClient {
    host: String,
    events: BufReader<TcpStream>,
    messages: String,
    last_id: u64,
}

impl SseClient {
    /// Opens the stream, and reads the path.
    fn connect(url: &str) -> Self {
        let (host, path) = url
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "GET /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n"
        )
        .unwrap();
        let mut client = Self {
            host: host.to_owned(),
            events: BufReader::new(stream),
            messages: String::new(),
            last_id: 0,
        };
        client.messages = client.event();
        client
    }

    /// Returns the data of the next event.
    fn event(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(
                self.events.read_line(&mut line).unwrap() > 0,
                "the stream has ended"
            );
            if let Some(data) = line.strip_prefix("data:") {
                return data.trim().to_owned();
            }
        }
    }

    fn post(&self, message: &Value) {
        let body = message.to_string();
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(
            stream,
            "POST {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.messages,
            self.host,
            body.len()
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 202"), "{response}");
    }

    /// Sends a request, and returns its result.
    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message: Value = serde_json::from_str(&self.event()).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }
}

/// Returns the first line of the response to a GET request for a host.
fn status_for_host(url: &str, host: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut status = String::new();
    BufReader::new(stream).read_line(&mut status).unwrap();
    status
}

/// Returns the names of the tools.
fn tool_names(sandbox: &Sandbox, address: &str) -> Vec<String> {
    let output = sandbox
        .command(&["tools", "--json", address])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", sandbox.render(&output)));
    let tools = document["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_unix_socket_serves_clients_of_both_eras_and_only_the_user() {
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge_at(&sandbox, "unix:front", &["SOCKET"]);
    let socket = sandbox.path().join("front");
    assert_eq!(bridge.address, format!("unix:{}", socket.display()));
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");

    for era in ["modern", "legacy"] {
        let result = bridge.call(&sandbox, &["forecast", "city=Oslo", "--era", era]);
        assert_eq!(result["high"], 21.5, "{era}");
    }

    bridge.stop();
    assert!(!socket.exists());
}

#[test]
fn a_client_of_2024_is_served_on_http_sse() {
    let sandbox = Sandbox::new();
    for era in ["modern", "legacy"] {
        let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--server-era", era]);
        let base = bridge.address.strip_suffix("/mcp").unwrap();
        let mut client = SseClient::connect(&format!("{base}/sse"));

        let info = json!({ "name": "old", "version": "1" });
        let initialized = client.request(
            "initialize",
            &json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info }),
        );
        client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let listed = client.request("tools/list", &json!({}));
        let called = client.request(
            "tools/call",
            &json!({ "name": "forecast", "arguments": { "city": "Oslo" } }),
        );

        assert_eq!(initialized["protocolVersion"], "2024-11-05");
        assert!(listed.to_string().contains("\"forecast\""), "{listed}");
        let text = called["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("Sun over Oslo"), "{called}");
        // 2025-06-18 added it.
        assert_eq!(called.get("structuredContent"), None, "{called}");
        bridge.stop();
    }
}

#[test]
fn a_server_on_http_sse_is_served_to_clients_of_both_eras() {
    let sandbox = Sandbox::new();
    let url = serve_http_sse(&sandbox);
    let bridge = ServeProcess::bridge(&sandbox, &[&url]);

    for era in ["modern", "legacy"] {
        let result = bridge.call(&sandbox, &["forecast", "city=Oslo", "--era", era]);
        assert_eq!(result["high"], 21.5, "{era}");
    }
    bridge.stop();
}

#[test]
fn a_login_is_completed_before_the_client_on_stdio_is_served() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);
    let url = auth_server.url();
    let mut command = sandbox.command(&["bridge", "--stdio", &url]);
    command.stdin(Stdio::piped());

    let login = PendingLogin::start(command);
    login.follow_login_page();
    let (program, _stderr) = login.into_program();
    let mut stdio = StdioServer::with_program(program);
    let result = stdio.call("forecast", &json!({ "city": "Oslo" }));

    assert_eq!(result["structuredContent"]["high"], 21.5, "{result}");
    drop(stdio);
    let mut again = StdioServer::start(&mut sandbox.command(&["bridge", "--stdio", &url]));
    let result = again.call("forecast", &json!({ "city": "Oslo" }));
    assert_eq!(result["structuredContent"]["high"], 21.5, "{result}");
    assert_eq!(auth_server.count("POST /token authorization_code"), 1);
}

#[test]
fn only_known_and_allowed_hosts_are_accepted() {
    let sandbox = Sandbox::new();
    let closed = ServeProcess::bridge(&sandbox, &["SOCKET"]);
    let open = ServeProcess::bridge(&sandbox, &["SOCKET", "--allow-host", "bridge.example"]);

    let refused = status_for_host(&closed.address, "bridge.example");
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let other = status_for_host(&open.address, "other.example");
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    // A GET stream needs a session.
    let accepted = status_for_host(&open.address, "bridge.example");
    assert!(accepted.starts_with("HTTP/1.1 400"), "{accepted}");
    closed.stop();
    open.stop();
}

#[test]
fn an_era_can_be_pinned_for_clients() {
    let sandbox = Sandbox::new();
    for (served, other) in [("legacy", "modern"), ("modern", "legacy")] {
        let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--era", served]);
        let call = |era: &str| {
            let words = ["call", &bridge.address, "forecast", "city=Oslo"];
            sandbox.run(&[&words[..], &["--era", era]].concat())
        };

        for era in [served, "auto"] {
            let called = call(era);
            assert!(called.contains("Sun over Oslo"), "{era}: {called}");
        }
        let refused = call(other);
        assert!(refused.contains("--- exit 2"), "{refused}");
        bridge.stop();
    }
}

#[test]
fn prefixes_are_put_before_names_always_or_never() {
    let sandbox = Sandbox::new();
    let always = ServeProcess::bridge(&sandbox, &["SOCKET", "--prefix", "always"]);
    let names = tool_names(&sandbox, &always.address);
    assert!(names.iter().all(|name| name.starts_with("s_")), "{names:?}");
    let result = always.call(&sandbox, &["s_forecast", "city=Oslo"]);
    assert_eq!(result["high"], 21.5);
    always.stop();

    let words = ["SOCKET", "unix:/nowhere/files.sock", "--prefix", "never"];
    let never = ServeProcess::bridge(&sandbox, &words);
    let result = never.call(&sandbox, &["forecast", "city=Oslo"]);
    assert_eq!(result["high"], 21.5);
    never.stop();
}

#[test]
fn long_names_are_cut_and_stay_the_same_after_a_restart() {
    let sandbox = Sandbox::new();
    let weather = ServeProcess::bridge(&sandbox, &["SOCKET"]);
    let servers = json!({ "mcpServers": {
        "stationery": { "url": weather.address },
        "other": { "url": weather.address },
    } });
    sandbox.write(".mcp.json", &servers.to_string());
    let start = || ServeProcess::bridge(&sandbox, &["--all", "--yes", "--max-name", "18"]);

    let bridge = start();
    let names = tool_names(&sandbox, &bridge.address);
    assert!(names.iter().all(|name| name.len() <= 18), "{names:?}");
    assert!(
        names.iter().any(|name| name == "other_forecast"),
        "{names:?}"
    );
    // `stationery_forecast` has 19 bytes, and its prefix alone leaves no room for the digest.
    let cut = names.iter().find(|name| name.starts_with("stationer_"));
    let cut = cut.unwrap_or_else(|| panic!("{names:?}"));
    let result = bridge.call(&sandbox, &[cut, "city=Oslo"]);
    assert_eq!(result["high"], 21.5);
    bridge.stop();

    let again = start();
    assert_eq!(tool_names(&sandbox, &again.address), names);
    again.stop();
    weather.stop();
}

#[test]
fn search_mode_lists_four_tools_that_find_and_call_the_others() {
    let sandbox = Sandbox::new();
    let bridge = ServeProcess::bridge(&sandbox, &["SOCKET", "--search"]);

    let mut names = tool_names(&sandbox, &bridge.address);
    names.sort();
    assert_eq!(
        names,
        [
            "call_read_only_tool",
            "call_tool",
            "describe_tool",
            "search_tools"
        ]
    );
    let found = sandbox.run(&["call", &bridge.address, "search_tools", "query=forecast"]);
    assert!(found.contains("forecast"), "{found}");
    let arguments = json!({ "name": "forecast", "arguments": { "city": "Oslo" } }).to_string();
    let words = [
        "call",
        &bridge.address,
        "call_read_only_tool",
        "--args",
        &arguments,
    ];
    let called = sandbox.run(&words);
    assert!(called.contains("Sun over Oslo"), "{called}");
    let arguments = json!({ "name": "picture", "arguments": {} }).to_string();
    let words = [
        "call",
        &bridge.address,
        "call_read_only_tool",
        "--args",
        &arguments,
    ];
    let refused = sandbox.run(&words);
    assert!(refused.contains("--- exit 1"), "{refused}");
    bridge.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn a_legacy_program_is_started_once_for_the_client_on_stdio() {
    let sandbox = Sandbox::new();
    let server = crate::bridge_processes::SERVER;
    sandbox.write("server.sh", &format!("echo started >> starts\n{server}"));
    let mut command = sandbox.command(&["bridge", "--stdio", "--", "sh", "server.sh"]);
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let mut bridge = command.stdin(stdin).stdout(stdout).spawn().unwrap();
    let mut input = bridge.stdin.take().unwrap();
    let mut output = BufReader::new(bridge.stdout.take().unwrap());
    let mut request = |id: i64, method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(
                output.read_line(&mut line).unwrap() > 0,
                "the bridge has ended"
            );
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    };

    request(
        1,
        "initialize",
        json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} },
            "clientInfo": { "name": "agent", "version": "1" },
        }),
    );
    let listed = request(2, "tools/list", json!({}));
    assert_eq!(listed["tools"][0]["name"], "ok", "{listed}");
    let called = request(3, "tools/call", json!({ "name": "ok", "arguments": {} }));
    assert_eq!(called["content"][0]["text"], "done", "{called}");

    drop(input);
    assert!(bridge.wait().unwrap().success());
    let starts = fs::read_to_string(sandbox.path().join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 1, "{starts}");
}
