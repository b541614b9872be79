//! `turnbuckle serve`: where it listens, what it says, and how it ends.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::serving::{Serving, get};
use crate::stage::Stage;

#[test]
fn it_says_where_it_is_and_how_agents_are_told() {
    let stage = Stage::new();
    let server = Serving::on_a_port(&stage);
    let url = server.told.clone();

    let said = server.end().replace(&url, "URL");
    let said = said.replace(&stage.path().display().to_string(), "~");

    insta::assert_snapshot!(said, @r#"
    turnbuckle 0.1.0 keeps its memory in ~/.local/share/turnbuckle and listens on

    Tell your agent:
      Claude Code  claude mcp add --scope user --transport http turnbuckle URL
      Codex        codex mcp add turnbuckle --url URL
      Gemini       gemini mcp add --scope user --transport http turnbuckle URL
      .mcp.json    {"mcpServers":{"turnbuckle":{"type":"http","url":"URL"}}}

    Ctrl-C ends it.
    ending; calls that run may finish (again to end them)
    "#);
}

#[test]
fn programs_get_one_line_of_json() {
    let stage = Stage::new();
    let server = Serving::start(
        &stage,
        &["--listen", "127.0.0.1:0", "--json", "--data", "d"],
    );

    let told: Value = serde_json::from_str(&server.told).unwrap();
    assert!(told["url"].as_str().unwrap().ends_with("/mcp"));
    assert_eq!(told["data"], stage.path().join("d").display().to_string());
    let health = get(told["health"].as_str().unwrap());
    assert!(
        health.starts_with("HTTP/1.1 200") && health.ends_with("ok"),
        "{health}"
    );
    assert_eq!(
        server.end(),
        "ending; calls that run may finish (again to end them)\n"
    );
}

#[test]
fn ctrl_c_ends_it_too() {
    let stage = Stage::new();
    let server = Serving::on_a_port(&stage);
    server.signal(Signal::INT);
    assert!(server.wait().0.success());
}

#[test]
fn a_port_that_is_taken_is_said_with_advice() {
    let stage = Stage::new();
    let server = Serving::on_a_port(&stage);
    let address = server.told.strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/mcp").unwrap();

    let seen = stage
        .run(&["serve", "--listen", address])
        .replace(address, "ADDRESS");

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: cannot listen on ADDRESS: Address already in use (os error 98)

    hint: perhaps it runs already: `turnbuckle info http://ADDRESS/mcp` shows who answers; --listen 127.0.0.1:0 takes a free port
    --- exit 2
    ");
}

#[test]
fn it_does_not_listen_beyond_this_machine_unless_that_is_insisted_on() {
    let stage = Stage::new();

    let seen = stage.run(&["serve", "--listen", "0.0.0.0:0"]);
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
    let server = Serving::start(&stage, &words);
    assert!(
        server.told.starts_with("http://0.0.0.0:"),
        "{}",
        server.told
    );
}

#[test]
fn a_file_of_settings_is_used_and_flags_count_more() {
    let stage = Stage::new();
    let settings = "listen = \"unix:../../memory.sock\"\ndata = \"~/memory\"\n";
    stage.write(".config/turnbuckle/serve.toml", settings);

    let server = Serving::start(&stage, &["--json"]);
    assert!(server.told.contains("memory.sock"), "{}", server.told);
    server.end();
    assert!(stage.path().join("memory").is_dir());

    let server = Serving::on_a_port(&stage);
    assert!(
        server.told.starts_with("http://127.0.0.1:"),
        "{}",
        server.told
    );
}

#[test]
fn mistakes_in_a_file_are_said_with_their_line() {
    let stage = Stage::new();
    stage.write("s.toml", "data = \"d\"\nlisten-on = \"127.0.0.1:1\"\n");

    let seen = stage.run(&["serve", "--config", "s.toml"]);

    insta::assert_snapshot!(seen, @r#"
    --- stderr
    error: ~/s.toml cannot be used: TOML parse error at line 2, column 1
      |
    2 | listen-on = "127.0.0.1:1"
      | ^^^^^^^^^
    unknown field `listen-on`, expected one of `listen`, `data`, `half-life`, `roots`, `quota`, `deadline`, `index-deadline`, `allow-hosts`, `http-sse`, `embeddings`, `authorization`, `limits`
    --- exit 2
    "#);
    let seen = stage.run(&["serve", "--config", "missing.toml"]);
    assert!(seen.contains("~/missing.toml cannot be read"), "{seen}");
}

#[test]
fn a_folder_for_data_that_cannot_be_written_is_said_at_once() {
    let stage = Stage::new();
    stage.write("file", "");

    for words in [
        &["serve", "--data", "file/below"][..],
        &["serve", "--stdio", "--data", "file/below"],
    ] {
        let seen = stage.run(words);
        assert!(
            seen.contains("error: ~/file/below cannot be used: Not a directory"),
            "{seen}"
        );
        assert!(seen.contains("hint: --data DIR"), "{seen}");
        assert!(seen.ends_with("--- exit 2\n"), "{seen}");
    }
}

#[test]
fn a_socket_is_only_for_the_user_and_goes_away_in_the_end() {
    let stage = Stage::new();
    let server = Serving::start(&stage, &["--listen", "unix:memory.sock"]);
    let socket = stage.path().join("memory.sock");

    let mode = fs::symlink_metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(server.told, format!("unix:{}", socket.display()));
    let status = server.call(&stage, &["debug_log_status"]);
    assert_eq!(status["enabled"], true);

    let again = stage.run(&["serve", "--listen", "unix:memory.sock"]);
    assert!(
        again.contains("a server answers on ~/memory.sock already"),
        "{again}"
    );
    server.end();
    assert!(!socket.exists());
}

#[test]
fn a_socket_that_was_left_behind_is_replaced_and_another_file_is_not() {
    let stage = Stage::new();
    let path = stage.path().join("left.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = Serving::start(&stage, &["--listen", "unix:left.sock"]);
    assert_eq!(server.call(&stage, &["debug_log_status"])["enabled"], true);
    server.end();

    stage.write("file.sock", "precious");
    let seen = stage.run(&["serve", "--listen", "unix:file.sock"]);
    assert!(
        seen.contains("~/file.sock is there already, and no socket"),
        "{seen}"
    );
    let file = stage.path().join("file.sock");
    assert!(!fs::symlink_metadata(&file).unwrap().file_type().is_socket());
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn on_stdio_it_ends_with_its_input_and_prints_nothing_of_its_own() {
    let stage = Stage::new();
    let output = stage.command(&["serve", "--stdio"]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(stage.seen(&output), "");
}

#[test]
fn verbose_shows_every_request_on_stderr() {
    let stage = Stage::new();
    let server = Serving::start(&stage, &["--listen", "127.0.0.1:0", "--verbose"]);
    server.call(&stage, &["debug_log_status"]);

    let said = server.end();
    assert!(
        said.contains("answered method=\"tools/call\" target=\"debug_log_status\""),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_of_open_files_is_raised_as_far_as_it_goes() {
    let stage = Stage::new();
    let server = Serving::limited(&stage, "ulimit -Sn 100 && ulimit -Hn 300");

    let limits = fs::read_to_string(format!("/proc/{}/limits", server.id())).unwrap();

    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<_> = line.unwrap().split_whitespace().collect();
    assert_eq!(words[3..5], ["300", "300"]);
}

#[test]
fn idle_connections_take_no_descriptor_that_others_need() {
    let stage = Stage::new();
    let server = Serving::limited(&stage, "ulimit -n 96");
    let url = server.told.replace("/mcp", "/healthz");
    let address = url.strip_prefix("http://").unwrap();
    let address = address.split_once('/').unwrap().0;

    let idle: Vec<_> = (0..300)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let health = get(&url);
    let project = format!("project_path={}", stage.path().display());
    let saved = server.call(&stage, &["checkpoint_save", "content=a plan", &project]);

    assert!(health.ends_with("ok"), "{health}");
    assert!(saved.is_object(), "{saved}");
    drop(idle);
}

/// Posts a message to a URL, and returns the whole answer.
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
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn clients_written_after_early_documents_are_served() {
    let stage = Stage::new();
    let server = Serving::on_a_port(&stage);
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {} });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });

    for url in [server.told.clone(), format!("{}/", server.told)] {
        let answer = post(&url, &initialize);

        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.contains("mcp-protocol-version: 2024-11-05\r\n"),
            "{answer}"
        );
        assert!(answer.contains("\"serverInfo\""), "{answer}");
    }
}

#[test]
fn early_method_names_are_answered_on_stdio() {
    let stage = Stage::new();
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
    stage.write("in", &text);
    let mut command = stage.command(&["serve", "--stdio"]);

    let input = fs::File::open(stage.path().join("in")).unwrap();
    let output = command.stdin(input).output().unwrap();

    let answers: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let by_id = |id: i64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert!(by_id(1)["result"]["serverInfo"].is_object(), "{answers:?}");
    // The method is known; whether there is such a prompt is another matter.
    assert_ne!(by_id(2)["error"]["code"], -32601, "{answers:?}");
    assert_eq!(by_id(3)["result"], json!({}));
}

#[test]
fn http_sse_is_offered_at_two_paths_if_asked_for() {
    let stage = Stage::new();
    let words = ["--listen", "127.0.0.1:0", "--http-sse", "--json"];
    let server = Serving::start(&stage, &words);
    let told: Value = serde_json::from_str(&server.told).unwrap();
    let base = told["url"].as_str().unwrap().strip_suffix("/mcp").unwrap();
    assert_eq!(told["sse"], format!("{base}/sse"));

    for (path, messages) in [("/sse", "/messages"), ("/mcp/sse", "/mcp/messages")] {
        let words = ["tools", "--json", &format!("{base}{path}")];
        let listed = stage.command(&words).output().unwrap();
        assert!(listed.status.success(), "{}", stage.seen(&listed));
        let answer = get(&format!("{base}{messages}"));
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    }
    let plain = Serving::on_a_port(&stage);
    let base = plain.told.strip_suffix("/mcp").unwrap();
    assert!(get(&format!("{base}/sse")).starts_with("HTTP/1.1 404"));
}

#[test]
fn http_sse_needs_http() {
    let stage = Stage::new();

    let seen = stage.run(&["serve", "--http-sse", "--listen", "unix:s"]);

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: --http-sse needs HTTP, and a Unix socket carries lines

    hint: --listen 127.0.0.1:8321 listens on HTTP
    --- exit 2
    ");
}
