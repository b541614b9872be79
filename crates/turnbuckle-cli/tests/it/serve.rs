//! Tests of `turnbuckle serve`: address, output and shutdown.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt},
        net::UnixListener,
    },
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    sandbox::Sandbox,
    serve_process::{ServeProcess, get},
};

#[test]
fn startup_prints_the_address_and_agent_instructions() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::on_free_port(&sandbox);
    let url = server.address.clone();

    let stderr = server.stop().replace(&url, "URL");
    let stderr = stderr.replace(&sandbox.path().display().to_string(), "~");

    insta::assert_snapshot!(stderr, @r#"
    turnbuckle 0.1.0 stores data in ~/.local/share/turnbuckle, listening on

    Configure your agent:
      Claude Code  claude mcp add --scope user --transport http turnbuckle 'URL?tools=core'
      Codex        codex mcp add turnbuckle --url 'URL?tools=core'
      Gemini       gemini mcp add --scope user --transport http turnbuckle 'URL?tools=core'
      .mcp.json    {"mcpServers":{"turnbuckle":{"type":"http","url":"URL?tools=core"}}}

    ?tools=core lists memory and search only; without it, all tools are listed.

    Press Ctrl-C to stop.
    shutting down; waiting for running calls (signal again to abort)
    "#);
}

#[test]
fn programs_get_one_line_of_json() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::start(
        &sandbox,
        &["--listen", "127.0.0.1:0", "--json", "--data", "d"],
    );

    let started: Value = serde_json::from_str(&server.address).unwrap();
    assert!(started["url"].as_str().unwrap().ends_with("/mcp"));
    assert_eq!(
        started["data"],
        sandbox.path().join("d").display().to_string()
    );
    let health = get(started["health"].as_str().unwrap());
    assert!(
        health.starts_with("HTTP/1.1 200") && health.ends_with("ok"),
        "{health}"
    );
    assert_eq!(
        server.stop(),
        "shutting down; waiting for running calls (signal again to abort)\n"
    );
}

#[test]
fn ctrl_c_and_sigquit_stop_the_server() {
    for signal in [Signal::INT, Signal::QUIT] {
        let sandbox = Sandbox::new();
        let server = ServeProcess::on_free_port(&sandbox);
        server.signal(signal);
        let (status, stderr) = server.wait();
        assert!(status.success(), "{signal:?} {status}: {stderr}");
    }
}

#[test]
fn a_port_in_use_is_reported_with_a_hint() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::on_free_port(&sandbox);
    let address = server.address.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();

    let seen = sandbox
        .run(&["serve", "--listen", address])
        .replace(address, "ADDRESS");

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: cannot listen on ADDRESS: Address already in use (os error 98)

    hint: it may be running already: check with `turnbuckle info http://ADDRESS/mcp`; --listen 127.0.0.1:0 uses a free port
    --- exit 2
    ");
}

#[test]
fn other_addresses_need_auth_or_an_explicit_flag() {
    let sandbox = Sandbox::new();

    let seen = sandbox.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(
        seen.contains("can be reached from other machines"),
        "{seen}"
    );
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");

    let words = [
        "--listen",
        "0.0.0.0:0",
        "--dangerously-allow-unauthenticated",
    ];
    let server = ServeProcess::start(&sandbox, &words);
    assert!(
        server.address.starts_with("http://127.0.0.1:"),
        "{}",
        server.address
    );
}

#[test]
fn another_host_is_refused_with_the_name_of_the_option() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::on_free_port(&sandbox);
    let address = server.address.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();
    let ask = |headers: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /mcp HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };

    let other_host = ask("Host: box.example\r\n");
    let other_origin = ask(&format!(
        "Host: {address}\r\nOrigin: https://box.example\r\n"
    ));

    assert!(other_host.starts_with("HTTP/1.1 403"), "{other_host}");
    assert!(
        other_host.contains(r#"host \"box.example\" is not allowed; allow it with `--allow-host`"#),
        "{other_host}"
    );
    assert!(
        other_origin.contains("allow its host with `--allow-host`"),
        "{other_origin}"
    );
}

/// Returns the names of the tools at a URL, and the size of their JSON.
fn listed_tools(sandbox: &Sandbox, words: &[&str]) -> (Vec<String>, usize) {
    let words = [&["tools", "--json"], words].concat();
    let output = sandbox.command(&words).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", sandbox.render(&output)));
    let tools = document["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{document}"));
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned());
    (names.collect(), document["tools"].to_string().len())
}

#[test]
fn a_url_or_an_option_selects_the_core_tools() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::on_free_port(&sandbox);
    let core_url = format!("{}?tools=core", server.address);

    let (all, _) = listed_tools(&sandbox, &[&server.address]);
    let (modern, size) = listed_tools(&sandbox, &[&core_url]);
    let (legacy, _) = listed_tools(&sandbox, &[&core_url, "--era", "legacy"]);

    assert_eq!(all.len(), 23);
    assert_eq!(modern.len(), 10, "{modern:?}");
    assert_eq!(modern, legacy);
    // Four characters of JSON are about one token.
    assert!(size <= 4 * 2_000, "{size}");
    let unknown = sandbox.run(&["tools", &format!("{}?tools=cor", server.address)]);
    assert!(
        unknown
            .contains("unknown tool set `cor` in the URL: expected `?tools=core` or `?tools=all`"),
        "{unknown}"
    );
    let words = ["--listen", "127.0.0.1:0", "--tools", "core"];
    let server = ServeProcess::start(&sandbox, &words);
    assert_eq!(listed_tools(&sandbox, &[&server.address]).0, modern);
    let stderr = server.stop();
    assert!(!stderr.contains("?tools=core"), "{stderr}");
}

#[test]
fn the_log_file_has_client_tool_outcome_and_duration_of_each_call() {
    let sandbox = Sandbox::new();
    let words = ["--listen", "127.0.0.1:0", "-v", "--log-file", "serve.log"];
    let server = ServeProcess::start(&sandbox, &words);
    server.call(&sandbox, &["debug_log_status"]);
    sandbox.run(&["call", &server.address, "debug_log_clear", "--force", "a=1"]);

    let stderr = server.stop();

    let file = sandbox.path().join("serve.log");
    let log = fs::read_to_string(&file).unwrap();
    let line = log
        .lines()
        .find(|line| line.contains("target=\"debug_log_status\""))
        .unwrap_or_else(|| panic!("{log}"));
    let (line, _) = line
        .split_once(" elapsed=")
        .unwrap_or_else(|| panic!("{line}"));
    let (_, line) = line
        .split_once(" DEBUG ")
        .unwrap_or_else(|| panic!("{line}"));
    insta::assert_snapshot!(line, @r#"turnbuckle::serve: operation finished client="turnbuckle 0.1.0" method="tools/call" target="debug_log_status" outcome=completed"#);
    assert!(
        log.contains("target=\"debug_log_clear\" outcome=tool_error elapsed="),
        "{log}"
    );
    assert!(!stderr.contains("operation finished"), "{stderr}");
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let seen = sandbox.run(&["serve", "--log-file", "missing/serve.log"]);
    assert!(
        seen.contains("cannot write the log ~/missing/serve.log: No such file or directory"),
        "{seen}"
    );
}

#[test]
fn a_service_is_installed_with_the_other_options() {
    let sandbox = Sandbox::new();
    let file = sandbox
        .path()
        .join(".config/systemd/user/turnbuckle.service");

    let seen = sandbox.run(&[
        "serve",
        "--data",
        "my data",
        "--install-service",
        "--dry-run",
    ]);
    assert!(
        seen.starts_with("Would write ~/.config/systemd/user/turnbuckle.service"),
        "{seen}"
    );
    assert!(!file.exists());
    let seen = sandbox.run(&["serve", "--data", "my data", "--install-service"]);
    assert!(
        seen.contains("systemctl --user enable --now turnbuckle.service"),
        "{seen}"
    );
    let unit = fs::read_to_string(&file).unwrap();
    assert!(
        unit.contains(
            r#"" "serve" "--data" "my data"
"#
        ),
        "{unit}"
    );
    assert!(
        unit.contains(&format!("WorkingDirectory={}\n", sandbox.path().display())),
        "{unit}"
    );

    let seen = sandbox.run(&["serve", "--install-service", "--token-file", "missing"]);
    assert!(seen.contains("cannot read ~/missing"), "{seen}");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        unit,
        "it is not changed"
    );
    let seen = sandbox.run(&["serve", "--uninstall-service"]);
    assert!(
        seen.starts_with("Removed ~/.config/systemd/user/turnbuckle.service."),
        "{seen}"
    );
    assert!(!file.exists());
    let seen = sandbox.run(&["serve", "--dry-run"]);
    assert!(seen.contains("--dry-run needs --install-service"), "{seen}");
}

#[test]
fn the_help_has_only_options_that_serve_uses() {
    let sandbox = Sandbox::new();

    let help = sandbox.run(&["serve", "--help"]);

    for used in [
        "--json",
        "--verbose",
        "--config",
        "--color",
        "--token-file",
        "--log-file",
    ] {
        assert!(help.contains(used), "{used}: {help}");
    }
    for unused in [
        "--era",
        "--timeout",
        "--header",
        "--yes",
        "--inherit-env",
        "--token <",
        "--client-id",
        "--client-secret-file",
    ] {
        assert!(!help.contains(unused), "{unused}: {help}");
    }
    assert!(help.contains("Log every request"), "{help}");
}

#[test]
fn flags_override_the_config_file() {
    let sandbox = Sandbox::new();
    let settings = "listen = \"unix:../../memory.sock\"\ndata = \"~/memory\"\n";
    sandbox.write(".config/turnbuckle/serve.toml", settings);

    let server = ServeProcess::start(&sandbox, &["--json"]);
    assert!(server.address.contains("memory.sock"), "{}", server.address);
    server.stop();
    assert!(sandbox.path().join("memory").is_dir());

    let server = ServeProcess::on_free_port(&sandbox);
    assert!(
        server.address.starts_with("http://127.0.0.1:"),
        "{}",
        server.address
    );
}

#[test]
fn config_errors_are_reported_with_their_line() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", "data = \"d\"\nlisten-on = \"127.0.0.1:1\"\n");

    let seen = sandbox.run(&["serve", "--config", "s.toml"]);

    insta::assert_snapshot!(seen, @r#"
    --- stderr
    error: invalid configuration ~/s.toml: TOML parse error at line 2, column 1
      |
    2 | listen-on = "127.0.0.1:1"
      | ^^^^^^^^^
    unknown field `listen-on`, expected one of `listen`, `data`, `database`, `database-file`, `half-life`, `roots`, `tools`, `quota`, `deadline`, `index-deadline`, `allow-hosts`, `http-sse`, `store`, `state-key-file`, `log-file`, `embeddings`, `authorization`, `limits`
    --- exit 2
    "#);
    let seen = sandbox.run(&["serve", "--config", "missing.toml"]);
    assert!(seen.contains("cannot read ~/missing.toml"), "{seen}");
}

#[test]
fn an_unusable_data_directory_is_reported_at_startup() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "");

    for words in [
        &["serve", "--data", "file/below"][..],
        &["serve", "--stdio", "--data", "file/below"],
    ] {
        let seen = sandbox.run(words);
        assert!(
            seen.contains("error: ~/file/below cannot be used: Not a directory"),
            "{seen}"
        );
        assert!(seen.contains("hint: use --data DIR"), "{seen}");
        assert!(seen.ends_with("--- exit 2\n"), "{seen}");
    }
}

#[test]
fn a_socket_is_private_and_removed_at_shutdown() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::start(&sandbox, &["--listen", "unix:memory.sock"]);
    let socket = sandbox.path().join("memory.sock");

    let mode = fs::symlink_metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(server.address, format!("unix:{}", socket.display()));
    let status = server.call(&sandbox, &["debug_log_status"]);
    assert_eq!(status["enabled"], true);

    let again = sandbox.run(&["serve", "--listen", "unix:memory.sock"]);
    assert!(
        again.contains("a server is already listening on ~/memory.sock"),
        "{again}"
    );
    server.stop();
    assert!(!socket.exists());
}

#[test]
fn a_stale_socket_is_replaced_and_another_file_is_not() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("left.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = ServeProcess::start(&sandbox, &["--listen", "unix:left.sock"]);
    assert_eq!(
        server.call(&sandbox, &["debug_log_status"])["enabled"],
        true
    );
    server.stop();

    sandbox.write("file.sock", "precious");
    let seen = sandbox.run(&["serve", "--listen", "unix:file.sock"]);
    assert!(
        seen.contains("~/file.sock exists and is not a socket"),
        "{seen}"
    );
    let file = sandbox.path().join("file.sock");
    assert!(!fs::symlink_metadata(&file).unwrap().file_type().is_socket());
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn serving_stdio_ends_with_its_input_and_prints_nothing_else() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["serve", "--stdio"]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(sandbox.render(&output), "");
}

#[test]
fn verbose_shows_every_request_on_stderr() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::start(&sandbox, &["--listen", "127.0.0.1:0", "--verbose"]);
    server.call(&sandbox, &["debug_log_status"]);

    let stderr = server.stop();
    assert!(
        stderr.contains("method=\"tools/call\" target=\"debug_log_status\" outcome=completed"),
        "{stderr}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_open_file_limit_is_raised_to_the_hard_limit() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::with_ulimit(&sandbox, "ulimit -Sn 100 && ulimit -Hn 300");

    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();

    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert_eq!(words[3..5], ["300", "300"]);
}

#[test]
fn idle_connections_do_not_exhaust_descriptors() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::with_ulimit(&sandbox, "ulimit -n 96");
    let url = server.address.replace("/mcp", "/healthz");
    let address = url.strip_prefix("http://").unwrap();
    let address = address.split_once('/').unwrap().0;

    let idle: Vec<_> = (0..300)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let health = get(&url);
    let project = format!("project_path={}", sandbox.path().display());
    let saved = server.call(&sandbox, &["checkpoint_save", "content=a plan", &project]);

    assert!(health.ends_with("ok"), "{health}");
    assert!(saved.is_object(), "{saved}");
    drop(idle);
}

/// Posts a message to a URL, and returns the whole response.
fn post(url: &str, message: &Value) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let body = message.to_string();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn clients_of_early_drafts_are_served() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::on_free_port(&sandbox);
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });

    for url in [server.address.clone(), format!("{}/", server.address)] {
        let response = post(&url, &initialize);

        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(
            response.contains("mcp-protocol-version: 2024-11-05\r\n"),
            "{response}"
        );
        assert!(response.contains("\"serverInfo\""), "{response}");
    }
}

#[test]
fn method_names_of_early_drafts_work_on_stdio() {
    let sandbox = Sandbox::new();
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let reference = json!({ "type": "ref/prompt", "name": "resume" });
    let complete = json!({ "ref": reference, "argument": { "name": "project_path", "value": "" } });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "completions/complete", "params": complete }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "shutdown" }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write("in", &text);
    let mut command = sandbox.command(&["serve", "--stdio"]);

    let input = fs::File::open(sandbox.path().join("in")).unwrap();
    let output = command.stdin(input).output().unwrap();

    let responses: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let by_id = |id: i64| {
        responses
            .iter()
            .find(|response| response["id"] == id)
            .unwrap()
    };
    assert!(
        by_id(1)["result"]["serverInfo"].is_object(),
        "{responses:?}"
    );
    // The method exists; the prompt may not.
    assert_ne!(by_id(2)["error"]["code"], -32601, "{responses:?}");
    assert_eq!(by_id(3)["result"], json!({}));
}

#[test]
fn http_sse_is_served_at_two_paths() {
    let sandbox = Sandbox::new();
    let words = ["--listen", "127.0.0.1:0", "--http-sse", "--json"];
    let server = ServeProcess::start(&sandbox, &words);
    let started: Value = serde_json::from_str(&server.address).unwrap();
    let base = started["url"]
        .as_str()
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    assert_eq!(started["sse"], format!("{base}/sse"));

    for (path, messages) in [("/sse", "/messages"), ("/mcp/sse", "/mcp/messages")] {
        let words = ["tools", "--json", &format!("{base}{path}")];
        let listed = sandbox.command(&words).output().unwrap();
        assert!(listed.status.success(), "{}", sandbox.render(&listed));
        let response = get(&format!("{base}{messages}"));
        assert!(response.starts_with("HTTP/1.1 405"), "{response}");
    }
    let plain = ServeProcess::on_free_port(&sandbox);
    let base = plain.address.strip_suffix("/mcp").unwrap();
    assert!(get(&format!("{base}/sse")).starts_with("HTTP/1.1 404"));
}

#[test]
fn http_sse_needs_http() {
    let sandbox = Sandbox::new();

    let seen = sandbox.run(&["serve", "--http-sse", "--listen", "unix:s"]);

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: --http-sse needs HTTP, not a Unix socket

    hint: use --listen 127.0.0.1:8321 for HTTP
    --- exit 2
    ");
}

#[test]
fn a_shared_store_without_keys_is_refused_with_the_command_that_makes_one() {
    let sandbox = Sandbox::new();

    let refused = sandbox.run(&["serve", "--store", "redis://127.0.0.1:1"]);

    assert!(
        refused.contains("--store needs --state-key-file"),
        "{refused}"
    );
    assert!(
        refused.contains("openssl rand -hex 32 > state.key"),
        "{refused}"
    );
}
