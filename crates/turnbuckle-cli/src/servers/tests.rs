use std::fs;

use super::expand::ExpandError;
use super::*;
use crate::environment::{Platform, Terminal};

/// A home folder that is thrown away.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let file = self.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Stands in a folder below it.
    pub(crate) fn environment(&self, cwd: &str) -> Environment {
        let cwd = self.path().join(cwd);
        fs::create_dir_all(&cwd).unwrap();
        Environment {
            platform: Platform::Linux,
            home: Some(self.path().to_owned()),
            cwd,
            vars: Default::default(),
            user: "ada".to_owned(),
            terminal: Terminal {
                asks: false,
                reads: false,
                width: 100,
            },
        }
    }
}

/// Returns text with the path of the home folder as `~`.
pub(crate) fn text(home: &Home, text: &str) -> String {
    text.replace(&*home.path().to_string_lossy(), "~")
}

fn listed(found: &Found, home: &Home) -> String {
    let line = |server: &Server| {
        let file = text(home, &server.file.display().to_string());
        format!(
            "{} {} {:?} {} {file}\n",
            server.name,
            server.source.id(),
            server.scope,
            server.entry.transport()
        )
    };
    found.servers.iter().map(line).collect()
}

fn resolved(found: &Found, name: &str, environment: &Environment) -> Result<Entry, ExpandError> {
    found.pick(name).unwrap().resolve(environment)
}

#[test]
fn every_place_is_found_and_the_nearest_comes_first() {
    let home = Home::new();
    let entry = r#"{"a": {"command": "x"}}"#;
    let wrapped = format!(r#"{{"mcpServers": {entry}}}"#);
    home.write("work/.git/HEAD", "");
    home.write(".mcp.json", &wrapped);
    home.write("work/.mcp.json", &wrapped);
    home.write("work/sub/.mcp.json", &wrapped);
    home.write(
        "work/.vscode/mcp.json",
        &format!(r#"{{"servers": {entry}}}"#),
    );
    home.write("work/.cursor/mcp.json", &wrapped);
    home.write(
        "work/.gemini/settings.json",
        r#"{"mcpServers": {"a": {"url": "http://x"}}}"#,
    );
    let project = home.path().join("work").display().to_string();
    home.write(
        ".claude.json",
        &format!(
            r#"{{"mcpServers": {entry}, "projects": {{"{project}": {{"mcpServers": {entry}}}}}}}"#
        ),
    );
    home.write(".config/Claude/claude_desktop_config.json", &wrapped);
    home.write(
        ".config/Code/User/mcp.json",
        &format!(r#"{{"servers": {entry}}}"#),
    );
    home.write(".cursor/mcp.json", &wrapped);
    home.write(".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    home.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"a": {"httpUrl": "http://x"}}}"#,
    );

    let found = find(&home.environment("work/sub"), None);

    assert_eq!(found.warnings, [""; 0]);
    insta::assert_snapshot!(listed(&found, &home), @r"
    a project Project stdio ~/work/sub/.mcp.json
    a claude-code User stdio ~/.claude.json
    a project Project stdio ~/work/.mcp.json
    a vscode Project stdio ~/work/.vscode/mcp.json
    a cursor Project stdio ~/work/.cursor/mcp.json
    a gemini Project sse ~/work/.gemini/settings.json
    a claude-code User stdio ~/.claude.json
    a claude-desktop User stdio ~/.config/Claude/claude_desktop_config.json
    a vscode User stdio ~/.config/Code/User/mcp.json
    a cursor User stdio ~/.cursor/mcp.json
    a codex User stdio ~/.codex/config.toml
    a gemini User http ~/.gemini/settings.json
    ");
    assert_eq!(found.pick("a@codex").unwrap().source, Source::Codex);
    assert!(found.pick("a@nowhere").is_none());
}

#[test]
fn files_of_the_home_folder_are_the_users_own() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    );

    let found = find(&home.environment(""), None);

    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].scope, Scope::User);
}

#[test]
fn other_systems_have_other_folders() {
    let home = Home::new();
    let wrapped = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    home.write(
        "Library/Application Support/Claude/claude_desktop_config.json",
        wrapped,
    );
    home.write("Roaming/Claude/claude_desktop_config.json", wrapped);
    let mut environment = home.environment("");

    environment.platform = Platform::MacOs;
    let mac = find(&environment, None).servers.len();
    environment.platform = Platform::Windows;
    let roaming = home.path().join("Roaming").display().to_string();
    environment.vars.insert("APPDATA".into(), roaming);
    let windows = find(&environment, None).servers.len();

    assert_eq!((mac, windows), (1, 1));
}

#[test]
fn what_is_malformed_is_named_and_the_rest_is_used() {
    let home = Home::new();
    home.write(".mcp.json", "{\"mcpServers\": {\n  \"a\": oops\n}}");
    home.write(".codex/config.toml", "[mcp_servers.b]\ncommand = \n");
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
            "good": {"command": "x"},
            "empty": {},
            "text": "x",
            "args": {"command": "x", "args": "y"},
            "env": {"command": "x", "env": {"A": []}},
            "type": {"type": "carrier-pigeon", "url": "x"}
        }}"#,
    );
    home.write(".gemini/settings.json", r#"{"mcpServers": []}"#);
    fs::create_dir_all(home.path().join(".claude.json")).unwrap();

    let found = find(&home.environment(""), None);

    insta::assert_snapshot!(text(&home, &found.warnings.join("\n")), @r"
    ~/.claude.json: is not a file
    ~/.mcp.json: line 2, column 8: Unexpected word
    ~/.cursor/mcp.json: `mcpServers.empty` has neither `command` nor `url`
    ~/.cursor/mcp.json: `mcpServers.text` is not an object
    ~/.cursor/mcp.json: `mcpServers.args` has `args` that are not a list
    ~/.cursor/mcp.json: `mcpServers.env` has a `env.A` that is not text
    ~/.cursor/mcp.json: `mcpServers.type` has the unknown type `carrier-pigeon`
    ~/.codex/config.toml: line 2, column 11: string values must be quoted, expected literal string
    ~/.gemini/settings.json: `mcpServers` is not a table of servers
    ");
    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].name, "good");
}

#[test]
fn editors_files_may_have_comments() {
    let home = Home::new();
    home.write(
        ".vscode/mcp.json",
        "{\n  // ours\n  \"servers\": {\"a\": {\"command\": \"x\",},},\n}",
    );

    let found = find(&home.environment(""), None);

    assert_eq!(found.warnings, [""; 0]);
    assert_eq!(found.servers.len(), 1);
}

#[test]
fn a_given_file_is_the_only_one() {
    let home = Home::new();
    home.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    home.write("other.toml", "[mcp_servers.b]\ncommand = \"x\"\n");
    let environment = home.environment("");

    let found = find(&environment, Some(Path::new("other.toml")));
    let missing = find(&environment, Some(Path::new("none.json")));

    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].name, "b");
    assert_eq!(found.servers[0].scope, Scope::Project);
    insta::assert_snapshot!(text(&home, &missing.warnings.join("\n")), @"~/none.json: No such file or directory (os error 2)");
}

#[test]
fn each_program_writes_variables_in_its_own_way() {
    let home = Home::new();
    let mut environment = home.environment("work");
    environment.vars.insert("KEY".into(), "k".into());
    environment.vars.insert("EMPTY".into(), String::new());
    home.write("work/.git/HEAD", "");
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"braces": {"command": "${KEY}", "args": ["${NONE:-d}", "${EMPTY:-e}", "$KEY", "${env:KEY}"]}}}"#,
    );
    home.write(
        "work/.vscode/mcp.json",
        r#"{"servers": {"editor": {"command": "${workspaceFolder}/run", "args": ["${env:KEY}", "${userHome}", "$KEY"]}}}"#,
    );
    home.write(
        ".gemini/settings.json",
        r#"{"mcpServers": {"dollar": {"command": "$KEY/x", "args": ["${KEY}", "5$", "$1"]}}}"#,
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.none]\nurl = \"http://a/${KEY}\"\nbearer_token_env_var = \"KEY\"\nenv_http_headers = { X-A = \"KEY\" }\n",
    );
    let found = find(&environment, None);
    let shown = |name: &str| match resolved(&found, name, &environment).unwrap() {
        Entry::Start(start) => {
            let words = std::iter::once(start.program).chain(start.arguments);
            text(&home, &words.collect::<Vec<_>>().join(" "))
        }
        Entry::Remote(remote) => {
            let headers = remote
                .headers
                .iter()
                .map(|(name, value)| format!(" {name}={}", value.reveal()));
            remote.url.clone() + &headers.collect::<String>()
        }
    };

    assert_eq!(shown("braces"), "k d e $KEY k");
    assert_eq!(shown("editor"), "~/work/run k ~ $KEY");
    assert_eq!(shown("dollar"), "k/x k 5$ $1");
    assert_eq!(
        shown("none"),
        "http://a/${KEY} Authorization=Bearer k X-A=k"
    );
    assert_eq!(found.pick("none").unwrap().variables(&environment), ["KEY"]);
}

#[test]
fn what_cannot_be_expanded_is_a_clear_error() {
    let home = Home::new();
    home.write(
        ".vscode/mcp.json",
        r#"{"servers": {
            "input": {"command": "x", "env": {"KEY": "${input:api-key}"}},
            "unset": {"command": "x", "args": ["${env:NOPE}"]},
            "unknown": {"command": "${command:pick}"},
            "open": {"command": "${env:NOPE"},
            "file": {"command": "x", "envFile": "none.env"}
        }}"#,
    );
    let environment = home.environment("");
    let found = find(&environment, None);
    let problems = ["input", "unset", "unknown", "open", "file"].map(|name| {
        resolved(&found, name, &environment)
            .unwrap_err()
            .to_string()
    });

    insta::assert_snapshot!(text(&home, &problems.join("\n")), @r"
    `${input:api-key}` is asked for by the editor, and not known here
    the environment variable `NOPE` is not set
    `${command:pick}` is not known here
    `${` has no `}`
    the file of variables ~/none.env cannot be read: No such file or directory (os error 2)
    ");
}

#[test]
fn a_file_of_variables_is_read() {
    let home = Home::new();
    home.write(".vscode/mcp.json", r#"{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"B": "2"}}}}"#);
    home.write(".env", "# comment\nA='1 1'\nexport C=\"3\"\n\nnonsense\n");
    let environment = home.environment("");

    let Entry::Start(start) = resolved(&find(&environment, None), "a", &environment).unwrap()
    else {
        panic!("a program")
    };

    let env: Vec<_> = start
        .env
        .iter()
        .map(|(name, value)| (&**name, value.reveal()))
        .collect();
    assert_eq!(env, [("A", "1 1"), ("C", "3"), ("B", "2")]);
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let home = Home::new();
    home.write(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"KEY": "hunter2"}}}}"#,
    );

    let found = find(&home.environment(""), None);

    assert!(!format!("{found:?}").contains("hunter2"));
}
