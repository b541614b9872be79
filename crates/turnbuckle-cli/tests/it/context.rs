//! Tests of `turnbuckle context`.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::{Value, json};

use crate::{sandbox::Sandbox, stdio_server::StdioServer};

/// A sandbox with the data of two projects.
fn with_stored_data() -> (Sandbox, [PathBuf; 2]) {
    let sandbox = Sandbox::new();
    let project = |name: &str| {
        sandbox.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
        sandbox.path().join(name).canonicalize().unwrap()
    };
    let projects = [project("one"), project("two")];
    let mut server = StdioServer::start(&mut sandbox.command(&["serve", "--stdio"]));
    for project in &projects {
        let name = project.file_name().unwrap().to_str().unwrap();
        let content = format!("work on {name}");
        let saved = server.call(
            "checkpoint_save",
            &json!({ "content": content, "project_path": project }),
        );
        assert_ne!(saved["isError"], true, "{saved}");
    }
    let skill = json!({ "name": "release", "description": "How", "content": "1. Tag it." });
    assert_ne!(server.call("skill_save", &skill)["isError"], true);
    (sandbox, projects)
}

fn count(sandbox: &Sandbox, words: &[&str]) -> u64 {
    let words = [&["context", "stats", "--json"], words].concat();
    let output = sandbox.command(&words).output().unwrap();
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let places = stats["places"].as_array().unwrap().iter();
    let items = places.flat_map(|place| place["items"].as_object().unwrap().values());
    items.map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn stats_show_the_data_of_each_project() {
    let (sandbox, _) = with_stored_data();

    let seen = sandbox.run(&["context", "stats"]);
    let head = seen.lines().next().unwrap();
    assert!(
        head.starts_with("project") && head.contains("checkpoints"),
        "{seen}"
    );
    assert!(seen.contains("~/one"), "{seen}");
    assert!(seen.contains("(all projects)"), "{seen}");
    assert_eq!(count(&sandbox, &[]), 3);

    let empty = sandbox.run(&["context", "stats", "--data", "nowhere"]);
    assert!(empty.contains("no data yet"), "{empty}");
}

#[test]
fn an_export_can_be_imported_elsewhere_once() {
    let (sandbox, _) = with_stored_data();

    // A file that others can read is replaced, not written to.
    let before = sandbox.path().join("memory.jsonl");
    fs::write(&before, "old").unwrap();
    fs::set_permissions(&before, fs::Permissions::from_mode(0o644)).unwrap();
    let seen = sandbox.run(&["context", "export", "--output", "memory.jsonl"]);
    assert!(
        seen.contains("exported 3 items from 3 databases to ~/memory.jsonl"),
        "{seen}"
    );
    let file = sandbox.path().join("memory.jsonl");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let to_stdout = sandbox.command(&["context", "export"]).output().unwrap();
    let lines = String::from_utf8(to_stdout.stdout).unwrap();
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{lines}"
    );

    let seen = sandbox.run(&["context", "import", "memory.jsonl", "--data", "new"]);
    assert!(seen.contains("imported 3 new items"), "{seen}");
    let seen = sandbox.run(&["context", "import", "memory.jsonl", "--data", "new"]);
    assert!(
        seen.contains("imported 0 new items, 3 already present"),
        "{seen}"
    );
    assert_eq!(count(&sandbox, &["--data", "new"]), 3);
}

#[test]
fn an_invalid_line_is_reported_and_nothing_is_imported() {
    let (sandbox, _) = with_stored_data();
    let output = sandbox.command(&["context", "export"]).output().unwrap();
    let mut lines = String::from_utf8(output.stdout).unwrap();
    lines.push_str("{ this is no JSON\n");
    sandbox.write("bad.jsonl", &lines);

    let seen = sandbox.run(&["context", "import", "bad.jsonl", "--data", "new"]);
    let number = lines.lines().count();
    assert!(seen.contains(&format!("line {number}")), "{seen}");
    assert!(seen.ends_with("--- exit 1\n"), "{seen}");
    assert_eq!(count(&sandbox, &["--data", "new"]), 0);

    let seen = sandbox.run(&[
        "context",
        "import",
        "bad.jsonl",
        "--data",
        "new",
        "--skip-bad-lines",
    ]);
    assert!(
        seen.contains("imported 3 new items, 1 line skipped"),
        "{seen}"
    );
}

#[test]
fn forget_deletes_only_the_selected_data() {
    let (sandbox, projects) = with_stored_data();
    let one = projects[0].to_str().unwrap();

    let asked = sandbox.run(&["context", "forget", "--project", one]);
    assert!(asked.contains("confirmation needs a terminal"), "{asked}");
    assert!(asked.ends_with("--- exit 2\n"), "{asked}");
    assert_eq!(count(&sandbox, &[]), 3);

    let seen = sandbox.run(&["context", "forget", "--project", one, "--yes"]);
    assert!(
        seen.contains("1 file deleted, with all items in it"),
        "{seen}"
    );
    assert_eq!(count(&sandbox, &[]), 2);
    let seen = sandbox.run(&["context", "forget", "--older-than", "90d", "--yes"]);
    assert!(seen.contains("0 items deleted"), "{seen}");
    let seen = sandbox.run(&[
        "context",
        "forget",
        "--id",
        "ckpt_0000000000000000",
        "--yes",
    ]);
    assert!(seen.ends_with("--- exit 1\n"), "{seen}");
    sandbox.run(&["context", "forget", "--all", "--yes"]);
    assert_eq!(count(&sandbox, &[]), 0);
}

#[test]
fn forget_needs_a_selection() {
    let sandbox = Sandbox::new();
    let seen = sandbox.run(&["context", "forget", "--yes"]);
    assert!(
        seen.contains("required") && seen.ends_with("--- exit 2\n"),
        "{seen}"
    );
}

#[test]
fn an_export_of_damaged_data_is_incomplete_and_reported() {
    let (sandbox, _) = with_stored_data();
    let output = sandbox.command(&["context", "stats", "--json"]).output();
    let stats: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let places = stats["places"].as_array().unwrap();
    let id = places.iter().find_map(|place| place["project"].as_str());
    let name = format!("{}.db", id.unwrap());
    fs::write(find(sandbox.path(), &name).unwrap(), "").unwrap();

    let seen = sandbox.run(&["context", "export", "--output", "memory.jsonl"]);
    assert!(
        seen.contains("exported 2 items from 2 databases to ~/memory.jsonl"),
        "{seen}"
    );
    assert!(seen.contains("empty or truncated"), "{seen}");
    assert!(seen.contains("the export is incomplete"), "{seen}");
    assert!(seen.ends_with("--- exit 1\n"), "{seen}");
}

/// Finds a file below a directory by its name.
fn find(folder: &std::path::Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, name)
        } else {
            path.ends_with(name).then_some(path)
        }
    })
}
