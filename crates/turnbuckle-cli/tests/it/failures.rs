//! What cannot be asked, and output that nobody reads.

use std::process::Stdio;

use crate::stage::Stage;

#[test]
fn a_server_that_is_not_there_is_exit_code_2() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["info", "unix:nowhere.sock"]), @r"
    --- stderr
    error: the server cannot be reached: reading or writing failed: No such file or directory (os error 2)
    --- exit 2
    ");
    insta::assert_snapshot!(stage.run(&["info", "nobody"]), @r"
    --- stderr
    error: no server `nobody` is configured

    hint: `turnbuckle servers` lists those that are; a program is started by `-- PROGRAM`
    --- exit 2
    ");
    insta::assert_snapshot!(stage.run(&["info", "gopher://a"]), @r"
    --- stderr
    error: a server cannot be reached by `gopher:`

    hint: use http://, https:// or unix:PATH
    --- exit 2
    ");
    insta::assert_snapshot!(stage.run(&["info", "--", "/no/such/program"]), @r"
    --- stderr
    error: there is no program `/no/such/program`
    --- exit 2
    ");
}

#[test]
fn a_late_answer_is_exit_code_2() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["call", "SOCKET", "sleep", "--timeout", "300ms"]), @r"
    --- stderr
    error: `tools/call` got no answer within 300ms

    hint: wait longer with `--timeout`
    --- exit 2
    ");
}

#[test]
fn a_command_line_that_makes_no_sense_is_exit_code_2() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["tools", "SOCKET", "a", "b"]), @r"
    --- stderr
    error: unexpected argument 'b' found

    Usage: turnbuckle tools [OPTIONS] <TARGET> [NAME]
           turnbuckle tools [OPTIONS] [NAME] -- <COMMAND>...

    For more information, try '--help'.
    --- exit 2
    ");
    insta::assert_snapshot!(stage.run(&["read", "SOCKET"]), @r"
    --- stderr
    error: URI is missing

    hint: see `turnbuckle read --help`
    --- exit 2
    ");
    insta::assert_snapshot!(stage.run(&["tools"]), @r"
    --- stderr
    error: TARGET is missing

    hint: see `turnbuckle tools --help`
    --- exit 2
    ");
}

#[test]
fn a_closed_pipe_is_success() {
    let stage = Stage::new();
    let mut child = stage
        .command(&["tools", "SOCKET", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();

    assert_eq!(stage.seen(&output), "");
}

#[test]
fn a_bare_command_shows_the_help_and_fails() {
    let stage = Stage::new();

    let seen = stage.run(&[]);

    assert!(seen.contains("Usage: turnbuckle"), "{seen}");
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");
}
