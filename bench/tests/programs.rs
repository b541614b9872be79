//! The programs as processes of the one binary.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

const BINARY: &str = env!("CARGO_BIN_EXE_turnbuckle-bench");

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn without_a_known_name_the_list_is_printed_and_the_exit_code_is_2() {
    let list = run(&["--help"]);
    let unnamed = run(&[]);
    let unknown = run(&["bear", "--stdio"]);

    assert_eq!(list.status.code(), Some(0));
    let list = text(&list.stdout);
    assert!(
        list.starts_with("usage: turnbuckle-bench PROGRAM"),
        "{list}"
    );
    assert_eq!(unnamed.status.code(), Some(2));
    assert_eq!(text(&unnamed.stderr), list);
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(
        text(&unknown.stderr),
        format!("error: unknown program `bear`\n\n{list}")
    );
}

#[test]
fn an_error_of_a_program_exits_with_2() {
    for program in ["bare", "echo-server", "echo-client", "bare-client"] {
        let output = run(&[program]);

        assert_eq!(output.status.code(), Some(2), "{program}");
        let error = text(&output.stderr);
        assert!(error.starts_with("error: "), "{program}: {error}");
    }
}

#[test]
fn both_servers_send_the_same_response_on_stdio() {
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
    let response = |arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(arguments).stdin(Stdio::piped());
        let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
        writeln!(server.stdin.take().unwrap(), "{call}").unwrap();
        text(&server.wait_with_output().unwrap().stdout)
    };

    let limit = response(&["bare", "stdio"]);

    assert_eq!(limit, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
    assert_eq!(response(&["echo-server", "--stdio"]), limit);
}

#[test]
fn both_clients_call_both_servers() {
    for client in ["bare-client", "echo-client"] {
        for server in ["bare stdio", "echo-server --stdio"] {
            for era in ["modern", "legacy"] {
                let command = format!("{BINARY} {server}");

                let output = run(&[client, "--stdio", &command, "--era", era, "--calls", "3"]);

                let error = text(&output.stderr);
                assert!(output.status.success(), "{client}, {server}: {error}");
                let report = text(&output.stdout);
                assert!(report.starts_with(r#"{"calls":3,"#), "{report}");
            }
        }
    }
}
