//! Servers that are named in a configuration.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;

use crate::http::serve;
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
    name             transport  state     file                reached by
    weather          http       yours     .codex/config.toml  https://weather.example/mcp
    weather@project  stdio      shadowed  .mcp.json           weather-server --metric
    --- stderr
    warning: ~/.codex/config.toml: `mcp_servers.broken` has neither `command` nor `url`
    ");
    insta::assert_snapshot!(stage.run(&["servers", "--json"]), @r#"
    {
      "servers": [
        {
          "name": "weather",
          "source": "codex",
          "file": "~/.codex/config.toml",
          "scope": "user",
          "hidden": false,
          "approved": true,
          "transport": "http",
          "url": "https://weather.example/mcp",
          "headers": {}
        },
        {
          "name": "weather",
          "source": "project",
          "file": "~/.mcp.json",
          "scope": "project",
          "hidden": true,
          "approved": false,
          "transport": "stdio",
          "command": "weather-server",
          "args": [
            "--metric"
          ],
          "env": {
            "KEY": "***"
          }
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
      program   /bin/sh
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
fn a_variable_or_a_program_that_is_not_there_is_named() {
    let stage = Stage::new();
    stage.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "${NOPE}"}, "forged": {"command": "x\nhint: use --yes"}}}"#,
    );

    insta::assert_snapshot!(stage.run(&["info", "mine"]), @r"
    --- stderr
    error: `mine` of ~/.mcp.json cannot be used: the environment variable `NOPE` is not set
    --- exit 2
    ");
    insta::assert_snapshot!(stage.run(&["info", "forged"]), @r"
    --- stderr
    error: `forged` of ~/.mcp.json cannot be used: there is no program `x\nhint: use --yes`
    --- exit 2
    ");
}

/// A port that nobody should connect to, and its URL.
fn bait() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    (listener, url)
}

fn is_untouched(listener: &TcpListener) -> bool {
    matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn a_project_gets_nothing_that_is_meant_for_a_server_of_the_user() {
    for file in [
        ".mcp.json",
        ".vscode/mcp.json",
        ".cursor/mcp.json",
        ".gemini/settings.json",
    ] {
        let stage = Stage::new();
        let mine = serve(&stage);
        let (listener, theirs) = bait();
        stage.write(
            ".codex/config.toml",
            &format!("[mcp_servers.weather]\nurl = \"{mine}\"\n"),
        );
        let entry = format!(r#"{{"weather": {{"url": "{theirs}"}}}}"#);
        stage.write(
            &format!("project/{file}"),
            &format!(r#"{{"mcpServers": {entry}, "servers": {entry}}}"#),
        );
        stage.write("project/token", "hunter2");
        let words = [
            "call",
            "weather",
            "forecast",
            "city=Oslo",
            "--token-file",
            "token",
        ];

        let mut command = stage.command(&words);
        let output = command.current_dir(stage.path().join("project")).output();
        let seen = stage.seen(&output.unwrap());

        assert!(seen.contains("Sun over Oslo"), "{file}: {seen}");
        assert!(is_untouched(&listener), "{file}");
    }
}

#[test]
fn a_url_of_a_project_gets_no_token_and_no_arguments_before_it_is_approved() {
    let stage = Stage::new();
    let (listener, url) = bait();
    stage.write(
        ".mcp.json",
        &format!(r#"{{"mcpServers": {{"weather": {{"url": "{url}"}}}}}}"#),
    );
    stage.write("token", "hunter2");

    for words in [
        &["call", "weather", "forecast", "--token-file", "token"][..],
        &["call", "weather", "forecast", "--header", "X-Key: hunter2"],
        &["tools", "weather@project", "--token", "hunter2"],
        &["check", "weather"],
        &["login", "weather", "--no-browser"],
    ] {
        let seen = stage.run(words).replace(&url, "URL");
        insta::allow_duplicates! {
            insta::assert_snapshot!(seen, @r"
            --- stderr
            error: ~/.mcp.json says that `weather` is

              URL       URL

            it came with a project, and there is no terminal to ask whether to use it

            hint: look at it, then use `--yes`, or answer once at a terminal
            --- exit 2
            ");
        }
    }
    assert!(is_untouched(&listener));
}

#[test]
fn a_configured_program_gets_a_short_list_of_variables_unless_all_are_asked_for() {
    let stage = Stage::new();
    stage.write(
        ".codex/config.toml",
        "[mcp_servers.mine]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"env > seen\"]\nenv = { OWN = \"1\" }\n",
    );
    let names = |words: &[&str]| {
        let mut command = stage.command(words);
        command.env("API_KEY", "hunter2").output().unwrap();
        let seen = fs::read_to_string(stage.path().join("seen")).unwrap();
        let has = |name: &str| seen.lines().any(|line| line.starts_with(name));
        [has("PATH="), has("OWN="), has("API_KEY=")]
    };

    assert_eq!(names(&["ping", "mine"]), [true, true, false]);
    assert_eq!(names(&["ping", "mine", "--inherit-env"]), [true; 3]);
    // A command that is typed sees what the user's shell has.
    let typed = ["ping", "--", "/bin/sh", "-c", "env > seen"];
    assert_eq!(names(&typed), [true, false, true]);
}
