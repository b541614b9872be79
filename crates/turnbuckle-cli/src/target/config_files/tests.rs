use std::fs;

use super::{super::expand::ExpandError, *};
use crate::environment::{Platform, TerminalInfo};

/// A temporary home directory.
pub(crate) struct TestHome(tempfile::TempDir);

impl TestHome {
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

    /// Writes a program that does nothing.
    pub(crate) fn program(&self, file: &str) {
        self.write(file, "#!/bin/sh\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(self.path().join(file), mode).unwrap();
        }
    }

    /// Returns an environment with a current directory below it.
    pub(crate) fn environment(&self, cwd: &str) -> Environment {
        let cwd = self.path().join(cwd);
        fs::create_dir_all(&cwd).unwrap();
        Environment {
            platform: Platform::Linux,
            home: Some(self.path().to_owned()),
            cwd,
            vars: Default::default(),
            user: "ada".to_owned(),
            user_id: Environment::from_process().unwrap().user_id,
            terminal: TerminalInfo {
                is_interactive: false,
                stdout_is_terminal: false,
                width: 100,
            },
        }
    }
}

/// Replaces the path of the home directory by `~`.
pub(crate) fn text(home: &TestHome, text: &str) -> String {
    text.replace(&*home.path().to_string_lossy(), "~")
}

fn listed(found: &ConfiguredServers, home: &TestHome) -> String {
    let line = |server: &ConfiguredServer| {
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

fn resolved(
    found: &ConfiguredServers,
    name: &str,
    environment: &Environment,
) -> Result<ServerEntry, ExpandError> {
    found.find_by_name(name).unwrap().resolve(environment)
}

#[test]
fn user_files_are_read_before_project_files() {
    let home = TestHome::new();
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

    let found = find_servers(&home.environment("work/sub"), None);

    assert_eq!(found.warnings, [""; 0]);
    insta::assert_snapshot!(listed(&found, &home), @r"
    a claude-code User stdio ~/.claude.json
    a claude-code User stdio ~/.claude.json
    a claude-desktop User stdio ~/.config/Claude/claude_desktop_config.json
    a vscode User stdio ~/.config/Code/User/mcp.json
    a cursor User stdio ~/.cursor/mcp.json
    a codex User stdio ~/.codex/config.toml
    a gemini User http ~/.gemini/settings.json
    a project Project stdio ~/work/sub/.mcp.json
    a project Project stdio ~/work/.mcp.json
    a vscode Project stdio ~/work/.vscode/mcp.json
    a cursor Project stdio ~/work/.cursor/mcp.json
    a gemini Project sse ~/work/.gemini/settings.json
    ");
    assert_eq!(
        found.find_by_name("a@codex").unwrap().source,
        ConfigSource::Codex
    );
    assert!(found.find_by_name("a@nowhere").is_none());
}

#[test]
fn a_project_never_replaces_a_server_of_the_user() {
    for (file, table) in [
        (".mcp.json", "mcpServers"),
        (".vscode/mcp.json", "servers"),
        (".cursor/mcp.json", "mcpServers"),
        (".gemini/settings.json", "mcpServers"),
    ] {
        let home = TestHome::new();
        home.write("work/.git/HEAD", "");
        home.write(
            &format!("work/{file}"),
            &format!(r#"{{"{table}": {{"a": {{"url": "http://theirs"}}, "b": {{"url": "http://theirs"}}}}}}"#),
        );
        home.write(
            ".codex/config.toml",
            "[mcp_servers.a]\nurl = \"http://mine\"\n",
        );

        let found = find_servers(&home.environment("work"), None);

        assert_eq!(
            found.find_by_name("a").unwrap().scope,
            ConfigScope::User,
            "{file}"
        );
        assert_eq!(
            found.find_by_name("b").unwrap().scope,
            ConfigScope::Project,
            "{file}"
        );
        assert!(found.is_shadowed(&found.servers[1]), "{file}");
    }
}

#[test]
fn a_name_with_a_source_selects_the_server_of_the_user() {
    let home = TestHome::new();
    home.write("work/.git/HEAD", "");
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"a@codex": {"url": "http://theirs"}, "b@codex": {"url": "http://theirs"}}}"#,
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.a]\nurl = \"http://mine\"\n",
    );

    let found = find_servers(&home.environment("work"), None);

    assert_eq!(found.find_by_name("a@codex").unwrap().name, "a");
    assert_eq!(found.find_by_name("b@codex").unwrap().name, "b@codex");
    assert_eq!(
        found.find_by_name("a@codex@project").unwrap().name,
        "a@codex"
    );
}

#[test]
fn files_of_a_project_that_belong_to_another_user_are_ignored_with_a_warning() {
    let home = TestHome::new();
    home.write("work/.git/HEAD", "");
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"a": {"url": "http://x"}}}"#,
    );
    home.write(
        "work/.vscode/mcp.json",
        r#"{"servers": {"b": {"command": "x"}}}"#,
    );
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"mine": {"command": "x"}}}"#,
    );
    let mut environment = home.environment("work");
    environment.user_id = environment.user_id.map(|id| id + 1);

    let found = find_servers(&environment, None);
    let given = find_servers(&environment, Some(Path::new(".mcp.json")));

    if environment.user_id.is_some() {
        let names: Vec<_> = found.servers.iter().map(|server| &*server.name).collect();
        assert_eq!(names, ["mine"], "the user's own files are not looked at");
        insta::assert_snapshot!(text(&home, &found.warnings.join("\n")), @r"
        ~/work/.mcp.json: ignored: ~/work/.mcp.json does not belong to you; to use the file anyway, pass it with `--config`
        ~/work/.vscode/mcp.json: ignored: ~/work/.vscode/mcp.json does not belong to you; to use the file anyway, pass it with `--config`
        ");
    }
    assert_eq!(given.servers.len(), 1, "a file that is named is used");
}

#[cfg(unix)]
#[test]
fn a_folder_and_a_link_have_to_belong_to_the_user_too() {
    use std::os::unix::fs::{chown, lchown, symlink};
    const ANOTHER: Option<u32> = Some(12_345);

    // Only root can change the owner of files.
    if Environment::from_process().unwrap().user_id != Some(0) {
        return;
    }
    let definition = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    let count = |give_away: fn(&Path)| {
        let home = TestHome::new();
        home.write("work/.git/HEAD", "");
        home.write("work/elsewhere.json", definition);
        fs::create_dir(home.path().join("work/.cursor")).unwrap();
        let link = home.path().join("work/.cursor/mcp.json");
        symlink("../elsewhere.json", link).unwrap();
        give_away(&home.path().join("work"));
        find_servers(&home.environment("work"), None).servers.len()
    };

    assert_eq!(count(|_| {}), 1);
    assert_eq!(count(|work| chown(work, ANOTHER, None).unwrap()), 0);
    let folder = |work: &Path| chown(work.join(".cursor"), ANOTHER, None).unwrap();
    assert_eq!(count(folder), 0);
    let link = |work: &Path| lchown(work.join(".cursor/mcp.json"), ANOTHER, None).unwrap();
    assert_eq!(count(link), 0);
    let target = |work: &Path| chown(work.join("elsewhere.json"), ANOTHER, None).unwrap();
    assert_eq!(count(target), 0);
}

#[test]
fn names_in_files_cannot_forge_lines_of_warnings() {
    let home = TestHome::new();
    home.write(
        ".mcp.json",
        r#"{"mcpServers": {"a\nwarning: all is well\u001b[2J": {}}}"#,
    );

    let found = find_servers(&home.environment(""), None);

    insta::assert_snapshot!(text(&home, &found.warnings.join("\n")), @r"~/.mcp.json: `mcpServers.a\nwarning: all is well\u{1b}[2J` has neither `command` nor `url`");
}

#[cfg(unix)]
#[test]
fn a_program_is_the_file_that_the_child_would_run() {
    let home = TestHome::new();
    for file in [
        "one/tool",
        "two/tool",
        "work/sub/bin/tool",
        "work/run",
        "bin/other",
    ] {
        home.program(file);
    }
    // Not executable, so it is skipped.
    home.write("none/tool", "");
    let definition = |member: &str| {
        home.write(
            "work/.mcp.json",
            &format!(r#"{{"mcpServers": {{"a": {{{member}}}}}}}"#),
        );
        let mut environment = home.environment("work");
        let path = |name: &str| home.path().join(name).display().to_string();
        let path = [path("none"), path("one"), path("two")].join(":");
        environment.vars.insert("PATH".into(), path);
        environment
            .vars
            .insert("TWO".into(), home.path().join("two").display().to_string());
        let found = match resolved(&find_servers(&environment, None), "a", &environment) {
            Ok(ServerEntry::Command(command)) => {
                command.lookup.program.unwrap().display().to_string()
            }
            Ok(ServerEntry::Http(_)) => panic!("a program"),
            Err(error) => error.to_string(),
        };
        text(&home, &found)
    };

    assert_eq!(definition(r#""command": "tool""#), "~/one/tool");
    assert_eq!(definition(r#""command": "./run""#), "~/work/run");
    assert_eq!(
        definition(r#""command": "bin/tool", "cwd": "sub""#),
        "~/work/sub/bin/tool"
    );
    assert_eq!(definition(r#""command": "${TWO}/tool""#), "~/two/tool");
    // With its own `PATH`, relative to the directory that it is started in.
    assert_eq!(
        definition(r#""command": "tool", "cwd": "sub", "env": {"PATH": "bin:/usr/bin"}"#),
        "~/work/sub/bin/tool"
    );
    home.write("work/.env", "PATH=../bin\n");
    assert_eq!(
        definition(r#""command": "other", "envFile": ".env""#),
        "~/work/../bin/other"
    );
    assert_eq!(
        definition(r#""command": "other""#),
        "program `other` not found"
    );
}

#[test]
fn variables_listed_for_codex_are_forwarded() {
    let home = TestHome::new();
    home.write(
        ".codex/config.toml",
        "[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"KEY\", \"NONE\", { name = \"REGION\" }]\n",
    );
    let mut environment = home.environment("");
    environment.vars.insert("KEY".into(), "k".into());
    environment.vars.insert("REGION".into(), "eu".into());

    let found = find_servers(&environment, None);
    let ServerEntry::Command(command) = resolved(&found, "a", &environment).unwrap() else {
        panic!("a program")
    };

    let env: Vec<_> = command.variables().collect();
    assert_eq!(env, [("KEY", "k"), ("REGION", "eu")]);
    assert_eq!(
        found.find_by_name("a").unwrap().variables(&environment),
        ["KEY", "NONE", "REGION"]
    );
}

#[test]
fn files_of_the_home_folder_are_the_users_own() {
    let home = TestHome::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    );

    let found = find_servers(&home.environment(""), None);

    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].scope, ConfigScope::User);
}

#[test]
fn other_systems_have_other_folders() {
    let home = TestHome::new();
    let wrapped = r#"{"mcpServers": {"a": {"command": "x"}}}"#;
    home.write(
        "Library/Application Support/Claude/claude_desktop_config.json",
        wrapped,
    );
    home.write("Roaming/Claude/claude_desktop_config.json", wrapped);
    let mut environment = home.environment("");

    environment.platform = Platform::MacOs;
    let mac = find_servers(&environment, None).servers.len();
    environment.platform = Platform::Windows;
    let roaming = home.path().join("Roaming").display().to_string();
    environment.vars.insert("APPDATA".into(), roaming);
    let windows = find_servers(&environment, None).servers.len();

    assert_eq!((mac, windows), (1, 1));
}

#[test]
fn malformed_entries_are_reported_and_the_rest_is_used() {
    let home = TestHome::new();
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

    let found = find_servers(&home.environment(""), None);

    insta::assert_snapshot!(text(&home, &found.warnings.join("\n")), @r"
    ~/.claude.json: not a regular file
    ~/.cursor/mcp.json: `mcpServers.empty` has neither `command` nor `url`
    ~/.cursor/mcp.json: `mcpServers.text` is not an object
    ~/.cursor/mcp.json: `mcpServers.args` has `args` that are not a list
    ~/.cursor/mcp.json: `mcpServers.env` has a `env.A` that is not text
    ~/.cursor/mcp.json: `mcpServers.type` has the unknown type `carrier-pigeon`
    ~/.codex/config.toml: line 2, column 11: string values must be quoted, expected literal string
    ~/.gemini/settings.json: `mcpServers` is not a table of servers
    ~/.mcp.json: line 2, column 8: Unexpected word
    ");
    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].name, "good");
}

#[test]
fn files_of_editors_may_have_comments() {
    let home = TestHome::new();
    home.write(
        ".vscode/mcp.json",
        "{\n  // ours\n  \"servers\": {\"a\": {\"command\": \"x\",},},\n}",
    );

    let found = find_servers(&home.environment(""), None);

    assert_eq!(found.warnings, [""; 0]);
    assert_eq!(found.servers.len(), 1);
}

#[test]
fn only_the_named_file_is_read() {
    let home = TestHome::new();
    home.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    home.write("other.toml", "[mcp_servers.b]\ncommand = \"x\"\n");
    let environment = home.environment("");

    let found = find_servers(&environment, Some(Path::new("other.toml")));
    let missing = find_servers(&environment, Some(Path::new("none.json")));

    assert_eq!(found.servers.len(), 1);
    assert_eq!(found.servers[0].name, "b");
    assert_eq!(found.servers[0].scope, ConfigScope::Project);
    insta::assert_snapshot!(text(&home, &missing.warnings.join("\n")), @"~/none.json: No such file or directory (os error 2)");
}

#[test]
fn each_program_has_its_own_variable_syntax() {
    let home = TestHome::new();
    let mut environment = home.environment("work");
    environment.vars.insert("KEY".into(), "k".into());
    environment.vars.insert("EMPTY".into(), String::new());
    let path = home.path().join("bin").display().to_string();
    environment.vars.insert("PATH".into(), path);
    home.program("bin/k");
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
    let found = find_servers(&environment, None);
    let shown = |name: &str| match resolved(&found, name, &environment).unwrap() {
        ServerEntry::Command(command) => {
            let words = std::iter::once(command.program).chain(command.arguments);
            text(&home, &words.collect::<Vec<_>>().join(" "))
        }
        ServerEntry::Http(http_entry) => {
            let headers = http_entry
                .headers
                .iter()
                .map(|(name, value)| format!(" {name}={}", value.expose()));
            http_entry.url.clone() + &headers.collect::<String>()
        }
    };

    assert_eq!(shown("braces"), "k d e $KEY k");
    assert_eq!(shown("editor"), "~/work/run k ~ $KEY");
    assert_eq!(shown("dollar"), "k/x k 5$ $1");
    assert_eq!(
        shown("none"),
        "http://a/${KEY} Authorization=Bearer k X-A=k"
    );
    assert_eq!(
        found.find_by_name("none").unwrap().variables(&environment),
        ["KEY"]
    );
}

#[test]
fn variables_that_cannot_be_expanded_are_errors() {
    let home = TestHome::new();
    home.write(
        ".vscode/mcp.json",
        r#"{"servers": {
            "input": {"command": "x", "env": {"KEY": "${input:api-key}"}},
            "unset": {"command": "x", "args": ["${env:NOPE}"]},
            "unknown": {"command": "${command:pick}"},
            "open": {"command": "${env:NOPE"},
            "file": {"command": "x", "envFile": "none.env"},
            "device": {"command": "x", "envFile": "/dev/zero"}
        }}"#,
    );
    let environment = home.environment("");
    let found = find_servers(&environment, None);
    let problems = ["input", "unset", "unknown", "open", "file", "device"].map(|name| {
        resolved(&found, name, &environment)
            .unwrap_err()
            .to_string()
    });

    insta::assert_snapshot!(text(&home, &problems.join("\n")), @r"
    `${input:api-key}` is a prompt of the editor, which is not supported
    the environment variable `NOPE` is not set
    the variable `${command:pick}` is not supported
    `${` without `}`
    cannot read the env file ~/none.env: No such file or directory (os error 2)
    cannot read the env file /dev/zero: not a regular file
    ");
}

#[test]
fn an_env_file_is_read() {
    let home = TestHome::new();
    home.write(".vscode/mcp.json", r#"{"servers": {"a": {"command": "./x", "envFile": "${workspaceFolder}/.env", "env": {"B": "2"}}}}"#);
    home.write(".env", "# comment\nA='1 1'\nexport C=\"3\"\n\nnonsense\n");
    let environment = home.environment("");

    let ServerEntry::Command(command) =
        resolved(&find_servers(&environment, None), "a", &environment).unwrap()
    else {
        panic!("a program")
    };

    let env: Vec<_> = command.variables().collect();
    assert_eq!(env, [("A", "1 1"), ("C", "3"), ("B", "2")]);
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let home = TestHome::new();
    home.write(
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"KEY": "hunter2"}}}}"#,
    );

    let found = find_servers(&home.environment(""), None);

    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn network_and_device_paths_of_a_project_are_rejected_on_windows() {
    let members = [
        r#""command": "x", "envFile": "\\\\evil\\share\\.env""#,
        r#""command": "x", "envFile": "//evil/share/.env""#,
        r#""command": "x", "cwd": "/\\evil/share""#,
        r#""command": "x", "env": {"Path": "\\\\evil\\share"}"#,
        r#""command": "x", "cwd": "\\\\.\\pipe\\a""#,
        r#""command": "\\??\\UNC\\evil\\share\\x""#,
    ];
    for members in members {
        let home = TestHome::new();
        let definition = format!(r#"{{"mcpServers": {{"a": {{{members}}}}}}}"#);
        home.write(".mcp.json", &definition);
        let mut environment = home.environment("");
        environment.platform = Platform::Windows;
        let found = find_servers(&environment, None);

        let error = resolved(&found, "a", &environment).unwrap_err();

        let is_refused = matches!(error, ExpandError::Network(..));
        assert!(is_refused, "{members}: {error:?}");
    }
}

#[test]
fn an_env_file_below_the_project_is_read() {
    let home = TestHome::new();
    home.write(
        ".vscode/mcp.json",
        r#"{"servers": {"a": {"command": "./x", "envFile": "/${workspaceFolder}/.env"}}}"#,
    );
    home.write(".env", "A=1\n");
    let mut environment = home.environment("");
    environment.platform = Platform::Windows;

    let entry = resolved(&find_servers(&environment, None), "a", &environment);

    assert!(entry.is_ok(), "{entry:?}");
}
