//! `turnbuckle context`: people own their data.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Wire;

/// A folder with two projects that something is remembered of.
fn remembering() -> (Stage, [PathBuf; 2]) {
    let stage = Stage::new();
    let project = |name: &str| {
        stage.write(&format!("{name}/.git/HEAD"), "ref: refs/heads/main\n");
        stage.path().join(name).canonicalize().unwrap()
    };
    let projects = [project("one"), project("two")];
    let mut server = Wire::start(&mut stage.command(&["serve", "--stdio"]));
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
    (stage, projects)
}

fn count(stage: &Stage, words: &[&str]) -> u64 {
    let words = [&["context", "stats", "--json"], words].concat();
    let output = stage.command(&words).output().unwrap();
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let places = stats["places"].as_array().unwrap().iter();
    let items = places.flat_map(|place| place["items"].as_object().unwrap().values());
    items.map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn stats_show_how_much_is_kept_of_each_project() {
    let (stage, _) = remembering();

    let seen = stage.run(&["context", "stats"]);
    let head = seen.lines().next().unwrap();
    assert!(
        head.starts_with("project") && head.contains("checkpoints"),
        "{seen}"
    );
    assert!(seen.contains("~/one"), "{seen}");
    assert!(seen.contains("(all projects)"), "{seen}");
    assert_eq!(count(&stage, &[]), 3);

    let empty = stage.run(&["context", "stats", "--data", "nowhere"]);
    assert!(empty.contains("nothing is kept yet"), "{empty}");
}

#[test]
fn what_is_exported_can_be_imported_elsewhere_and_only_once() {
    let (stage, _) = remembering();

    // One that others could read is replaced, and not written into.
    let before = stage.path().join("memory.jsonl");
    fs::write(&before, "old").unwrap();
    fs::set_permissions(&before, fs::Permissions::from_mode(0o644)).unwrap();
    let seen = stage.run(&["context", "export", "--output", "memory.jsonl"]);
    assert!(
        seen.contains("3 things of 3 places written to ~/memory.jsonl"),
        "{seen}"
    );
    let file = stage.path().join("memory.jsonl");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let to_stdout = stage.command(&["context", "export"]).output().unwrap();
    let lines = String::from_utf8(to_stdout.stdout).unwrap();
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{lines}"
    );

    let seen = stage.run(&["context", "import", "memory.jsonl", "--data", "new"]);
    assert!(seen.contains("3 new things kept"), "{seen}");
    let seen = stage.run(&["context", "import", "memory.jsonl", "--data", "new"]);
    assert!(
        seen.contains("0 new things kept, 3 known already"),
        "{seen}"
    );
    assert_eq!(count(&stage, &["--data", "new"]), 3);
}

#[test]
fn a_line_that_cannot_be_used_is_named_and_nothing_is_kept() {
    let (stage, _) = remembering();
    let output = stage.command(&["context", "export"]).output().unwrap();
    let mut lines = String::from_utf8(output.stdout).unwrap();
    lines.push_str("{ this is no JSON\n");
    stage.write("bad.jsonl", &lines);

    let seen = stage.run(&["context", "import", "bad.jsonl", "--data", "new"]);
    let number = lines.lines().count();
    assert!(seen.contains(&format!("line {number}")), "{seen}");
    assert!(seen.ends_with("--- exit 1\n"), "{seen}");
    assert_eq!(count(&stage, &["--data", "new"]), 0);

    let seen = stage.run(&[
        "context",
        "import",
        "bad.jsonl",
        "--data",
        "new",
        "--skip-bad-lines",
    ]);
    assert!(
        seen.contains("3 new things kept, 1 line left out"),
        "{seen}"
    );
}

#[test]
fn what_is_forgotten_is_gone_and_nothing_else() {
    let (stage, projects) = remembering();
    let one = projects[0].to_str().unwrap();

    let asked = stage.run(&["context", "forget", "--project", one]);
    assert!(asked.contains("there is no terminal to ask"), "{asked}");
    assert!(asked.ends_with("--- exit 2\n"), "{asked}");
    assert_eq!(count(&stage, &[]), 3);

    let seen = stage.run(&["context", "forget", "--project", one, "--yes"]);
    assert!(
        seen.contains("1 file removed, with everything in it"),
        "{seen}"
    );
    assert_eq!(count(&stage, &[]), 2);
    let seen = stage.run(&["context", "forget", "--older-than", "90d", "--yes"]);
    assert!(seen.contains("0 things forgotten"), "{seen}");
    let seen = stage.run(&[
        "context",
        "forget",
        "--id",
        "ckpt_0000000000000000",
        "--yes",
    ]);
    assert!(seen.ends_with("--- exit 1\n"), "{seen}");
    stage.run(&["context", "forget", "--all", "--yes"]);
    assert_eq!(count(&stage, &[]), 0);
}

#[test]
fn forgetting_wants_to_know_what() {
    let stage = Stage::new();
    let seen = stage.run(&["context", "forget", "--yes"]);
    assert!(
        seen.contains("required") && seen.ends_with("--- exit 2\n"),
        "{seen}"
    );
}

#[test]
fn an_export_of_damaged_data_has_the_rest_and_says_so() {
    let (stage, _) = remembering();
    let output = stage.command(&["context", "stats", "--json"]).output();
    let stats: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let places = stats["places"].as_array().unwrap();
    let id = places.iter().find_map(|place| place["project"].as_str());
    let name = format!("{}.db", id.unwrap());
    fs::write(find(stage.path(), &name).unwrap(), "").unwrap();

    let seen = stage.run(&["context", "export", "--output", "memory.jsonl"]);
    assert!(
        seen.contains("2 things of 2 places written to ~/memory.jsonl"),
        "{seen}"
    );
    assert!(seen.contains("empty or cut short"), "{seen}");
    assert!(seen.contains("the export is not complete"), "{seen}");
    assert!(seen.ends_with("--- exit 1\n"), "{seen}");
}

/// Finds a file below a folder by its name.
fn find(folder: &std::path::Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => find(&path, name),
            false => path.ends_with(name).then_some(path),
        }
    })
}
