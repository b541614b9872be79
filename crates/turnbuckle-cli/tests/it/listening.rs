//! Listening for changes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

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
    Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();

    insta::assert_snapshot!(first, @r#"{"listening":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}"#);
    assert!(child.wait().unwrap().success());
    assert!(lines.next().is_none());
}
