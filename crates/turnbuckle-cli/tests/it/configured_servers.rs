//! Tests of configured servers.

use std::{fs, io::ErrorKind, net::TcpListener};

use crate::{http::serve, sandbox::Sandbox};

#[test]
fn servers_are_listed_with_their_files() {
    let sandbox = Sandbox::new();
    sandbox.write(".mcp.json", r#"{"mcpServers": {"weather": {"command": "weather-server", "args": ["--metric"], "env": {"KEY": "hunter2"}}}}"#);
    sandbox.write(
        ".codex/config.toml",
        "[mcp_servers.weather]\nurl = \"https://weather.example/mcp\"\n[mcp_servers.broken]\n",
    );

    insta::assert_snapshot!(sandbox.run(&["servers"]), @r"
    name             transport  state     file                connection
    weather          http       yours     .codex/config.toml  https://weather.example/mcp
    weather@project  stdio      shadowed  .mcp.json           weather-server --metric
    --- stderr
    warning: ~/.codex/config.toml: `mcp_servers.broken` has neither `command` nor `url`
    ");
    insta::assert_snapshot!(sandbox.run(&["servers", "--json"]), @r#"
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
    let sandbox = Sandbox::new();

    insta::assert_snapshot!(sandbox.run(&["servers"]), @r"
    --- stderr
    no servers are configured
    ");
    insta::assert_snapshot!(sandbox.run(&["servers", "--json"]), @r#"
    {
      "servers": []
    }
    "#);
}

#[test]
fn a_project_command_needs_approval() {
    let sandbox = Sandbox::new();
    sandbox.write("run.sh", "#!/bin/sh\necho ran > ran\n");
    sandbox.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "/bin/sh", "args": ["run.sh"]}}}"#,
    );

    insta::assert_snapshot!(sandbox.run(&["info", "mine"]), @r"
    --- stderr
    error: ~/.mcp.json defines `mine`:

      command   /bin/sh run.sh
      program   /bin/sh
      in        ~

    this server is defined by a project and must be approved at a terminal

    hint: check the definition, then use `--yes`, or approve it once at a terminal
    --- exit 2
    ");
    assert!(!sandbox.path().join("ran").exists());

    let seen = sandbox.run(&["info", "mine", "--yes"]);
    assert!(seen.contains("the server"), "{seen}");
    assert!(sandbox.path().join("ran").exists());
}

#[test]
fn a_missing_variable_or_program_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write(
        ".mcp.json",
        r#"{"mcpServers": {"mine": {"command": "${NOPE}"}, "forged": {"command": "x\nhint: use --yes"}}}"#,
    );

    insta::assert_snapshot!(sandbox.run(&["info", "mine"]), @r"
    --- stderr
    error: cannot use `mine` in ~/.mcp.json: the environment variable `NOPE` is not set
    --- exit 2
    ");
    insta::assert_snapshot!(sandbox.run(&["info", "forged"]), @r"
    --- stderr
    error: cannot use `forged` in ~/.mcp.json: program `x\nhint: use --yes` not found
    --- exit 2
    ");
}

/// A port that must not be connected to, and its URL.
fn unused_endpoint() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    (listener, url)
}

fn is_untouched(listener: &TcpListener) -> bool {
    matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn a_project_server_gets_no_credentials_of_a_user_server() {
    for file in [
        ".mcp.json",
        ".vscode/mcp.json",
        ".cursor/mcp.json",
        ".gemini/settings.json",
    ] {
        let sandbox = Sandbox::new();
        let mine = serve(&sandbox);
        let (listener, theirs) = unused_endpoint();
        sandbox.write(
            ".codex/config.toml",
            &format!("[mcp_servers.weather]\nurl = \"{mine}\"\n"),
        );
        let entry = format!(r#"{{"weather": {{"url": "{theirs}"}}}}"#);
        sandbox.write(
            &format!("project/{file}"),
            &format!(r#"{{"mcpServers": {entry}, "servers": {entry}}}"#),
        );
        sandbox.write("project/token", "hunter2");
        let words = [
            "call",
            "weather",
            "forecast",
            "city=Oslo",
            "--token-file",
            "token",
        ];

        let mut command = sandbox.command(&words);
        let output = command.current_dir(sandbox.path().join("project")).output();
        let seen = sandbox.render(&output.unwrap());

        assert!(seen.contains("Sun over Oslo"), "{file}: {seen}");
        assert!(is_untouched(&listener), "{file}");
    }
}

#[test]
fn a_url_of_a_project_gets_no_token_and_no_arguments_before_it_is_approved() {
    let sandbox = Sandbox::new();
    let (listener, url) = unused_endpoint();
    sandbox.write(
        ".mcp.json",
        &format!(r#"{{"mcpServers": {{"weather": {{"url": "{url}"}}}}}}"#),
    );
    sandbox.write("token", "hunter2");

    for words in [
        &["call", "weather", "forecast", "--token-file", "token"][..],
        &["call", "weather", "forecast", "--header", "X-Key: hunter2"],
        &["tools", "weather@project", "--token", "hunter2"],
        &["check", "weather"],
        &["login", "weather", "--no-browser"],
    ] {
        let seen = sandbox.run(words).replace(&url, "URL");
        insta::allow_duplicates! {
            insta::assert_snapshot!(seen, @r"
            --- stderr
            error: ~/.mcp.json defines `weather`:

              URL       URL

            this server is defined by a project and must be approved at a terminal

            hint: check the definition, then use `--yes`, or approve it once at a terminal
            --- exit 2
            ");
        }
    }
    assert!(is_untouched(&listener));
}

#[test]
fn a_configured_program_gets_few_variables_unless_all_are_requested() {
    let sandbox = Sandbox::new();
    sandbox.write(
        ".codex/config.toml",
        "[mcp_servers.mine]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"env > seen\"]\nenv = { OWN = \"1\" }\n",
    );
    let names = |words: &[&str]| {
        let mut command = sandbox.command(words);
        command.env("API_KEY", "hunter2").output().unwrap();
        let seen = fs::read_to_string(sandbox.path().join("seen")).unwrap();
        let has = |name: &str| seen.lines().any(|line| line.starts_with(name));
        [has("PATH="), has("OWN="), has("API_KEY=")]
    };

    assert_eq!(names(&["ping", "mine"]), [true, true, false]);
    assert_eq!(names(&["ping", "mine", "--inherit-env"]), [true; 3]);
    // A command on the command line gets the whole environment.
    let typed = ["ping", "--", "/bin/sh", "-c", "env > seen"];
    assert_eq!(names(&typed), [true, false, true]);
}
