//! Servers that are named in a configuration.

use crate::stage::Stage;

#[test]
fn servers_are_listed_with_their_places() {
    let stage = Stage::new();
    stage.write(".mcp.json", r#"{"mcpServers": {"weather": {"command": "weather-server", "args": ["--metric"], "env": {"KEY": "hunter2"}}}}"#);
    stage.write(
        ".codex/config.toml",
        "[mcp_servers.weather]\nurl = \"https://weather.example/mcp\"\n[mcp_servers.broken]\n",
    );

    insta::assert_snapshot!(stage.run(&["servers"]), @r"");
    insta::assert_snapshot!(stage.run(&["servers", "--json"]), @r"");
}

#[test]
fn without_servers_nothing_is_listed() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["servers"]), @r"");
    insta::assert_snapshot!(stage.run(&["servers", "--json"]), @r"");
}

#[test]
fn a_projects_command_needs_consent() {
    let stage = Stage::new();
    stage.write("run.sh", "#!/bin/sh\necho ran > ran\n");
    stage.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "/bin/sh", "args": ["run.sh"]}}}"#,
    );

    insta::assert_snapshot!(stage.run(&["info", "mine"]), @r"");
    assert!(!stage.path().join("ran").exists());

    let seen = stage.run(&["info", "mine", "--yes"]);
    assert!(seen.contains("the server"), "{seen}");
    assert!(stage.path().join("ran").exists());
}

#[test]
fn a_variable_that_is_not_set_is_named() {
    let stage = Stage::new();
    stage.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "${NOPE}"}}}"#,
    );

    insta::assert_snapshot!(stage.run(&["info", "mine"]), @r"");
}
