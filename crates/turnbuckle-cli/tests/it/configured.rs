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

    insta::assert_snapshot!(stage.run(&["servers"]), @r"
    name           transport  file                reached by
    weather        stdio      .mcp.json           weather-server --metric
    weather@codex  http       .codex/config.toml  https://weather.example/mcp
    --- stderr
    warning: ~/.codex/config.toml: `mcp_servers.broken` has neither `command` nor `url`
    ");
    insta::assert_snapshot!(stage.run(&["servers", "--json"]), @r#"
    {
      "servers": [
        {
          "name": "weather",
          "source": "project",
          "file": "~/.mcp.json",
          "hidden": false,
          "transport": "stdio",
          "command": "weather-server",
          "args": [
            "--metric"
          ],
          "env": {
            "KEY": "***"
          }
        },
        {
          "name": "weather",
          "source": "codex",
          "file": "~/.codex/config.toml",
          "hidden": true,
          "transport": "http",
          "url": "https://weather.example/mcp",
          "headers": {}
        }
      ]
    }
    --- stderr
    warning: ~/.codex/config.toml: `mcp_servers.broken` has neither `command` nor `url`
    "#);
}

#[test]
fn without_servers_nothing_is_listed() {
    let stage = Stage::new();

    insta::assert_snapshot!(stage.run(&["servers"]), @r"
    --- stderr
    no servers are configured
    ");
    insta::assert_snapshot!(stage.run(&["servers", "--json"]), @r#"
    {
      "servers": []
    }
    "#);
}

#[test]
fn a_projects_command_needs_consent() {
    let stage = Stage::new();
    stage.write("run.sh", "#!/bin/sh\necho ran > ran\n");
    stage.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "/bin/sh", "args": ["run.sh"]}}}"#,
    );

    insta::assert_snapshot!(stage.run(&["info", "mine"]), @r"
    --- stderr
    error: ~/.mcp.json says that `mine` is

      command   /bin/sh run.sh
      in        ~

    it came with a project, and there is no terminal to ask whether to use it

    hint: look at it, then use `--yes`, or answer once at a terminal
    --- exit 2
    ");
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

    insta::assert_snapshot!(stage.run(&["info", "mine"]), @r"
    --- stderr
    error: `mine` of ~/.mcp.json cannot be used: the environment variable `NOPE` is not set
    --- exit 2
    ");
}
