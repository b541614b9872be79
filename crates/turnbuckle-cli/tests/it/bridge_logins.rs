//! Logins of callers of `turnbuckle bridge` with accounts of their own at a server.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
};

use serde_json::Value;

use crate::{
    auth_server::AuthServer, issuer::Issuer, sandbox::Sandbox, serve_process::ServeProcess,
};

/// The resource that tokens of callers are for.
const AUDIENCE: &str = "https://bridge.example/mcp";
/// The origin of the pages.
const FRONT: &str = "https://bridge.example";

const FILE: &str = ".config/turnbuckle/bridge.toml";

fn config(url: &str, more: &str) -> String {
    format!("[servers.weather]\nurl = \"{url}\"\nauth = {{ kind = \"per-user\" }}\n{more}")
}

/// A browser with one cookie.
struct Browser {
    cookie: String,
}

impl Browser {
    /// Requests a page at an address, and returns the response.
    fn get(&mut self, address: &str, host: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let cookie = &self.cookie;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        if let Some(cookie) = header(&response, "set-cookie") {
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        response
    }

    /// Requests a page of the bridge that listens at an address.
    fn visit(&mut self, address: &str, url: &str) -> String {
        let local = format!("http://{address}");
        let (host, path) = match url.strip_prefix(FRONT) {
            Some(path) => ("bridge.example", path),
            None => (address, url.strip_prefix(&*local).unwrap()),
        };
        self.get(address, host, path)
    }

    /// Follows the redirection to the authorization server of the weather server, which sends the browser back at once.
    fn log_in(&mut self, server: &AuthServer, location: &str) -> String {
        let path = location.strip_prefix(&server.origin).unwrap();
        let address = server.origin.strip_prefix("http://").unwrap();
        let back = self.get(address, address, path);
        header(&back, "location").unwrap()
    }
}

fn header(response: &str, name: &str) -> Option<String> {
    let (head, _) = response.split_once("\r\n\r\n").unwrap();
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut found = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.to_owned())
}

fn parameter(url: &str, name: &str) -> String {
    let (_, query) = url.split_once('?').unwrap();
    let mut pairs = turnbuckle_text::percent::form_pairs(query);
    pairs.find(|(own, _)| own == name).unwrap().1
}

/// Calls the tool for logins like a client without URL elicitation, and returns the response.
fn call_login_tool(address: &str, token: &str) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"turnbuckle_log_in","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: turnbuckle_log_in\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    response
}

/// Returns the link in an error for a model.
fn link(printed: &str) -> &str {
    let start = printed
        .find("has to open ")
        .unwrap_or_else(|| panic!("{printed}"));
    let rest = &printed[start + "has to open ".len()..];
    rest.split(' ').next().unwrap()
}

#[test]
fn a_caller_logs_in_at_its_issuer_and_then_at_the_server() {
    let sandbox = Sandbox::new();
    let (issuer, server) = (Issuer::start(), AuthServer::new(&sandbox));
    let more = "[connect]\nclient-id = \"bridge\"\n";
    sandbox.write(FILE, &config(&server.url(), more));
    let words = ["--auth-issuer", &issuer.url, "--audience", AUDIENCE];
    let words = [&words[..], &["--json", "--verbose"]].concat();
    let bridge = ServeProcess::bridge(&sandbox, &words);
    let started: Value = serde_json::from_str(&bridge.address).unwrap();
    let health = started["health"].as_str().unwrap();
    let url = health.replace("/healthz", "/mcp");
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let tokens = ["ada", "bo"].map(|name| issuer.token(name, AUDIENCE));
    let call =
        |token: &str| sandbox.run(&["call", &url, "forecast", "city=Oslo", "--token", token]);

    // Another user opens the link.
    let log_in = |token: &str| call_login_tool(address, token);
    let refused = log_in(&tokens[0]);
    let first_link = link(&refused).to_owned();
    assert!(
        first_link.starts_with("https://bridge.example/connect/"),
        "{refused}"
    );
    let mut browser = Browser {
        cookie: String::new(),
    };
    let back = |opened: &str, code: &str| {
        let location = header(opened, "location").unwrap();
        assert!(
            location.starts_with(&format!("{}/authorize?", issuer.url)),
            "{location}"
        );
        let (uri, state) = (
            parameter(&location, "redirect_uri"),
            parameter(&location, "state"),
        );
        format!("{uri}?code={code}&state={state}")
    };
    let opened = browser.visit(address, &first_link);
    let other_user = browser.visit(address, &back(&opened, "bo"));
    assert!(other_user.starts_with("HTTP/1.1 403"), "{other_user}");
    assert!(
        browser
            .visit(address, &first_link)
            .starts_with("HTTP/1.1 404")
    );
    assert_eq!(server.count("GET /authorize"), 0);

    // The user opens another one.
    let refused = log_in(&tokens[0]);
    assert_ne!(link(&refused), first_link);
    let opened = browser.visit(address, link(&refused));
    let identified = browser.visit(address, &back(&opened, "ada"));
    let returned = browser.log_in(&server, &header(&identified, "location").unwrap());
    let done = browser.visit(address, &returned);
    assert!(done.contains("You are logged in to `weather`."), "{done}");
    let called = call(&tokens[0]);
    assert!(called.contains("21.5"), "{called}");
    // Other users need logins of their own.
    assert!(link(&log_in(&tokens[1])).starts_with("https://bridge.example/connect/"));

    let log = bridge.stop();
    for text in [&log, &called, &done] {
        let secrets = [&tokens[0], &tokens[1], "sesame-access", "sesame-refresh"];
        assert!(
            !secrets.into_iter().any(|secret| text.contains(secret)),
            "{text}"
        );
    }

    // The login is in the store.
    let bridge = ServeProcess::bridge(&sandbox, &words);
    let started: Value = serde_json::from_str(&bridge.address).unwrap();
    let url = started["health"]
        .as_str()
        .unwrap()
        .replace("/healthz", "/mcp");
    let call =
        |token: &str| sandbox.run(&["call", &url, "forecast", "city=Oslo", "--token", token]);
    let called = call(&tokens[0]);
    assert!(called.contains("21.5"), "{called}");
    assert!(call(&tokens[1]).contains("unknown tool `forecast`"));
    bridge.stop();
}

#[test]
fn the_user_of_a_loopback_bridge_logs_in_at_the_server() {
    let sandbox = Sandbox::new();
    let server = AuthServer::new(&sandbox);
    sandbox.write(FILE, &config(&server.url(), ""));
    let bridge = ServeProcess::bridge(&sandbox, &[]);
    let address = bridge
        .address
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let call = || sandbox.run(&["call", &bridge.address, "forecast", "city=Oslo"]);

    let log_in = || call_login_tool(address, "none");
    let refused = log_in();
    let mut browser = Browser {
        cookie: String::new(),
    };
    let opened = browser.visit(address, link(&refused));
    let returned = browser.log_in(&server, &header(&opened, "location").unwrap());
    let other = Browser {
        cookie: String::new(),
    }
    .visit(address, &returned);
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");

    let opened = browser.visit(address, link(&log_in()));
    let returned = browser.log_in(&server, &header(&opened, "location").unwrap());
    let done = browser.visit(address, &returned);
    assert!(done.contains("You are logged in to `weather`."), "{done}");
    let called = call();
    assert!(called.contains("21.5"), "{called}");
    bridge.stop();
}

#[test]
fn per_user_logins_need_an_identified_user_and_separate_connections() {
    let sandbox = Sandbox::new();
    let issuer = Issuer::start();
    sandbox.write(FILE, &config("http://127.0.0.1:9/mcp", ""));
    sandbox.write("tokens", "token-of-the-test-sandbox ada\n");
    let with_issuer = ["--auth-issuer", &issuer.url, "--audience", AUDIENCE];
    let run = |listen: &str, words: &[&str]| {
        let words = [&["bridge", "--listen", listen], words].concat();
        let failed = sandbox.run(&words);
        assert!(failed.contains("bridge.toml:1:10: "), "{failed}");
        assert!(failed.contains("--- exit 2"), "{failed}");
        failed
    };

    let failed = run("127.0.0.1:0", &with_issuer);
    assert!(failed.contains("[connect] client-id"), "{failed}");
    let failed = run("unix:socket", &[]);
    assert!(failed.contains("needs a bridge on HTTP"), "{failed}");
    let failed = run("0.0.0.0:0", &["--dangerously-allow-unauthenticated"]);
    assert!(failed.contains("loopback"), "{failed}");
    let failed = run("127.0.0.1:0", &["--allow-host", "bridge.example"]);
    assert!(failed.contains("--allow-host"), "{failed}");
    let failed = run("127.0.0.1:0", &["--share", "all"]);
    assert!(failed.contains("cannot share a connection"), "{failed}");
    let tokens = sandbox.path().join("tokens");
    fs::set_permissions(tokens, fs::Permissions::from_mode(0o600)).unwrap();
    let failed = run("127.0.0.1:0", &["--token-file", "tokens"]);
    assert!(failed.contains("--auth-issuer"), "{failed}");
    let more = "[connect]\nclient-id = \"bridge\"\n";
    sandbox.write(FILE, &config("http://127.0.0.1:9/mcp", more));
    for audience in ["http://bridge.lan:8322/mcp", "bridge"] {
        let words = ["--auth-issuer", &issuer.url, "--audience", audience];
        let failed = run("127.0.0.1:0", &words);
        assert!(failed.contains("--audience with https"), "{failed}");
    }
}
