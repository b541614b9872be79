//! Kills processes that import and delete, and checks that a later delete leaves no trace of the text.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use turnbuckle_context::{
    DataDir, Owner, Redactor,
    transfer::{DataSelection, DeleteRequest, ImportOptions, delete, import, stats},
};

use crate::transfer::is_anywhere;

/// Environment variable with the folder of the files, for the child process.
const TEST_FOLDER: &str = "TURNBUCKLE_TEST_PLACE";
/// Environment variable with the number of rounds.
const ROUNDS: &str = "TURNBUCKLE_KILL_ROUNDS";
const USUAL_ROUNDS: u64 = 6;
const ITEMS: usize = 150;
/// Part of every item, and not of any name.
const WORD: &str = "xylophone";

/// The time of the kill varies. The guarantee holds for every time.
#[test]
fn a_delete_after_a_kill_leaves_no_text() {
    let rounds = env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok());
    for round in 0..rounds.unwrap_or(USUAL_ROUNDS) {
        let test_folder = tempfile::tempdir().unwrap();
        kill_after(test_folder.path(), Duration::from_millis(round * 53 % 400));
        let (data_dir, owner) = open(test_folder.path());
        let forgotten = delete(&data_dir, &owner, &all_items()).unwrap();
        assert!(forgotten.traceless, "round {round}");
        let stats = stats(&data_dir, &owner).unwrap();
        assert_eq!(stats.damaged, [""; 0], "round {round}");
        assert!(!is_anywhere(test_folder.path(), WORD), "round {round}");
    }
}

/// Imports and deletes in a loop until it is killed.
#[test]
#[ignore = "is run by the other test, in a process of its own"]
fn child() {
    let Some(test_folder) = env::var_os(TEST_FOLDER).map(PathBuf::from) else {
        return;
    };
    let (data_dir, owner) = open(&test_folder);
    println!("started");
    loop {
        let mut text = export();
        import(
            &data_dir,
            &owner,
            Redactor::standard(),
            &ImportOptions::default(),
            &mut text.as_slice(),
        )
        .unwrap();
        text.clear();
        delete(&data_dir, &owner, &all_items()).unwrap();
    }
}

fn open(test_folder: &Path) -> (DataDir, Owner) {
    (
        DataDir::new(test_folder.join("data")),
        Owner::for_user("ada"),
    )
}

fn all_items() -> DeleteRequest {
    DeleteRequest::Items {
        selection: DataSelection::Everything,
        kind: None,
        before: None,
    }
}

fn export() -> Vec<u8> {
    let header =
        json!({ "type": "header", "format": "turnbuckle-memory", "version": 1, "exported": 0 });
    let project = json!({ "type": "project", "root": "/nowhere/at/all" });
    let item = |number: usize| {
        let body = format!("{WORD} number {number} {}", "and more ".repeat(100));
        json!({ "type": "item", "kind": "checkpoint", "title": format!("{WORD} {number}"), "body": body })
    };
    let lines = [header, project].into_iter().chain((0..ITEMS).map(item));
    lines
        .flat_map(|line| format!("{line}\n").into_bytes())
        .collect()
}

fn kill_after(test_folder: &Path, time: Duration) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "delete_killed::child",
            "--ignored",
            "--nocapture",
        ])
        .env(TEST_FOLDER, test_folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let started = output.lines().any(|line| line.unwrap().contains("started"));
    assert!(started);
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
}
