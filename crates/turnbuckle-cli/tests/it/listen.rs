//! Tests of `listen`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use crate::sandbox::Sandbox;

#[test]
fn ctrl_c_ends_listening_with_success() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
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
fn changes_are_printed_as_they_arrive() {
    for era in ["modern", "legacy"] {
        let sandbox = Sandbox::new();
        let words = [
            "listen",
            "SOCKET",
            "--resource",
            "weather://sky",
            "--era",
            era,
        ];
        let mut command = sandbox.command(&words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();

        let ready = stderr.next().unwrap().unwrap();
        sandbox.run(&["call", "SOCKET", "measure"]);
        let change = stdout.next().unwrap().unwrap();
        interrupt(&child);

        assert_eq!(ready, "listening; press Ctrl-C to stop");
        assert_eq!(change, "weather://sky changed");
        assert!(child.wait().unwrap().success());
    }
}

/// Sends SIGINT.
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
}
