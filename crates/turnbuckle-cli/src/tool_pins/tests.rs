use std::sync::Arc;

use clap::Parser as _;
use turnbuckle_protocol::types::Tool;

use super::*;
use crate::{cli::Cli, target::config_files::tests::TestHome, ui::Ui};

fn tool(name: &str, description: &str) -> Tool {
    Tool::new(name, Default::default()).description(description)
}

fn changed(name: &str, members: &[&'static str], reported: bool) -> Option<ToolChange> {
    Some(ToolChange {
        tool: name.to_owned(),
        members: members.to_vec(),
        reported,
    })
}

fn pin_file(home: &TestHome) -> PinFile {
    let folder = state_files::dir(&home.environment("work"));
    PinFile::new(folder, "server")
}

fn see(pin_file: &PinFile, tool: &Tool) -> Option<ToolChange> {
    let (seen, written) = pin_file.update(|known| known.observe(tool));
    written.unwrap();
    seen
}

fn files(home: &TestHome) -> Vec<std::path::PathBuf> {
    let folder = home.path().join(".local/state/turnbuckle/tools");
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_change_is_reported_once_until_the_user_approves() {
    let home = TestHome::new();
    let pin_file = pin_file(&home);
    let (first, second) = (tool("pay", "one"), tool("pay", "two").title("Pay"));

    assert_eq!(see(&pin_file, &first), None, "it is new");
    assert_eq!(see(&pin_file, &first), None, "it is the same");
    let members = ["title", "description"];
    assert_eq!(see(&pin_file, &second), changed("pay", &members, false));
    assert_eq!(see(&pin_file, &second), changed("pay", &members, true));
    pin_file.update(|known| known.approve(&second)).1.unwrap();
    assert_eq!(see(&pin_file, &second), None);
    assert_eq!(see(&pin_file, &first), changed("pay", &members, false));
}

#[test]
fn a_reverted_change_is_approved() {
    let home = TestHome::new();
    let pin_file = pin_file(&home);
    let (first, second) = (tool("pay", "one"), tool("pay", "two"));
    see(&pin_file, &first);
    see(&pin_file, &second);

    assert_eq!(see(&pin_file, &first), None);
    let again = see(&pin_file, &second);
    assert_eq!(again, changed("pay", &["description"], false));
}

#[test]
fn concurrent_commands_keep_each_others_pins() {
    let home = TestHome::new();
    let (one, other) = (pin_file(&home), pin_file(&home));

    let (_, written) = one.update(|known| {
        known.observe(&tool("a", ""));
        // Another command writes in between.
        see(&other, &tool("b", ""));
    });
    written.unwrap();

    // The last write is kept; the file is valid, and the lost update is repeated.
    assert!(one.read().contains("a"));
    assert_eq!(see(&other, &tool("b", "")), None);
    assert!(one.read().contains("a") && one.read().contains("b"));
    assert_eq!(files(&home).len(), 1, "no draft is left behind");
}

#[cfg(unix)]
#[test]
fn the_pin_file_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    see(&pin_file(&home), &tool("pay", "one"));

    let about = std::fs::metadata(&files(&home)[0]).unwrap();

    assert_eq!(about.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_damaged_pin_file_is_replaced() {
    let home = TestHome::new();
    let pin_file = pin_file(&home);
    see(&pin_file, &tool("pay", "one"));
    for broken in [
        "{",
        "[]",
        r#"{"tools": {"pay": {"agreed": {"digest": "?"}}}}"#,
    ] {
        std::fs::write(&files(&home)[0], broken).unwrap();

        assert_eq!(see(&pin_file, &tool("pay", "two")), None, "{broken}");
        assert!(see(&pin_file, &tool("pay", "one")).is_some(), "{broken}");
    }
}

#[test]
fn many_new_tools_do_not_evict_a_pinned_tool() {
    let mut known = PinnedTools::default();
    known.observe(&tool("pay", "one"));
    for number in 0..3_000 {
        known.observe(&tool(&number.to_string(), ""));
        known.approve(&tool(&format!("agreed {number}"), ""));
    }

    assert!(known.observe(&tool("pay", "two")).is_some());
    let text = serde_json::to_string_pretty(&known).unwrap();
    assert!(text.len() < 1 << 20, "{}", text.len());
}

#[test]
fn an_oversized_name_is_not_stored() {
    let mut known = PinnedTools::default();
    let long = "x".repeat(1 << 20);

    assert_eq!(known.observe(&tool(&long, "one")), None);

    assert!(known.observe(&tool(&long, "two")).is_some());
    assert!(serde_json::to_string(&known).unwrap().len() < 1000);
}

#[test]
fn the_least_recently_used_server_is_evicted() {
    let home = TestHome::new();
    let folder = home.path().join("state");
    let pin_file = |name: &str| PinFile::new(Some(folder.clone()), name);
    see(&pin_file("without use"), &tool("a", ""));
    see(&pin_file("used"), &tool("a", ""));
    for name in ["used", "without use"] {
        let file = std::fs::File::options();
        let path = folder.join("tools").join(format!("{name}.json"));
        let file = file.clone().append(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    see(&pin_file("used"), &tool("a", ""));
    for number in 0..998 {
        let file = folder.join("tools").join(format!("{number}.json"));
        std::fs::write(file, "{}").unwrap();
    }

    see(&pin_file("new"), &tool("a", ""));

    assert!(pin_file("new").read().contains("a") && pin_file("used").read().contains("a"));
    assert!(!pin_file("without use").read().contains("a"));
}

#[test]
fn without_a_state_folder_nothing_is_stored_and_nothing_fails() {
    let pin_file = PinFile::new(None, "server");

    assert_eq!(see(&pin_file, &tool("pay", "one")), None);
    assert_eq!(see(&pin_file, &tool("pay", "two")), None);
}

#[test]
fn servers_are_identified_by_their_target() {
    let home = TestHome::new();
    home.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    home.write("b.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let given = home.path().join("b.json").display().to_string();
    let identity = |cwd: &str, target: &CliTarget, options: &[&str]| {
        let words = ["turnbuckle", "tools", "x"].iter().chain(options);
        let context = CommandContext {
            environment: home.environment(cwd),
            options: Cli::parse_from(words).options,
            ui: Ui::default(),
            supervisor: Arc::default(),
        };
        super::server_identity(target, &context)
    };
    let named = CliTarget::Named("a".into());
    let program = |word: &str| CliTarget::Command(vec!["sh".into(), word.into()]);
    let url = |path: &str| CliTarget::Url(format!("https://a.example/{path}"));

    let all = [
        identity(".", &named, &[]),
        identity(".", &named, &["--config", &given]),
        identity(".", &named, &["--era", "legacy"]),
        identity(".", &program("a"), &[]),
        identity(".", &program("b"), &[]),
        identity("work", &program("a"), &[]),
        identity(".", &url("a"), &[]),
        identity(".", &url("b"), &[]),
        identity(".", &CliTarget::Unix("a".into()), &[]),
        identity("work", &CliTarget::Unix("a".into()), &[]),
    ];
    let different: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());

    // These do not change the identity.
    assert_eq!(
        identity("work", &url("a"), &["--header", "A: b", "--yes"]),
        identity(".", &url("a"), &[])
    );
    let absolute = home.path().join("work/a");
    assert_eq!(
        identity(".", &CliTarget::Unix(absolute), &[]),
        identity("work", &CliTarget::Unix("a".into()), &[])
    );
}

#[test]
fn many_changes_are_summarized() {
    let changed: Vec<_> = (0..12)
        .map(|number| ToolChange {
            tool: format!("tool{number}\u{1b}[2J"),
            members: vec!["description", "inputSchema"],
            reported: false,
        })
        .collect();

    insta::assert_snapshot!(changes_text(&changed[..1]), @r"`tool0\u{1b}[2J` has changed: description, input schema");
    insta::assert_snapshot!(changes_text(&changed[..2]), @r"
    2 tools have changed
      tool0\u{1b}[2J: description, input schema
      tool1\u{1b}[2J: description, input schema
    ");
    assert!(changes_text(&changed).ends_with("\n  and 2 more"));
}
