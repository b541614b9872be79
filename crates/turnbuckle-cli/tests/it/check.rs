//! Tests of `check` against a compliant and a faulty server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::net::UnixListener,
    thread,
};

use serde_json::{Value, json};

use crate::{
    fake_http::{FakeHttp, FakeResponse},
    http,
    sandbox::Sandbox,
    serve_process::ServeProcess,
    stdio_programs,
};

/// A server on a socket that supports 2025-11-25 and returns the wrong code for unknown methods.
fn faulty_server(sandbox: &Sandbox) -> String {
    let path = sandbox.path().join("bad.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut writer = stream.try_clone().unwrap();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if let Some(response) = response_to(&line) {
                        let _ = writeln!(writer, "{response}");
                    }
                }
            });
        }
    });
    "unix:bad.sock".to_owned()
}

fn response_to(line: &str) -> Option<Value> {
    let request: Value = serde_json::from_str(line).ok()?;
    let id = request.get("id")?;
    Some(match request["method"].as_str() {
        Some("initialize") => json!({ "jsonrpc": "2.0", "id": id, "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": { "name": "bad", "version": "1" },
        } }),
        Some("ping") => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "error": {
            "code": -32603, "message": "\u{1b}[31mwhat?",
        } }),
    })
}

/// One rule in one revision, so that new rules do not change the output.
const ONE_RULE: &[&str] = &["--only", "base.unknown-method", "--revision", "2025-11-25"];

fn run(sandbox: &Sandbox, words: &[&str]) -> String {
    without_time(&without_progress(
        &sandbox.run(&[&["check"], words].concat()),
    ))
}

/// Removes the lines of progress.
fn without_progress(seen: &str) -> String {
    let lines = seen.lines().filter(|line| !line.starts_with("checking "));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let text = text.replace("--- stderr\n---", "---");
    text.strip_suffix("--- stderr\n")
        .unwrap_or(&text)
        .to_owned()
}

/// Removes the duration and the names of other similar rules.
fn without_time(seen: &str) -> String {
    let line = |line: &str| match (line.rsplit_once(" in "), line.split_once("`, `")) {
        (Some((before, time)), _) if time.ends_with(" s") => format!("{before}\n"),
        (_, Some((before, _))) if before.contains("(nearest: ") => format!("{before}`)\n"),
        _ => format!("{line}\n"),
    };
    seen.lines().map(line).collect()
}

#[test]
fn a_compliant_server_is_exit_code_0_on_every_transport() {
    let sandbox = Sandbox::new();
    let url = http::serve(&sandbox);

    let socket = run(&sandbox, &[&["SOCKET"], ONE_RULE].concat());
    let web = run(&sandbox, &[&[&*url], ONE_RULE].concat());
    let program = stdio_programs::command(&sandbox, "weather", &[&["check"], ONE_RULE].concat());
    let program = sandbox.render(&{ program }.output().unwrap());

    insta::assert_snapshot!(socket, @r"
                   2025-11-25
    base protocol  ✓1

    SOCKET: ✓ 1 passed
    ");
    assert_eq!(web.replace(&url, "SOCKET"), socket);
    assert!(
        program.contains("✓ 1 passed") && !program.contains("exit"),
        "{program}"
    );
}

#[test]
fn http_sse_is_detected() {
    let sandbox = Sandbox::new();
    let url = http::serve_http_sse(&sandbox);

    let seen = run(&sandbox, &[&[&*url], ONE_RULE, &["--json"]].concat());

    let json: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(json["runs"][0]["transport"], "http+sse");
    assert_eq!(json["summary"]["pass"], 1);
}

#[test]
fn all_revisions_are_checked() {
    let sandbox = Sandbox::new();

    let seen = run(&sandbox, &["SOCKET", "--only", "base.unknown-method"]);

    insta::assert_snapshot!(seen, @r"
                   2024-10-07  2024-11-05  2025-03-26  2025-06-18  2025-11-25  2026-07-28
    base protocol  ✓1          ✓1          ✓1          ✓1          ✓1          ✓1

    SOCKET: ✓ 6 passed
    ");
}

#[test]
fn a_violation_is_shown_with_its_hint_and_is_exit_code_1() {
    let sandbox = Sandbox::new();
    let target = faulty_server(&sandbox);

    let words = [
        &target,
        "--only",
        "base.unknown-method",
        "--revision",
        "2025-11-25",
        "--revision",
        "2025-06-18",
    ];

    insta::assert_snapshot!(run(&sandbox, &words), @r#"
                   2025-06-18  2025-11-25
    base protocol              ✗1

    2025-06-18 is not supported: the server responds with 2025-11-25

    ✗ base.unknown-method
      The server returns error -32601 for an unknown method.
      found     the error -32603 instead of -32601
      in        2025-11-25
      MUST      Report an unknown or unoffered method with -32601. (base.error.method-not-found)
                https://modelcontextprotocol.io/specification/2025-11-25/schema
      messages  > {"jsonrpc":"2.0","method":"turnbuckle/no-such-method","id":2}
                < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"\u001b[31mwhat?"}}
      hint      Return error -32601 when no handler is registered for the method.

    unix:bad.sock: ✗ 1 failed
    --- stderr
    error: 1 rule is violated
    --- exit 1
    "#);
}

#[test]
fn baseline_entries_are_ignored_and_stale_ones_fail() {
    let sandbox = Sandbox::new();
    let target = faulty_server(&sandbox);
    let check_faulty = |words: &[&str]| run(&sandbox, &[&[&*target], ONE_RULE, words].concat());

    let written = check_faulty(&["--write-baseline", "known.txt"]);
    let known = check_faulty(&["--baseline", "known.txt"]);
    let stale = run(
        &sandbox,
        &[&["SOCKET"], ONE_RULE, &["--baseline", "known.txt"]].concat(),
    );

    assert!(!written.contains("exit"), "{written}");
    let text = std::fs::read_to_string(sandbox.path().join("known.txt")).unwrap();
    assert!(
        text.ends_with("\nbase.unknown-method 2025-11-25 lines\n"),
        "{text}"
    );
    assert!(
        known.contains("✗ base.unknown-method (in baseline)\n") && !known.contains("exit"),
        "{known}"
    );
    insta::assert_snapshot!(stale, @r"
                   2025-11-25
    base protocol  ✓1

    SOCKET: ✓ 1 passed
    --- stderr
    error: the baseline has entries that no longer occur:
      base.unknown-method 2025-11-25 lines

    hint: remove these entries from the baseline
    --- exit 1
    ");
}

#[test]
fn an_invalid_baseline_is_exit_code_2() {
    let sandbox = Sandbox::new();
    sandbox.write("known.txt", "base.unknown-metod\n");

    insta::assert_snapshot!(run(&sandbox, &["SOCKET", "--baseline", "known.txt"]), @r"
    --- stderr
    error: invalid baseline known.txt: unknown rule `base.unknown-metod` (nearest: `base.unknown-method`)
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &["SOCKET", "--baseline", "nothing.txt"]), @r"
    --- stderr
    error: invalid baseline nothing.txt: No such file or directory (os error 2)
    --- exit 2
    ");
}

#[test]
fn reports_are_written_to_files() {
    let sandbox = Sandbox::new();
    let target = faulty_server(&sandbox);
    let file = |name: &str| std::fs::read_to_string(sandbox.path().join(name)).unwrap();
    let words = [
        &[&*target],
        ONE_RULE,
        &[
            "--format",
            "json",
            "--output",
            "a.json",
            "--report",
            "sarif=a.sarif",
            "--report",
            "junit=a.xml",
        ],
        &[
            "--report",
            "markdown=a.md",
            "--report",
            "html=a.html",
            "--report",
            "terminal=a.txt",
        ],
    ];

    let seen = run(&sandbox, &words.concat());

    insta::assert_snapshot!(seen, @r"
    --- stderr
    error: 1 rule is violated
    --- exit 1
    ");
    let json: Value = serde_json::from_str(&file("a.json")).unwrap();
    assert_eq!(json["format"], "turnbuckle-check/1");
    assert_eq!(json["findings"][0]["rule"], "base.unknown-method");
    let sarif: Value = serde_json::from_str(&file("a.sarif")).unwrap();
    assert_eq!(
        sarif["runs"][0]["results"][0]["ruleId"],
        "base.unknown-method"
    );
    assert!(file("a.xml").contains("<failure message="));
    assert!(file("a.md").contains("## ✗ `base.unknown-method`"));
    assert!(file("a.html").contains("One rule is violated</h1>"));
    for name in ["a.json", "a.sarif", "a.xml", "a.md", "a.html", "a.txt"] {
        assert!(!file(name).contains('\u{1b}'), "{name}");
    }
}

#[test]
fn json_goes_to_stdout() {
    let sandbox = Sandbox::new();

    let output = sandbox
        .command(&[&["check", "SOCKET", "--json"], ONE_RULE].concat())
        .output()
        .unwrap();

    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["summary"]["pass"], 1);
    assert_eq!(json["runs"][0]["revision"], "2025-11-25");
    assert!(output.status.success());
}

#[test]
fn a_server_that_cannot_be_checked_is_exit_code_2() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(run(&sandbox, &["unix:nowhere.sock"]), @r"
    --- stderr
    error: the server cannot be reached: reading or writing failed: No such file or directory (os error 2)
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &["--", "/no/such/program"]), @r"
    --- stderr
    error: program `/no/such/program` not found
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &["--", "sh", "-c", "echo no barometer >&2; exit 3"]), @r"
    --- stderr
    error: the server cannot be reached: the server process exited with code 3; last lines of stderr:
    no barometer

    hint: run again with `--verbose` for details
    --- exit 2
    ");
}

/// A server in a shell: `initialize` and `call` are results or commands.
fn shell_server(initialize: &str, call: &str) -> String {
    let tools = r#"{"tools":[{"name":"boom","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    format!(
        r#"
result() {{ echo '{{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}}'; }}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) result '{initialize}' ;;
  *tools/list*) result '{tools}' ;;
  *tools/call*) {call} ;;
  *server/discover*) echo '{{"jsonrpc":"2.0","id":'"$id"',"error":{{"code":-32601,"message":"no"}}}}' ;;
  *) [ -z "$id" ] || result '{{}}' ;;
  esac
done"#
    )
}

#[test]
fn a_server_that_cannot_be_used_is_reported_as_by_info() {
    let sandbox = Sandbox::new();
    let html = FakeHttp::start(|_| FakeResponse::Html("<!doctype html><h1>Welcome</h1>"));
    let broken = FakeHttp::start(|_| FakeResponse::Status(500));
    let without_version = shell_server(
        r#"{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
        ":",
    );
    let targets: [&[&str]; 4] = [
        &[&html.url],
        &[&broken.url],
        &["--", "sh", "-c", "echo no barometer >&2; exit 3"],
        &["--", "sh", "-c", &without_version],
    ];

    for target in targets {
        let info = sandbox.run(&[&["info"], target].concat());
        let check = run(&sandbox, target);

        assert!(
            info.contains("error: ") && info.ends_with("--- exit 2\n"),
            "{info}"
        );
        assert_eq!(check, info);
    }
}

#[test]
fn a_server_that_crashes_in_a_tool_is_an_incomplete_check() {
    let sandbox = Sandbox::new();
    let initialize = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#;
    let server = shell_server(initialize, "echo no barometer >&2; exit 3");
    let options = ["--only", "tools.output-fits", "--revision", "2025-11-25"];

    let seen = run(
        &sandbox,
        &[&options[..], &["--", "sh", "-c", &server]].concat(),
    );

    let found = seen
        .split_once("! robustness")
        .map_or("", |(_, found)| found);
    let found = found.split_once("messages").map_or("", |(found, _)| found);
    insta::assert_snapshot!(found, @r"
    .stays-alive
      The server runs until its client ends the connection.
      found     the server process exited with code 3 after `tools/call` of the tool `boom`; last lines
                of stderr:
                no barometer
      in        2025-11-25
    ");
    assert!(
        seen.ends_with(
            "error: the check is incomplete: the server process exited with code 3 after `tools/call` of the tool `boom`\n--- exit 2\n"
        ),
        "{seen}"
    );
}

#[test]
fn progress_is_a_line_per_area_on_a_pipe() {
    let sandbox = Sandbox::new();

    let seen = sandbox.run(&[&["check", "SOCKET"], ONE_RULE].concat());

    assert!(
        seen.ends_with("--- stderr\nchecking 2025-11-25 base protocol (0 of 1)\n"),
        "{seen}"
    );
}

#[test]
fn messages_are_shown_with_verbose() {
    let sandbox = Sandbox::new();
    let url = http::serve(&sandbox);

    let socket = sandbox.run(&[&["check", "SOCKET", "-v"], ONE_RULE].concat());
    let web = sandbox.run(&[&["check", &url, "-v"], ONE_RULE].concat());

    for seen in [&socket, &web] {
        assert!(
            seen.contains(r#""method":"turnbuckle/no-such-method""#)
                && seen.contains("\n> 2025-11-25 "),
            "{seen}"
        );
        assert!(seen.contains("\n< 2025-11-25 {"), "{seen}");
    }
    assert!(web.contains("> 2025-11-25 POST /mcp {"), "{web}");
}

#[test]
fn a_server_that_requires_authorization_is_reported_once() {
    let sandbox = Sandbox::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines
                    .next()
                    .is_some_and(|line| !line.unwrap_or_default().is_empty())
                {}
                let _ = stream.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
            });
        }
    });

    insta::assert_snapshot!(run(&sandbox, &[&[&*url], ONE_RULE].concat()).replace(&url, "URL"), @r"
    --- stderr
    error: the server requires authorization: HTTP status 401

    hint: log in with `turnbuckle login URL`, or send a token with --token-file FILE
    --- exit 2
    ");

    // Secrets of the user are not shown, whatever the header is called.
    let keyed = format!("{url}?key=s3cret");
    let given = ["--header", "X-Thing: s3cret", "--format", "json"];
    let seen = run(
        &sandbox,
        &[&[&*keyed, "--only", "authorization"], &given[..]].concat(),
    );
    assert!(
        seen.contains("x-thing") && seen.contains("POST /mcp?***"),
        "{seen}"
    );
    assert!(!seen.contains("s3cret"), "{seen}");
}

#[test]
fn unknown_names_are_explained() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(run(&sandbox, &["SOCKET", "--only", "base.unknown-metod"]), @r"
    --- stderr
    error: unknown rule `base.unknown-metod` (nearest: `base.unknown-method`)

    hint: list the rules with `turnbuckle check --list`
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &["SOCKET", "--revision", "2025-11-26"]), @r"
    --- stderr
    error: invalid value '2025-11-26' for '--revision <DATE>': expected one of 2024-10-07, 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28

    For more information, try '--help'.
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &["SOCKET", "--report", "pdf=x"]), @r"
    --- stderr
    error: invalid value 'pdf=x' for '--report <FORMAT=FILE>': expected one of terminal, json, junit, sarif, markdown, html

    For more information, try '--help'.
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &["SOCKET", "--only", "client.base"]), @r"
    --- stderr
    error: no rule for servers is selected

    hint: list the rules with `turnbuckle check --list`
    --- exit 2
    ");
    insta::assert_snapshot!(run(&sandbox, &[]), @r"
    --- stderr
    error: missing argument TARGET

    hint: see `turnbuckle check --help`
    --- exit 2
    ");
}

#[test]
fn calls_are_typed_by_the_schema_of_the_tool() {
    let sandbox = Sandbox::new();
    let call = |words: &[&str]| {
        run(
            &sandbox,
            &[&["SOCKET"], ONE_RULE, &["--call"], words].concat(),
        )
    };

    assert!(!call(&["forecast", "city=Oslo", "days=2"]).contains("exit"));
    assert!(!call(&["forecast", r#"{"city": "Oslo"}"#]).contains("exit"));
    insta::assert_snapshot!(call(&["forecast", "days=many"]), @r"
    --- stderr
    error: invalid value `many` for `days`: expected integer 1..7
    --- exit 2
    ");
    insta::assert_snapshot!(call(&["forecst", "days=2"]), @r"
    --- stderr
    error: unknown tool `forecst`

    hint: list the tools with `turnbuckle tools SOCKET`
    --- exit 2
    ");
}

#[test]
fn the_catalog_is_listed() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(run(&sandbox, &["--list", "--only", "base.unknown-method"]), @r"
    base protocol
      base.unknown-method
        The server returns error -32601 for an unknown method.
        MUST
        base.error.method-not-found
    ");
    let clients = run(&sandbox, &["--list", "--client", "--only", "base"]);
    assert!(clients.contains("  client.base.id-type\n") && !clients.contains("\n  base."));
    let json = sandbox.run(&["check", "--list", "--json", "--only", "base.unknown-method"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rules"][0]["id"], "base.unknown-method");
    assert_eq!(json["rules"][0]["levels"]["2024-10-07"], "fail");
    let markdown = sandbox.run(&["check", "--list", "--format", "markdown"]);
    assert!(
        markdown.contains("| `base.unknown-method`<br>"),
        "{markdown}"
    );
}

#[test]
fn our_own_command_is_a_compliant_client() {
    let sandbox = Sandbox::new();
    let binary = env!("CARGO_BIN_EXE_turnbuckle");
    let check = |words: &[&str]| {
        let options = [
            "--client",
            "--only",
            "client.base",
            "--revision",
            "2026-07-28",
            "--",
        ];
        run(&sandbox, &[&options, words].concat())
    };

    let web = check(&[binary, "tools", "{url}"]);
    let stdio = check(&[binary, "tools", "--", "{server}"]);

    for seen in [web, stdio] {
        assert!(seen.contains("base protocol  ✓"), "{seen}");
        assert!(!seen.contains("exit"), "{seen}");
    }
}

#[test]
fn a_client_that_cannot_be_checked_is_exit_code_2() {
    let sandbox = Sandbox::new();
    let check = |words: &[&str]| {
        let options = ["--client", "--revision", "2025-11-25", "--"];
        run(&sandbox, &[&options, words].concat())
    };

    insta::assert_snapshot!(check(&["no-such-client", "{url}"]), @r"
    --- stderr
    error: the client supports none of the requested revisions
      2025-11-25: the client could not be started: program `no-such-client` not found

    hint: check that the command connects to `{url}` or `{server}`; increase --timeout for a slow client
    --- exit 2
    ");
    insta::assert_snapshot!(check(&["sh", "-c", "echo what is this? >&2; exit 3", "{url}"]), @r"
    --- stderr
    error: the client supports none of the requested revisions
      2025-11-25: the client never connected, and exited with code 3, after printing: what is this?

    hint: check that the command connects to `{url}` or `{server}`; increase --timeout for a slow client
    --- exit 2
    ");
    insta::assert_snapshot!(check(&["my-client"]), @r"
    --- stderr
    error: the command lacks a placeholder: `{url}` for the URL of the server or `{server}` for its command

    hint: for example `turnbuckle check --client -- my-client --url {url}`
    --- exit 2
    ");
}

#[test]
fn the_checklist_shows_every_line_with_its_rules_or_a_reason() {
    let sandbox = Sandbox::new();

    let text = sandbox.run(&["check", "--checklist"]);
    let json = sandbox.run(&["check", "--checklist", "--json"]);

    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "turnbuckle-checklist/1");
    let lines = json["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 133);
    for line in lines {
        let rules = line["rules"].as_array().unwrap();
        assert!(!rules.is_empty() || line["reason"].is_string(), "{line}");
        assert_eq!(line.get("verdict"), None, "{line}");
        let shown =
            |shown: &str| shown.starts_with(&format!("{} ", line["line"].as_str().unwrap()));
        assert!(text.lines().any(shown), "{line}");
    }
    assert!(text.contains("\n133 lines: "), "{text}");
}

#[test]
fn the_checklist_of_a_server_has_an_outcome_per_line() {
    let sandbox = Sandbox::new();
    let target = faulty_server(&sandbox);
    let rules = ["--only", "base", "--revision", "2025-11-25", "--checklist"];

    let compliant = run(&sandbox, &[&["SOCKET"], &rules[..]].concat());
    let json = run(&sandbox, &[&["SOCKET", "--json"], &rules[..]].concat());
    let faulty = run(&sandbox, &[&[&*target], &rules[..]].concat());

    assert!(compliant.contains("\n✓ 1.3/1 "), "{compliant}");
    assert!(compliant.contains("\n· 2.1/3 "), "{compliant}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let verdict = |id: &str| {
        let lines = json["lines"].as_array().unwrap();
        let line = lines.iter().find(|line| line["line"] == id);
        line.unwrap()["verdict"].clone()
    };
    assert_eq!(verdict("1.3/1"), "pass");
    assert_eq!(verdict("2.1/3"), Value::Null);
    assert!(
        faulty.contains("\n✗ 1/0 ") || faulty.starts_with("✗ 1/0 "),
        "{faulty}"
    );
    assert!(faulty.contains("rules are violated"), "{faulty}");
}

/// Checks a server in all revisions, and returns the number of violations of MUST and SHOULD.
fn violations(sandbox: &Sandbox, words: &[&str], revisions: usize) -> (Value, Value, Value) {
    let words = [&["check", "--json"], words].concat();
    let seen = sandbox.command(&words).output().unwrap();
    let report: Value = serde_json::from_slice(&seen.stdout)
        .unwrap_or_else(|_| panic!("{}", sandbox.render(&seen)));
    assert_eq!(report["runs"].as_array().unwrap().len(), revisions);
    let summary = &report["summary"];
    assert!(summary["pass"].as_u64().unwrap() > 50, "{summary}");
    let findings = report["findings"].clone();
    (summary["fail"].clone(), summary["warn"].clone(), findings)
}

#[test]
fn our_context_server_violates_no_rule_on_stdio() {
    let sandbox = Sandbox::new();
    let binary = env!("CARGO_BIN_EXE_turnbuckle");

    let (failed, warned, findings) = violations(
        &sandbox,
        &["--", binary, "serve", "--stdio", "--data", "d"],
        6,
    );

    assert_eq!((failed, warned), (json!(0), json!(0)), "{findings:#}");
}

#[test]
fn our_context_server_violates_no_rule_on_http() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::on_free_port(&sandbox);

    let (failed, warned, findings) = violations(&sandbox, &["--allow-writes", &server.address], 6);

    assert_eq!((failed, warned), (json!(0), json!(0)), "{findings:#}");
}

#[test]
fn our_context_server_violates_no_rule_on_http_sse() {
    let sandbox = Sandbox::new();
    let server = ServeProcess::start(&sandbox, &["--listen", "127.0.0.1:0", "--http-sse"]);
    let stream = server.address.replace("/mcp", "/sse");

    let words = ["--allow-writes", "--revision", "2024-11-05", &stream];
    let (failed, warned, findings) = violations(&sandbox, &words, 1);

    assert_eq!((failed, warned), (json!(0), json!(0)), "{findings:#}");
}
