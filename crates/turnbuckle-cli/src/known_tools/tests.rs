use std::sync::Arc;

use clap::Parser as _;
use turnbuckle_protocol::types::Tool;

use super::memory::Tools;
use super::*;
use crate::arguments::Arguments;
use crate::servers::tests::Home;
use crate::voice::Voice;

fn tool(name: &str, description: &str) -> Tool {
    Tool::new(name, Default::default()).description(description)
}

fn changed(name: &str, members: &[&'static str], told: bool) -> Option<Changed> {
    Some(Changed {
        tool: name.to_owned(),
        members: members.to_vec(),
        told,
    })
}

fn memory(home: &Home) -> Memory {
    let folder = state::folder(&home.environment("work"));
    Memory::new(folder, "server")
}

fn see(memory: &Memory, tool: &Tool) -> Option<Changed> {
    let (seen, written) = memory.update(|known| known.see(tool));
    written.unwrap();
    seen
}

fn files(home: &Home) -> Vec<std::path::PathBuf> {
    let folder = home.path().join(".local/state/turnbuckle/tools");
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_change_is_told_once_and_stays_one_until_the_user_agrees() {
    let home = Home::new();
    let memory = memory(&home);
    let (first, second) = (tool("pay", "one"), tool("pay", "two").title("Pay"));

    assert_eq!(see(&memory, &first), None, "it is new");
    assert_eq!(see(&memory, &first), None, "it is the same");
    let members = ["title", "description"];
    assert_eq!(see(&memory, &second), changed("pay", &members, false));
    assert_eq!(see(&memory, &second), changed("pay", &members, true));
    memory.update(|known| known.agree(&second)).1.unwrap();
    assert_eq!(see(&memory, &second), None);
    assert_eq!(see(&memory, &first), changed("pay", &members, false));
}

#[test]
fn what_changes_back_is_what_it_was() {
    let home = Home::new();
    let memory = memory(&home);
    let (first, second) = (tool("pay", "one"), tool("pay", "two"));
    see(&memory, &first);
    see(&memory, &second);

    assert_eq!(see(&memory, &first), None);
    let again = see(&memory, &second);
    assert_eq!(again, changed("pay", &["description"], false));
}

#[test]
fn what_two_commands_learn_at_a_time_is_kept_whole() {
    let home = Home::new();
    let (one, other) = (memory(&home), memory(&home));

    let (_, written) = one.update(|known| {
        known.see(&tool("a", ""));
        // Another command comes in between, and is done first.
        see(&other, &tool("b", ""));
    });
    written.unwrap();

    // Of the two, the last counts; nothing is broken, and what got lost is learned again.
    assert!(one.read().knows("a"));
    assert_eq!(see(&other, &tool("b", "")), None);
    assert!(one.read().knows("a") && one.read().knows("b"));
    assert_eq!(files(&home).len(), 1, "no draft is left behind");
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_what_tools_are_known() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    see(&memory(&home), &tool("pay", "one"));

    let about = std::fs::metadata(&files(&home)[0]).unwrap();

    assert_eq!(about.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_broken_memory_of_tools_is_begun_anew() {
    let home = Home::new();
    let memory = memory(&home);
    see(&memory, &tool("pay", "one"));
    for broken in [
        "{",
        "[]",
        r#"{"tools": {"pay": {"agreed": {"digest": "?"}}}}"#,
    ] {
        std::fs::write(&files(&home)[0], broken).unwrap();

        assert_eq!(see(&memory, &tool("pay", "two")), None, "{broken}");
        assert!(see(&memory, &tool("pay", "one")).is_some(), "{broken}");
    }
}

#[test]
fn no_flood_makes_a_known_tool_forgotten() {
    let mut known = Tools::default();
    known.see(&tool("pay", "one"));
    for number in 0..3_000 {
        known.see(&tool(&number.to_string(), ""));
        known.agree(&tool(&format!("agreed {number}"), ""));
    }

    assert!(known.see(&tool("pay", "two")).is_some());
    let text = serde_json::to_string_pretty(&known).unwrap();
    assert!(text.len() < 1 << 20, "{}", text.len());
}

#[test]
fn a_name_without_end_is_not_written_down() {
    let mut known = Tools::default();
    let long = "x".repeat(1 << 20);

    assert_eq!(known.see(&tool(&long, "one")), None);

    assert!(known.see(&tool(&long, "two")).is_some());
    assert!(serde_json::to_string(&known).unwrap().len() < 1000);
}

#[test]
fn the_server_that_was_used_longest_ago_is_forgotten() {
    let home = Home::new();
    let folder = home.path().join("state");
    let memory = |name: &str| Memory::new(Some(folder.clone()), name);
    see(&memory("without use"), &tool("a", ""));
    see(&memory("used"), &tool("a", ""));
    for name in ["used", "without use"] {
        let file = std::fs::File::options();
        let path = folder.join("tools").join(format!("{name}.json"));
        let file = file.clone().append(true).open(path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    see(&memory("used"), &tool("a", ""));
    for number in 0..998 {
        let file = folder.join("tools").join(format!("{number}.json"));
        std::fs::write(file, "{}").unwrap();
    }

    see(&memory("new"), &tool("a", ""));

    assert!(memory("new").read().knows("a") && memory("used").read().knows("a"));
    assert!(!memory("without use").read().knows("a"));
}

#[test]
fn without_a_folder_nothing_is_remembered_and_nothing_fails() {
    let memory = Memory::new(None, "server");

    assert_eq!(see(&memory, &tool("pay", "one")), None);
    assert_eq!(see(&memory, &tool("pay", "two")), None);
}

#[test]
fn a_server_is_who_the_user_says_it_is() {
    let home = Home::new();
    home.write(".mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    home.write("b.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let given = home.path().join("b.json").display().to_string();
    let identity = |cwd: &str, target: &Target, options: &[&str]| {
        let words = ["turnbuckle", "tools", "x"].iter().chain(options);
        let context = Context {
            environment: home.environment(cwd),
            options: Arguments::parse_from(words).options,
            voice: Voice::default(),
            supervisor: Arc::default(),
        };
        super::identity(target, &context)
    };
    let named = Target::Named("a".into());
    let program = |word: &str| Target::Command(vec!["sh".into(), word.into()]);
    let url = |path: &str| Target::Url(format!("https://a.example/{path}"));

    let all = [
        identity(".", &named, &[]),
        identity(".", &named, &["--config", &given]),
        identity(".", &named, &["--era", "legacy"]),
        identity(".", &program("a"), &[]),
        identity(".", &program("b"), &[]),
        identity("work", &program("a"), &[]),
        identity(".", &url("a"), &[]),
        identity(".", &url("b"), &[]),
        identity(".", &Target::Unix("a".into()), &[]),
        identity("work", &Target::Unix("a".into()), &[]),
    ];
    let different: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());

    // What makes no difference.
    assert_eq!(
        identity("work", &url("a"), &["--header", "A: b", "--yes"]),
        identity(".", &url("a"), &[])
    );
    let absolute = home.path().join("work/a");
    assert_eq!(
        identity(".", &Target::Unix(absolute), &[]),
        identity("work", &Target::Unix("a".into()), &[])
    );
}

#[test]
fn many_changes_are_told_in_few_lines() {
    let changed: Vec<_> = (0..12)
        .map(|number| Changed {
            tool: format!("tool{number}\u{1b}[2J"),
            members: vec!["description", "inputSchema"],
            told: false,
        })
        .collect();

    insta::assert_snapshot!(notice(&changed[..1]), @r"`tool0\u{1b}[2J` has changed: description, input schema");
    insta::assert_snapshot!(notice(&changed[..2]), @r"
    2 tools have changed
      tool0\u{1b}[2J: description, input schema
      tool1\u{1b}[2J: description, input schema
    ");
    assert!(notice(&changed).ends_with("\n  and 2 more"));
}
