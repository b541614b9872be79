//! What a server has, as people see it and as programs do.

use crate::stage::Stage;

#[test]
fn tools_are_signatures() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["tools", "SOCKET"]), @r"");
    insta::assert_snapshot!(stage.run(&["tools", "SOCKET", "forecast"]), @r"");
    insta::assert_snapshot!(stage.run(&["tools", "SOCKET", "forecast", "--json"]), @r"");
    insta::assert_snapshot!(stage.run(&["tools", "SOCKET", "rain"]), @r"");
}

#[test]
fn every_tool_is_in_the_document() {
    let stage = Stage::new();

    let output = stage
        .command(&["tools", "SOCKET", "--json"])
        .output()
        .unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();

    let names: Vec<_> = document["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(
        names,
        ["forecast", "measure", "picture", "shout", "sleep", "rename"]
    );
}

#[test]
fn resources_and_templates_are_tables() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["resources", "SOCKET"]), @r"");
}

#[test]
fn prompts_are_signatures() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["prompts", "SOCKET"]), @r"");
    insta::assert_snapshot!(stage.run(&["prompts", "SOCKET", "--json"]), @r"");
}

#[test]
fn a_server_tells_of_itself_in_either_era() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["info", "SOCKET"]), @r"");
    insta::assert_snapshot!(stage.run(&["info", "SOCKET", "--era", "legacy"]), @r"");
    insta::assert_snapshot!(stage.run(&["info", "SOCKET", "--json"]), @r"");
}

#[test]
fn colours_are_there_only_when_they_are_wanted() {
    let stage = Stage::new();
    let coloured = |words: &[&str]| stage.run(words).contains('\u{1b}');

    assert!(!coloured(&["prompts", "SOCKET"]));
    assert!(coloured(&["prompts", "SOCKET", "--color", "always"]));
    assert!(!coloured(&[
        "prompts", "SOCKET", "--color", "always", "--json"
    ]));
}
