//! Listening for changes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::stage::Stage;

#[test]
fn ctrl_c_ends_listening_with_success() {
    let stage = Stage::new();
    let mut child = stage
        .command(&["listen", "SOCKET", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();

    let first = lines.next().unwrap().unwrap();
    interrupt(&child);

    insta::assert_snapshot!(first, @r#"{"listening":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}"#);
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none());
}

#[test]
fn changes_are_told_as_they_come() {
    for era in ["modern", "legacy"] {
        let stage = Stage::new();
        let words = [
            "listen",
            "SOCKET",
            "--resource",
            "weather://sky",
            "--era",
            era,
        ];
        let mut command = stage.command(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();

        let ready = talk.next().unwrap().unwrap();
        stage.run(&["call", "SOCKET", "measure"]);
        let change = told.next().unwrap().unwrap();
        interrupt(&child);

        assert_eq!(ready, "listening; Ctrl-C stops");
        assert_eq!(change, "weather://sky changed");
        assert!(child.wait().unwrap().success());
    }
}

/// Presses Ctrl-C.
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
}
