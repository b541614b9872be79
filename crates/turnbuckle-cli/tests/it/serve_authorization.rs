//! Tests of `turnbuckle serve` with authentication.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
};

use serde_json::Value;

use crate::{
    issuer::Issuer,
    sandbox::Sandbox,
    serve_process::{ServeProcess, get},
};

const ADA: &str = "0123456789abcdef-ada";
const BO: &str = "0123456789abcdef-bo";

fn with_tokens() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        "tokens",
        &format!("# two people\n{ADA} ada memory\n{BO} bo\n"),
    );
    let file = sandbox.path().join("tokens");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    sandbox
}

fn with_token(token: &str, words: &[&str]) -> Vec<String> {
    let header = format!("Authorization: Bearer {token}");
    let words = words.iter().map(|word| (*word).to_owned());
    words.chain(["--header".to_owned(), header]).collect()
}

fn call(server: &ServeProcess, sandbox: &Sandbox, token: &str, words: &[&str]) -> Value {
    let words = with_token(token, words);
    server.call(sandbox, &Vec::from_iter(words.iter().map(String::as_str)))
}

#[test]
fn callers_with_different_tokens_have_separate_data() {
    let sandbox = with_tokens();
    let path = sandbox.path().to_str().unwrap().to_owned();
    let project = format!("project_path={path}");
    let words = [
        "--listen",
        "127.0.0.1:0",
        "--token-file",
        "tokens",
        "--root",
        ".",
    ];
    let server = ServeProcess::start(&sandbox, &words);

    let saved = call(
        &server,
        &sandbox,
        ADA,
        &["checkpoint_save", "content=Ada's secret plan", &project],
    );
    let id = saved["checkpoint_id"].as_str().unwrap();
    let uri = format!("checkpoint://{id}");
    let read = |token: &str, uri: &str| {
        let words = with_token(token, &["read", &server.address, uri]);
        sandbox.run(&Vec::from_iter(words.iter().map(String::as_str)))
    };

    assert!(read(ADA, &uri).contains("secret plan"));
    let nothing = "ckpt_0000000000000000";
    let unknown = read(BO, &format!("checkpoint://{nothing}"));
    assert_eq!(read(BO, &uri).replace(id, ""), unknown.replace(nothing, ""));
    let list = |token| call(&server, &sandbox, token, &["checkpoint_list", &project]);
    assert_eq!(list(ADA)["checkpoints"].as_array().unwrap().len(), 1);
    assert_eq!(list(BO)["checkpoints"].as_array().unwrap().len(), 0);
    let query = |token| {
        let words = ["checkpoint_search", "query=secret plan", &project];
        call(&server, &sandbox, token, &words)
    };
    assert_eq!(query(BO)["checkpoints"].as_array().unwrap().len(), 0);
    let stderr = server.stop();
    assert!(
        stderr.contains("Bearer TOKEN") && !stderr.contains(ADA),
        "{stderr}"
    );
}

#[test]
fn with_tokens_the_addresses_and_names_of_this_machine_are_allowed() {
    let sandbox = with_tokens();
    let words = ["--listen", "0.0.0.0:0", "--token-file", "tokens", "--json"];
    let server = ServeProcess::start(&sandbox, &words);
    let started: Value = serde_json::from_str(&server.address).unwrap();
    let urls = [&started["url"]]
        .into_iter()
        .chain(started["other-urls"].as_array().into_iter().flatten());
    let urls: Vec<_> = urls.map(|url| url.as_str().unwrap()).collect();
    let port = urls[0].rsplit(':').next().unwrap();
    let port = port.strip_suffix("/mcp").unwrap();
    for url in urls {
        assert!(!url.contains("0.0.0.0"), "{url}");
        let host = url.strip_prefix("http://").unwrap();
        let host = host.strip_suffix("/mcp").unwrap();
        // The name may not resolve here, so the connection goes to a known address.
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(
            stream,
            "GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).unwrap();
        // The token is missing, and the host is allowed.
        assert!(status.starts_with("HTTP/1.1 401"), "{url}: {status}");
    }
}

#[test]
fn requests_without_a_valid_token_are_rejected() {
    let sandbox = with_tokens();
    let words = ["--listen", "127.0.0.1:0", "--token-file", "tokens"];
    let server = ServeProcess::start(&sandbox, &words);

    for header in ["X-Nothing: 1", "Authorization: Bearer 0123456789abcdef-eve"] {
        let seen = sandbox.run(&["tools", &server.address, "--header", header]);
        assert!(seen.contains("401") && seen.contains("--- exit"), "{seen}");
    }
    let health = server.address.replace("/mcp", "/healthz");
    assert!(get(&health).starts_with("HTTP/1.1 200"));
    let stderr = server.stop();
    assert!(
        stderr.contains("Callers cannot use any project directory"),
        "{stderr}"
    );
}

#[test]
fn a_scope_can_be_required_of_every_caller() {
    let sandbox = with_tokens();
    sandbox.write(
        "serve.toml",
        "listen = \"127.0.0.1:0\"\n[authorization]\ntoken-file = \"tokens\"\nrequire-scopes = [\"memory\"]\n",
    );
    let server = ServeProcess::start(&sandbox, &["--config", "serve.toml"]);

    let tools = |token| {
        let words = with_token(token, &["tools", &server.address]);
        sandbox.run(&Vec::from_iter(words.iter().map(String::as_str)))
    };
    assert!(tools(ADA).contains("checkpoint_save"), "{}", tools(ADA));
    assert!(tools(BO).contains("403"), "{}", tools(BO));
}

#[test]
fn a_token_file_that_others_can_read_is_rejected() {
    let sandbox = with_tokens();
    let file = sandbox.path().join("tokens");
    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).unwrap();

    let seen = sandbox.run(&["serve", "--listen", "127.0.0.1:0", "--token-file", "tokens"]);

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: other users can read the tokens in ~/tokens

    hint: run `chmod 600 ~/tokens`
    --- exit 2
    ");
}

#[test]
fn contradictory_options_are_reported() {
    let sandbox = with_tokens();

    let alone = sandbox.run(&["serve", "--auth-issuer", "https://auth.example"]);
    insta::assert_snapshot!(alone, @r"
    --- stderr
    error: --auth-issuer needs --audience: the issuer may also issue tokens for other servers

    hint: for example --audience https://memory.example.com/mcp, the URL that clients use
    --- exit 2
    ");
    let without_tokens = sandbox.run(&["serve", "--audience", "https://memory.example/mcp"]);
    insta::assert_snapshot!(without_tokens, @r"
    --- stderr
    error: no token would be accepted

    hint: use --auth-issuer URL or --token-file FILE
    --- exit 2
    ");
    let socket = sandbox.run(&["serve", "--listen", "unix:s", "--token-file", "tokens"]);
    insta::assert_snapshot!(socket, @r"
    --- stderr
    error: a Unix socket does not use tokens: only you can connect to it

    hint: use --listen 127.0.0.1:8321 for HTTP
    --- exit 2
    ");
    let stdio = sandbox.run(&["serve", "--stdio", "--token-file", "tokens"]);
    assert!(stdio.contains("cannot be used with"), "{stdio}");
}

#[test]
fn tokens_of_an_issuer_are_verified_with_its_keys() {
    let sandbox = Sandbox::new();
    let issuer = Issuer::start();
    let words = [
        "--listen",
        "127.0.0.1:0",
        "--auth-issuer",
        &issuer.url,
        "--audience",
        "https://memory.example/mcp",
        "--root",
        ".",
        "--json",
    ];
    let mut server = ServeProcess::start(&sandbox, &words);
    let started: Value = serde_json::from_str(&server.address).unwrap();
    assert_eq!(started["url"], "https://memory.example/mcp");
    server.address = started["health"]
        .as_str()
        .unwrap()
        .replace("/healthz", "/mcp");
    let project = format!("project_path={}", sandbox.path().display());
    let save = ["checkpoint_save", "content=a plan", &project];
    let list = ["checkpoint_list", &project];

    let ada = issuer.token("ada", "https://memory.example/mcp");
    let bo = issuer.token("bo", "https://memory.example/mcp");
    call(&server, &sandbox, &ada, &save);
    assert_eq!(
        call(&server, &sandbox, &ada, &list)["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        call(&server, &sandbox, &bo, &list)["checkpoints"]
            .as_array()
            .unwrap()
            .len(),
        0
    );

    let elsewhere = issuer.token("ada", "https://elsewhere.example/mcp");
    let words = with_token(&elsewhere, &["tools", &server.address]);
    let seen = sandbox.run(&Vec::from_iter(words.iter().map(String::as_str)));
    assert!(seen.contains("401"), "{seen}");

    let root = server.address.replace("/mcp", "");
    let metadata = get(&format!("{root}/.well-known/oauth-protected-resource/mcp"));
    assert!(metadata.contains(&issuer.url), "{metadata}");
    let republished = get(&format!("{root}/.well-known/oauth-authorization-server"));
    assert!(republished.contains("jwks_uri"), "{republished}");
}
