use super::*;
use crate::servers::find;
use crate::servers::tests::{Home, text};

const DEFINITION: &str = r#"{"mcpServers": {"weather": {
    "command": "npx", "args": ["-y", "weather server\u001b[2J"], "env": {"KEY": "hunter2", "REGION": "${REGION:-eu}"}
}}}"#;

/// Answers with what is typed; without it there is no terminal.
fn check(home: &Home, typed: Option<&str>) -> (Result, String) {
    let environment = home.environment("work");
    let found = find(&environment, None);
    let server = found.pick("weather").unwrap();
    let resolved = server.resolve(&environment).unwrap();
    let mut shown = Vec::new();
    let mut reader = typed.unwrap_or_default().as_bytes();
    let asking = match typed {
        Some(_) => Asking::Terminal(&mut reader, &mut shown),
        None => Asking::NoTerminal,
    };
    let result = ensure(server, &resolved, &environment, asking);
    (
        result,
        text(home, &style::without(&String::from_utf8(shown).unwrap())),
    )
}

fn project(definition: &str) -> Home {
    let home = Home::new();
    home.write("work/.git/HEAD", "");
    home.write("work/.mcp.json", definition);
    home
}

#[test]
fn a_command_of_a_project_is_shown_and_asked_for_once() {
    let home = project(DEFINITION);

    let (result, shown) = check(&home, Some("perhaps\nyes\n"));
    let (again, silent) = check(&home, Some(""));

    result.unwrap();
    insta::assert_snapshot!(shown, @r"
    ~/work/.mcp.json says that `weather` is

      command   npx -y 'weather server\u{1b}[2J'
      sets      KEY, REGION
      in        ~/work
      reads     REGION

    Use it? [y/n] Use it? [y/n]
    ");
    again.unwrap();
    assert_eq!(silent, "");
}

#[test]
fn no_is_not_remembered_and_nor_is_silence() {
    let home = project(DEFINITION);

    for typed in ["n\n", ""] {
        let (result, shown) = check(&home, Some(typed));
        insta::allow_duplicates! {
            insta::assert_snapshot!(style::without(&result.unwrap_err().render()), @"error: `weather` was not started");
        }
        assert!(shown.contains("Use it?"));
    }
}

#[test]
fn a_changed_definition_is_asked_for_again() {
    let home = project(DEFINITION);
    check(&home, Some("y\n")).0.unwrap();

    for (from, to) in [
        ("npx", "sh"),
        ("-y", "-x"),
        ("hunter2", "hunter3"),
        ("KEY", "PATH"),
    ] {
        home.write("work/.mcp.json", &DEFINITION.replace(from, to));
        assert!(check(&home, Some("")).0.is_err(), "{to}");
    }
}

#[test]
fn without_a_terminal_it_is_refused_with_a_way_on() {
    let home = project(DEFINITION);

    let failure = check(&home, None).0.unwrap_err();

    assert_eq!(failure.exit_code(), std::process::ExitCode::from(2));
    insta::assert_snapshot!(text(&home, &style::without(&failure.render())), @r"
    error: ~/work/.mcp.json says that `weather` is

      command   npx -y 'weather server\u{1b}[2J'
      sets      KEY, REGION
      in        ~/work
      reads     REGION

    it came with a project, and there is no terminal to ask whether to use it

    hint: look at it, then use `--yes`, or answer once at a terminal
    ");
}

#[test]
fn a_url_is_asked_for_only_if_it_is_sent_variables() {
    let plain =
        project(r#"{"mcpServers": {"weather": {"type": "http", "url": "https://a.example"}}}"#);
    let greedy = project(
        r#"{"mcpServers": {"weather": {"type": "http", "url": "https://a.example", "headers": {"X-Key": "${HOME:-x}"}}}}"#,
    );

    check(&plain, None).0.unwrap();
    let (result, shown) = check(&greedy, Some("y\n"));

    result.unwrap();
    insta::assert_snapshot!(shown, @r"
    ~/work/.mcp.json says that `weather` is

      URL       https://a.example
      headers   X-Key
      reads     HOME

    Use it? [y/n]
    ");
}

#[test]
fn what_a_variable_stands_for_is_not_shown() {
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
    let home = Home::new();
    home.write(".claude.json", DEFINITION);
    home.write("work/.git/HEAD", "");

    check(&home, None).0.unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_what_is_remembered() {
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
fn a_broken_memory_is_asked_again() {
    let home = project(DEFINITION);
    home.write(".local/state/turnbuckle/trust.json", "{");

    assert!(check(&home, Some("")).0.is_err());
    check(&home, Some("y\n")).0.unwrap();
    check(&home, Some("")).0.unwrap();
}
