use super::*;
use crate::target::config_files::{
    find_servers,
    tests::{TestHome, text},
};

const DEFINITION: &str = r#"{"mcpServers": {"weather": {
    "command": "npx", "args": ["-y", "weather server\u001b[2J"], "env": {"KEY": "hunter2", "REGION": "${REGION:-eu}"}
}}}"#;

/// Checks with typed input; `None` means without a terminal.
fn check(home: &TestHome, typed: Option<&str>) -> (Result, String) {
    check_in(home, &environment(home), typed)
}

/// Returns the environment of a user in the project, with programs in `~/bin`.
fn environment(home: &TestHome) -> Environment {
    let mut environment = home.environment("work");
    let path = home.path().join("bin").display().to_string();
    environment.vars.insert("PATH".into(), path);
    environment
}

fn check_in(home: &TestHome, environment: &Environment, typed: Option<&str>) -> (Result, String) {
    let found = find_servers(environment, None);
    let server = found.find_by_name("weather").unwrap();
    let resolved = server.resolve(environment).unwrap();
    let mut shown = Vec::new();
    let mut reader = typed.unwrap_or_default().as_bytes();
    let confirm_mode = match typed {
        Some(_) => ConfirmMode::Terminal(&mut reader, &mut shown),
        None => ConfirmMode::NoTerminal,
    };
    let result = ensure_trusted(server, &resolved, environment, confirm_mode);
    (
        result,
        text(home, &style::strip(&String::from_utf8(shown).unwrap())),
    )
}

fn project(definition: &str) -> TestHome {
    let home = TestHome::new();
    for program in ["npx", "sh", "serve"] {
        home.program(&format!("bin/{program}"));
    }
    home.write("work/.git/HEAD", "");
    home.write("work/.mcp.json", definition);
    home
}

#[test]
fn a_project_command_is_shown_and_confirmed_once() {
    let home = project(DEFINITION);

    let (result, shown) = check(&home, Some("perhaps\nyes\n"));
    let (again, silent) = check(&home, Some(""));

    result.unwrap();
    insta::assert_snapshot!(shown, @r"
    ~/work/.mcp.json defines `weather`:

      command   npx -y 'weather server\u{1b}[2J'
      program   ~/bin/npx
      in        ~/work
      sets      KEY=hunter2
                REGION='${REGION:-eu}'
      reads     REGION

    Use it? [y/n] Use it? [y/n]
    ");
    again.unwrap();
    assert_eq!(silent, "");
}

#[test]
fn neither_no_nor_end_of_input_is_stored() {
    let home = project(DEFINITION);

    for typed in ["n\n", ""] {
        let (result, shown) = check(&home, Some(typed));
        insta::allow_duplicates! {
            insta::assert_snapshot!(style::strip(&result.unwrap_err().render()), @"error: `weather` was not approved");
        }
        assert!(shown.contains("Use it?"));
    }
}

#[test]
fn a_changed_definition_needs_confirmation_again() {
    let home = project(DEFINITION);
    check(&home, Some("y\n")).0.unwrap();

    for (from, to) in [
        ("npx", "sh"),
        ("-y", "-x"),
        ("hunter2", "hunter3"),
        ("KEY", "LD_PRELOAD"),
    ] {
        home.write("work/.mcp.json", &DEFINITION.replace(from, to));
        assert!(check(&home, Some("")).0.is_err(), "{to}");
    }
}

#[test]
fn without_a_terminal_the_server_is_rejected_with_a_hint() {
    let home = project(DEFINITION);

    let failure = check(&home, None).0.unwrap_err();

    assert_eq!(failure.exit_code(), std::process::ExitCode::from(2));
    insta::assert_snapshot!(text(&home, &style::strip(&failure.render())), @r"
    error: ~/work/.mcp.json defines `weather`:

      command   npx -y 'weather server\u{1b}[2J'
      program   ~/bin/npx
      in        ~/work
      sets      KEY=hunter2
                REGION='${REGION:-eu}'
      reads     REGION

    this server is defined by a project and must be approved at a terminal

    hint: check the definition, then use `--yes`, or approve it once at a terminal
    ");
}

#[test]
fn a_url_is_confirmed_with_its_configuration_file() {
    let plain =
        project(r#"{"mcpServers": {"weather": {"type": "http", "url": "https://a.example"}}}"#);
    let greedy = project(
        r#"{"mcpServers": {"weather": {"type": "http", "url": "https://a.example", "headers": {"X-Key": "${HOME:-x}"}}}}"#,
    );

    let failure = check(&plain, None).0.unwrap_err();
    let (result, shown) = check(&greedy, Some("y\n"));

    insta::assert_snapshot!(text(&plain, &style::strip(&failure.render())), @r"
    error: ~/work/.mcp.json defines `weather`:

      URL       https://a.example

    this server is defined by a project and must be approved at a terminal

    hint: check the definition, then use `--yes`, or approve it once at a terminal
    ");
    result.unwrap();
    check(&greedy, None).0.unwrap();
    insta::assert_snapshot!(shown, @r"
    ~/work/.mcp.json defines `weather`:

      URL       https://a.example
      headers   X-Key
      reads     HOME

    Use it? [y/n]
    ");
}

#[test]
fn a_changed_url_header_or_host_needs_confirmation_again() {
    const REMOTE: &str = r#"{"mcpServers": {"weather": {
        "type": "http", "url": "https://${HOST:-a.example}/mcp?key=${KEY:-none}", "headers": {"X-Key": "one"}
    }}}"#;
    let home = project(REMOTE);
    check(&home, Some("y\n")).0.unwrap();
    let with = |name: &str, value: &str| {
        let mut environment = environment(&home);
        environment.vars.insert(name.into(), value.into());
        check_in(&home, &environment, None).0
    };

    with("KEY", "secret").unwrap();
    with("HOST", "b.example").unwrap_err();
    for (from, to) in [
        ("a.example", "b.example"),
        ("/mcp", "/other"),
        ("X-Key", "X-Other"),
        ("one", "two"),
        ("http\"", "sse\""),
    ] {
        home.write("work/.mcp.json", &REMOTE.replace(from, to));
        assert!(check(&home, None).0.is_err(), "{to}");
    }
    // The same definition in another file is another project.
    home.write("work/sub/.mcp.json", REMOTE);
    let mut elsewhere = environment(&home);
    elsewhere.cwd = home.path().join("work/sub");
    assert!(check_in(&home, &elsewhere, None).0.is_err());
}

#[test]
fn another_program_of_the_same_name_needs_confirmation() {
    let home = project(DEFINITION);
    check(&home, Some("y\n")).0.unwrap();
    check(&home, None).0.unwrap();
    home.program("work/node_modules/.bin/npx");
    let mut environment = environment(&home);
    let path = format!("{}/work/node_modules/.bin", home.path().display());
    environment.vars.insert("PATH".into(), path);

    let (result, shown) = check_in(&home, &environment, Some("n\n"));

    result.unwrap_err();
    assert!(
        shown.contains("  program   ~/work/node_modules/.bin/npx\n"),
        "{shown}"
    );
}

const WITH_FILE: &str = r#"{"mcpServers": {"weather": {"command": "serve", "cwd": "sub", "envFile": ".env", "env": {"LD_PRELOAD": "./x.so"}}}}"#;

#[test]
fn variables_of_a_file_are_shown_and_a_change_needs_confirmation() {
    let home = project(WITH_FILE);
    home.write("work/.env", "REGION=eu\nNODE_OPTIONS=--require ./x.js\n");

    let (result, shown) = check(&home, Some("y\n"));

    result.unwrap();
    insta::assert_snapshot!(shown, @r"
    ~/work/.mcp.json defines `weather`:

      command   serve
      program   ~/bin/serve
      in        ~/work/sub
      sets      LD_PRELOAD=./x.so
      envFile   ~/work/.env
                REGION=eu
                NODE_OPTIONS='--require ./x.js'

    warning: it sets variables that can make programs run other code: LD_PRELOAD, NODE_OPTIONS

    Use it? [y/n]
    ");
    check(&home, None).0.unwrap();
    home.write("work/.env", "REGION=eu\nNODE_OPTIONS=--require ./y.js\n");
    let failure = check(&home, None).0.unwrap_err();
    // The message may be logged, so it must not contain secrets.
    insta::assert_snapshot!(text(&home, &style::strip(&failure.render())), @r"
    error: ~/work/.mcp.json defines `weather`:

      command   serve
      program   ~/bin/serve
      in        ~/work/sub
      sets      LD_PRELOAD=./x.so
      envFile   ~/work/.env
                REGION=***
                NODE_OPTIONS='--require ./y.js'

    warning: it sets variables that can make programs run other code: LD_PRELOAD, NODE_OPTIONS

    this server is defined by a project and must be approved at a terminal

    hint: check the definition, then use `--yes`, or approve it once at a terminal
    ");
}

#[test]
fn values_of_a_file_outside_of_the_project_are_the_users_own() {
    let home = project(&WITH_FILE.replace(".env", "../secrets.env"));
    home.write("secrets.env", "KEY=hunter2\nPATH=/opt/bin:bin\n");
    home.program("work/sub/bin/serve");

    let (_, shown) = check(&home, Some("n\n"));

    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("            KEY=***\n"), "{shown}");
    assert!(shown.contains("            PATH=/opt/bin:bin\n"), "{shown}");
    assert!(
        shown.contains("  program   ~/work/sub/bin/serve\n"),
        "{shown}"
    );
}

#[test]
fn no_value_can_imitate_another_row() {
    let padded = format!("x{}  program   /usr/bin/true", " ".repeat(85));
    let definition = serde_json::json!({"mcpServers": {"weather": {
        "command": "serve", "args": ["a\n  program   /usr/bin/true", "\u{202e}eslaf"],
        "env": {"A\u{1b}[8m": "1", "B": padded},
    }}});

    let (_, shown) = check(&project(&definition.to_string()), Some("n\n"));

    let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    ~/work/.mcp.json defines `weather`:

      command   serve 'a\n  program   /usr/bin/true' '\u{202e}eslaf'
      program   ~/bin/serve
      in        ~/work
      sets      'A\u{1b}[8m'=1
                B='x
                  program   /usr/bin/true'

    Use it? [y/n]
    ");
}

#[test]
fn values_of_variables_are_not_shown() {
    let definition =
        r#"{"mcpServers": {"weather": {"command": "serve", "args": ["--key=${KEY:-hunter2}"]}}}"#;

    let (_, shown) = check(&project(definition), Some("n\n"));

    assert!(
        shown.contains("command   serve '--key=${KEY:-hunter2}'\n"),
        "{shown}"
    );
}

#[test]
fn the_users_own_files_are_trusted() {
    let home = TestHome::new();
    home.write(".claude.json", DEFINITION);
    home.write("work/.git/HEAD", "");

    check(&home, None).0.unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_trust_file() {
    use std::os::unix::fs::PermissionsExt;
    let home = project(DEFINITION);
    check(&home, Some("y\n")).0.unwrap();

    let folder = home.path().join(".local/state/turnbuckle");
    let mode = std::fs::metadata(folder.join("trust.json"))
        .unwrap()
        .permissions()
        .mode();

    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
}

#[test]
fn an_unreadable_trust_file_asks_again() {
    let home = project(DEFINITION);
    home.write(".local/state/turnbuckle/trust.json", "{");

    assert!(check(&home, Some("")).0.is_err());
    check(&home, Some("y\n")).0.unwrap();
    check(&home, Some("")).0.unwrap();
}

#[test]
fn a_long_definition_ends_with_its_command_and_program() {
    let env: serde_json::Map<_, _> = (0..300).map(|n| (format!("LD_{n}"), "1".into())).collect();
    let definition = serde_json::json!({"mcpServers": {"weather": {
        "command": "serve", "args": ["a".repeat(5_000)], "env": env,
    }}});

    let (_, shown) = check(&project(&definition.to_string()), Some("n\n"));

    let lines: Vec<_> = shown.trim_end().lines().collect();
    let end = &lines[lines.len() - 10..];
    let has_command = end.iter().any(|line| line.starts_with("  command   serve"));
    assert!(has_command, "{end:#?}");
    assert_eq!(
        end[7..],
        ["  program   ~/bin/serve", "", "Use it? [y/n]"],
        "{end:#?}"
    );
}
