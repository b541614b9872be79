//! What cannot be asked, and output that nobody reads.

use std::process::Stdio;

use crate::stage::Stage;

#[test]
fn a_server_that_is_not_there_is_exit_code_2() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["info", "unix:nowhere.sock"]), @r"");
    insta::assert_snapshot!(stage.run(&["info", "nobody"]), @r"");
    insta::assert_snapshot!(stage.run(&["info", "gopher://a"]), @r"");
    insta::assert_snapshot!(stage.run(&["info", "--", "/no/such/program"]), @r"");
}

#[test]
fn a_late_answer_is_exit_code_2() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["call", "SOCKET", "sleep", "--timeout", "300ms"]), @r"");
}

#[test]
fn a_command_line_that_makes_no_sense_is_exit_code_2() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["tools", "SOCKET", "a", "b"]), @r"");
    insta::assert_snapshot!(stage.run(&["read", "SOCKET"]), @r"");
    insta::assert_snapshot!(stage.run(&["tools"]), @r"");
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
