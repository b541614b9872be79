//! Credentials of `turnbuckle bridge` for the servers behind it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};

use crate::{
    auth_server::AuthServer,
    fake_http::{FakeHttp, FakeResponse},
    issuer::Issuer,
    sandbox::Sandbox,
    serve_process::{ServeProcess, get},
};

/// The resource that tokens of the issuer are for.
const AUDIENCE: &str = "https://bridge.example/mcp";

/// The file of the user, below the home directory.
const FILE: &str = ".config/turnbuckle/bridge.toml";

/// Writes a file that only the user can read.
fn write_secret(sandbox: &Sandbox, file: &str, text: &str) {
    sandbox.write(file, text);
    let file = sandbox.path().join(file);
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn section(url: &str, auth: &str) -> String {
    format!("[servers.weather]\nurl = \"{url}\"\nauth = {{ {auth} }}\n")
}

#[test]
fn client_credentials_are_exchanged_for_a_token() {
    let sandbox = Sandbox::new();
    let server = AuthServer::new(&sandbox);
    write_secret(&sandbox, "secret", "sesame\n");
    let auth = "kind = \"client-credentials\", client-id = \"me\", client-secret-file = \"~/secret\", scope = \"weather:read\"";
    sandbox.write(FILE, &section(&server.url(), auth));
    let bridge = ServeProcess::bridge(&sandbox, &[]);

    let result = bridge.call(&sandbox, &["forecast", "city=Oslo"]);
    assert_eq!(result["high"], 21.5);

    assert_eq!(server.count("POST /token client_credentials"), 1);
    assert_eq!(server.state().client_credentials, ["Basic bWU6c2VzYW1l"]);
    bridge.stop();
}

#[test]
fn a_token_file_is_read_again_when_it_changes() {
    let sandbox = Sandbox::new();
    let server = FakeHttp::start(|request| {
        if request.header("authorization") != Some("Bearer second") {
            return match request.header("authorization") {
                Some("Bearer first") if request.rpc() != "tools/call" => answer(request),
                _ => FakeResponse::Status(401),
            };
        }
        answer(request)
    });
    write_secret(&sandbox, "token", "first\n");
    let auth = "kind = \"token-file\", file = \"~/token\"";
    sandbox.write(FILE, &section(&server.url, auth));
    let bridge = ServeProcess::bridge(&sandbox, &[]);

    let refused = sandbox.run(&["call", &bridge.address, "x"]);
    assert!(refused.contains("requires a login"), "{refused}");
    assert!(!refused.contains("first"), "{refused}");
    write_secret(&sandbox, "token", "second, but not a token\n");
    write_secret(&sandbox, "token", "second\n");
    let called = sandbox.run(&["call", &bridge.address, "x"]);

    assert!(called.contains("done"), "{called}\n{:?}", server.seen());
    bridge.stop();
}

#[test]
fn callers_need_the_scopes_of_the_file_and_stay_below_its_rate() {
    let sandbox = Sandbox::new();
    let server = FakeHttp::start(answer);
    write_secret(
        &sandbox,
        "tokens",
        "reader-token-of-the-test-sandbox reader read\nwriter-token-of-the-test-sandbox writer write\n",
    );
    let text = "scopes = { \"x\" = \"write\" }\n[policy]\nrate = { calls = 5, per = \"1h\" }\n";
    let text = format!("[servers.weather]\nurl = \"{}\"\n{text}", server.url);
    sandbox.write(FILE, &text);
    let unauthenticated = sandbox.run(&["bridge", "--listen", "127.0.0.1:0"]);
    assert!(unauthenticated.contains("--- exit 2"), "{unauthenticated}");
    let bridge = ServeProcess::bridge(&sandbox, &["--token-file", "tokens"]);
    let call = |token: &str| sandbox.run(&["call", &bridge.address, "x", "--token", token]);

    let refused = call("reader-token-of-the-test-sandbox");
    assert!(!refused.contains("done"), "{refused}");
    let called = call("writer-token-of-the-test-sandbox");
    assert!(called.contains("done"), "{called}");
    let mut last = String::new();
    for _ in 0..6 {
        last = call("writer-token-of-the-test-sandbox");
    }
    assert!(!last.contains("done"), "{last}");
    bridge.stop();
}

/// Responds as a legacy server with one tool.
fn answer(request: &crate::fake_http::RecordedRequest) -> FakeResponse {
    match request.rpc() {
        "initialize" => request.result(&json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "weather", "version": "1" },
        })),
        "tools/list" => request.result(&json!({
            "tools": [{ "name": "x", "inputSchema": { "type": "object" } }],
        })),
        "tools/call" => request.result(&json!({ "content": [{ "type": "text", "text": "done" }] })),
        _ => FakeResponse::Status(202),
    }
}

#[test]
fn headers_of_the_caller_never_reach_a_server() {
    let sandbox = Sandbox::new();
    let server = FakeHttp::start(answer);
    let bridge = ServeProcess::bridge(&sandbox, &[&server.url]);

    let words = [
        "call",
        &bridge.address,
        "x",
        "--token",
        "sesame",
        "--header",
        "Cookie: a=sesame",
    ];
    let called = sandbox.run(&[&words[..], &["--header", "X-Tenant: sesame"]].concat());

    assert!(called.contains("done"), "{called}");
    let seen = format!("{:?}", server.seen());
    assert!(
        seen.contains("tools/call") && !seen.contains("sesame"),
        "{seen}"
    );
    bridge.stop();
}

#[test]
fn listed_headers_of_the_caller_reach_the_server() {
    let sandbox = Sandbox::new();
    let server = FakeHttp::start(answer);
    let text = format!(
        "[servers.weather]\nurl = \"{}\"\nforward-headers = [\"X-Tenant\"]\n",
        server.url
    );
    sandbox.write(FILE, &text);
    let bridge = ServeProcess::bridge(&sandbox, &[]);

    let words = ["call", &bridge.address, "x", "--header", "X-Tenant: blue"];
    let called = sandbox.run(&[&words[..], &["--header", "X-Other: sesame"]].concat());

    assert!(called.contains("done"), "{called}");
    let seen = server.seen();
    let call = seen.iter().find(|request| request.rpc() == "tools/call");
    let call = call.unwrap();
    assert_eq!(call.header("x-tenant"), Some("blue"));
    assert_eq!(call.header("x-other"), None);
    bridge.stop();
}

#[test]
fn a_server_that_requires_a_login_is_named_with_the_command() {
    let sandbox = Sandbox::new();
    let rejects = Arc::new(AtomicBool::new(false));
    let is_rejected = Arc::clone(&rejects);
    let server = FakeHttp::start(move |request| {
        if is_rejected.load(Ordering::SeqCst) && request.rpc() == "tools/call" {
            return FakeResponse::Status(401);
        }
        answer(request)
    });
    let servers = json!({ "mcpServers": { "weather": { "url": server.url } } });
    sandbox.write(".cursor/mcp.json", &servers.to_string());
    for era in ["modern", "legacy"] {
        rejects.store(false, Ordering::SeqCst);
        let bridge = ServeProcess::bridge(&sandbox, &["weather", "--yes"]);
        rejects.store(true, Ordering::SeqCst);

        let words = ["call", &bridge.address, "x", "--json", "--era", era];
        // The number of the port may have a 401.
        let called = sandbox.run(&words).replace(&bridge.address, "BRIDGE");

        assert!(called.contains("\"isError\": true"), "{called}");
        assert!(called.contains("turnbuckle login weather"), "{called}");
        assert!(
            !called.contains("401") && !called.contains(&server.url),
            "{called}"
        );
        bridge.stop();
    }
}

#[test]
fn tokens_of_an_issuer_are_verified_and_their_scopes_required() {
    let sandbox = Sandbox::new();
    let issuer = Issuer::start();
    sandbox.write(FILE, "[servers.s]\nscopes = { \"picture\" = \"sky\" }\n");
    let words = ["SOCKET", "--json", "--auth-issuer", &issuer.url];
    let words = [
        &words[..],
        &["--audience", AUDIENCE, "--require-scope", "weather"],
    ]
    .concat();
    let mut bridge = ServeProcess::bridge(&sandbox, &words);
    let started: Value = serde_json::from_str(&bridge.address).unwrap();
    assert_eq!(started["url"], AUDIENCE);
    let health = started["health"].as_str().unwrap();
    bridge.address = health.replace("/healthz", "/mcp");
    let call = |tool: &[&str], audience: &str, scope: &str| {
        let token = issuer.token_with_scope("ada", audience, scope);
        let words = ["call", &bridge.address, "--token", &token];
        sandbox.run(&[&words[..], tool].concat())
    };
    let forecast = ["forecast", "city=Oslo"];

    let called = call(&forecast, AUDIENCE, "weather");
    assert!(called.contains("Sun over Oslo"), "{called}");
    let elsewhere = call(&forecast, "https://elsewhere.example/mcp", "weather");
    assert!(elsewhere.contains("401"), "{elsewhere}");
    let without_scope = call(&forecast, AUDIENCE, "other");
    assert!(without_scope.contains("403"), "{without_scope}");
    let refused = call(&["picture"], AUDIENCE, "weather");
    assert!(refused.contains("--- exit 2"), "{refused}");
    let allowed = call(&["picture"], AUDIENCE, "weather sky");
    assert!(!allowed.contains("--- exit"), "{allowed}");

    let metadata = "/.well-known/oauth-protected-resource/mcp";
    let metadata = get(&bridge.address.replace("/mcp", metadata));
    assert!(metadata.contains(&issuer.url), "{metadata}");
    bridge.stop();
}

#[test]
fn callers_share_a_connection_by_principal() {
    let sandbox = Sandbox::new();
    let (ada, bo) = (
        "ada-token-of-the-test-sandbox",
        "bo-token-of-the-test-sandbox",
    );
    write_secret(&sandbox, "tokens", &format!("{ada} ada\n{bo} bo\n"));
    let sessions_for = |share: &str| {
        let server = FakeHttp::start(answer);
        let words = [&server.url, "--share", share, "--token-file", "tokens"];
        let bridge = ServeProcess::bridge(&sandbox, &words);
        let count = || {
            let seen = server.seen();
            let sessions = seen.iter().filter(|request| request.rpc() == "initialize");
            sessions.count()
        };
        let at_start = count();
        let mut opened = Vec::new();
        for token in [ada, ada, bo] {
            let words = ["call", &bridge.address, "x", "--token", token];
            let called = sandbox.run(&[&words[..], &["--era", "legacy"]].concat());
            assert!(called.contains("done"), "{called}");
            opened.push(count() - at_start);
        }
        bridge.stop();
        opened
    };

    assert_eq!(sessions_for("principal"), [1, 1, 2]);
    assert_eq!(sessions_for("session"), [1, 2, 3]);
}

/// Credentials of a client, with a secret that tests find again: `me:sesame`.
const CLIENT: &str =
    "kind = \"client-credentials\", client-id = \"me\", client-secret-file = \"~/secret\"";

/// Returns the request texts that have the secret or the token of the tests.
fn with_secrets(server: &FakeHttp) -> Vec<String> {
    let seen = server
        .seen()
        .into_iter()
        .map(|request| format!("{request:?}"));
    let has_secret = |text: &String| text.contains("sesame") || text.contains("bWU6c2VzYW1l");
    seen.filter(has_secret).collect()
}

#[test]
fn a_redirect_to_another_origin_gets_no_credentials() {
    let sandbox = Sandbox::new();
    let elsewhere = FakeHttp::start(answer);
    let location = elsewhere.url.clone();
    let server =
        FakeHttp::start(move |_| FakeResponse::StatusWith(307, "location", location.clone()));
    write_secret(&sandbox, "token", "sesame\n");
    let auth = "kind = \"token-file\", file = \"~/token\"";
    sandbox.write(FILE, &section(&server.url, auth));

    let failed = sandbox.run(&["bridge", "--listen", "127.0.0.1:0"]);

    assert!(failed.contains("--- exit 2"), "{failed}");
    assert!(!with_secrets(&server).is_empty(), "{:?}", server.seen());
    assert!(
        with_secrets(&elsewhere).is_empty(),
        "{:?}",
        elsewhere.seen()
    );
}

#[test]
fn a_challenge_for_another_resource_gets_no_credentials() {
    let sandbox = Sandbox::new();
    // The metadata of another origin names a resource there, and an authorization server that asks for the secret.
    let elsewhere = FakeHttp::start(|request| {
        let origin = format!("http://{}", request.header("host").unwrap_or_default());
        FakeResponse::Json(
            json!({
                "resource": format!("{origin}/mcp"),
                "authorization_servers": [origin],
                "issuer": origin,
                "token_endpoint": format!("{origin}/token"),
                "access_token": "stolen", "token_type": "Bearer",
            }),
            None,
        )
    });
    let origin = elsewhere.url.strip_suffix("/mcp").unwrap();
    let place = format!("{origin}/.well-known/oauth-protected-resource/mcp");
    let server = FakeHttp::start(move |_| {
        let challenge = format!("Bearer resource_metadata=\"{place}\"");
        FakeResponse::StatusWith(401, "www-authenticate", challenge)
    });
    write_secret(&sandbox, "secret", "sesame\n");
    sandbox.write(FILE, &section(&server.url, CLIENT));

    let failed = sandbox.run(&["bridge", "--listen", "127.0.0.1:0"]);

    assert!(failed.contains("--- exit 2"), "{failed}");
    assert!(!server.seen().is_empty());
    for fake in [&server, &elsewhere] {
        assert!(with_secrets(fake).is_empty(), "{:?}", fake.seen());
    }
}

#[test]
fn a_changed_rate_is_used_after_a_reload() {
    let sandbox = Sandbox::new();
    let server = FakeHttp::start(answer);
    let text = |rate: &str| format!("[servers.weather]\nurl = \"{}\"\n{rate}", server.url);
    let limited = text("[policy]\nrate = { calls = 1, per = \"1h\" }\n");
    sandbox.write(FILE, &limited);
    let bridge = ServeProcess::bridge(&sandbox, &[]);
    let call = || sandbox.run(&["call", &bridge.address, "x"]);

    assert!(call().contains("done"));
    let refused = call();
    assert!(refused.contains("too many calls"), "{refused}");
    sandbox.write(FILE, &text(""));
    bridge.signal(rustix::process::Signal::HUP);
    bridge.wait_for_stderr("policy: changed rate");
    for _ in 0..3 {
        let called = call();
        assert!(called.contains("done"), "{called}");
    }

    let stderr = bridge.stop();
    assert!(!stderr.contains("servers: changed"), "{stderr}");
}

fn exchange(issuer: &Issuer) -> String {
    format!(
        "kind = \"exchange\", issuer = \"{}\", client-id = \"me\", client-secret-file = \"~/secret\", audience = \"weather\", scope = \"read\"",
        issuer.url
    )
}

#[test]
fn tokens_of_callers_are_exchanged_and_reach_neither_the_server_nor_the_log() {
    let sandbox = Sandbox::new();
    let (issuer, server) = (Issuer::start(), FakeHttp::start(answer));
    write_secret(&sandbox, "secret", "sesame\n");
    sandbox.write(FILE, &section(&server.url, &exchange(&issuer)));
    let words = ["--auth-issuer", &issuer.url, "--audience", AUDIENCE];
    let bridge = ServeProcess::bridge(&sandbox, &[&words[..], &["--json", "--verbose"]].concat());
    let started: Value = serde_json::from_str(&bridge.address).unwrap();
    let health = started["health"].as_str().unwrap();
    let url = health.replace("/healthz", "/mcp");
    let tokens = ["ada", "bo", "eve"].map(|name| issuer.token(name, AUDIENCE));
    let call = |token: &str| sandbox.run(&["call", &url, "x", "--token", token]);

    for token in [&tokens[0], &tokens[0], &tokens[1]] {
        let called = call(token);
        assert!(called.contains("done"), "{called}");
    }
    let refused = call(&tokens[2]);
    let reason =
        "requires a login; the bridge got no token for this caller; its log has the reason";
    assert!(refused.contains(reason), "{refused}");

    let exchanges = issuer.exchanges();
    assert_eq!(exchanges.len(), 3, "{exchanges:?}");
    for (form, token) in exchanges.iter().zip(&tokens) {
        let subject = format!("&subject_token={token}&");
        let resource = server.url.replace(':', "%3A").replace('/', "%2F");
        let resource = format!("&resource={resource}&audience=weather&scope=read&");
        assert!(
            form.contains(&subject) && form.contains(&resource),
            "{form}"
        );
    }
    let seen = server.seen();
    let calls = seen.iter().filter(|request| request.rpc() == "tools/call");
    let used: Vec<_> = calls.map(|call| call.header("authorization")).collect();
    let expected = ["Bearer issued-1", "Bearer issued-1", "Bearer issued-2"].map(Some);
    assert_eq!(used, expected);
    let log = bridge.stop();
    assert!(
        log.contains("does not accept the token of the caller"),
        "{log}"
    );
    let printed = format!("{log}{refused}");
    for (text, secrets) in [
        (&format!("{seen:?}"), &tokens[..]),
        (&printed, &tokens[..]),
        (&printed, &["issued-".to_owned(), "sesame".to_owned()]),
    ] {
        for secret in secrets {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[test]
fn exchange_needs_an_issuer_private_files_and_separate_connections() {
    let sandbox = Sandbox::new();
    let issuer = Issuer::start();
    sandbox.write("secret", "sesame\n");
    let secret = sandbox.path().join("secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let text = section("http://127.0.0.1:9/mcp", &exchange(&issuer));
    sandbox.write(FILE, &text);
    let with_issuer = ["--auth-issuer", &issuer.url, "--audience", AUDIENCE];
    let run = |words: &[&str]| {
        let words = [&["bridge", "--listen", "127.0.0.1:0"], words].concat();
        let failed = sandbox.run(&words);
        assert!(failed.contains("bridge.toml:1:10: "), "{failed}");
        assert!(failed.contains("--- exit 2"), "{failed}");
        failed
    };

    let failed = run(&with_issuer);
    assert!(failed.contains("other users can read"), "{failed}");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let failed = run(&[]);
    assert!(failed.contains("--auth-issuer"), "{failed}");
    write_secret(&sandbox, "tokens", "token-of-the-test-sandbox ada\n");
    let failed = run(&["--token-file", "tokens"]);
    assert!(failed.contains("--auth-issuer"), "{failed}");
    let failed = run(&[&with_issuer[..], &["--share", "all"]].concat());
    assert!(failed.contains("cannot share a connection"), "{failed}");
}
