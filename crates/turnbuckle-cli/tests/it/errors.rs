//! Tests of usage errors, connection errors and closed pipes.

use std::process::Stdio;

use crate::sandbox::Sandbox;

#[test]
fn an_unreachable_server_is_exit_code_2() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["info", "unix:nowhere.sock"]), @r"
    --- stderr
    error: the server cannot be reached: reading or writing failed: No such file or directory (os error 2)
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["info", "unknown"]), @r"
    --- stderr
    error: no server `unknown` is configured

    hint: list configured servers with `turnbuckle servers`, or start a program with `-- PROGRAM`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["info", "gopher://a"]), @r"
    --- stderr
    error: unsupported scheme `gopher:`

    hint: use http://, https:// or unix:PATH
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["info", "--", "/no/such/program"]), @r"
    --- stderr
    error: program `/no/such/program` not found
    --- exit 2
    ");
}

#[test]
fn a_timeout_is_exit_code_2() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["call", "SOCKET", "sleep", "--timeout", "300ms"]), @r"
    --- stderr
    error: `tools/call` got no response within 300ms

    hint: increase `--timeout`
    --- exit 2
    ");
}

#[test]
fn an_invalid_command_line_is_exit_code_2() {
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["tools", "SOCKET", "a", "b"]), @r"
    --- stderr
    error: unexpected argument 'b' found

    Usage: turnbuckle tools [OPTIONS] <TARGET> [NAME]
           turnbuckle tools [OPTIONS] [NAME] -- <COMMAND>...

    For more information, try '--help'.
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["read", "SOCKET"]), @r"
    --- stderr
    error: missing argument URI

    hint: see `turnbuckle read --help`
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["tools"]), @r"
    --- stderr
    error: missing argument TARGET

    hint: see `turnbuckle tools --help`
    --- exit 2
    ");
}

#[test]
fn a_closed_pipe_is_success() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .command(&["tools", "SOCKET", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();

    assert_eq!(sandbox.render(&output), "");
}

#[test]
fn a_bare_command_shows_the_help_and_fails() {
    let sandbox = Sandbox::new();

    let seen = sandbox.run(&[]);

    assert!(seen.contains("Usage: turnbuckle"), "{seen}");
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");
}
