//! Kills a process that writes an index.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use turnbuckle_context::{
    Database, Redactor,
    evaluation::code_index::{IndexOptions, index, tree_for},
};

/// Environment variable with the folder of the files, for the process that is killed.
const TEST_FOLDER: &str = "TURNBUCKLE_TEST_PLACE";
const FILES: usize = 120;
const ROUNDS: usize = 8;

#[test]
fn readers_see_a_complete_index_after_a_kill() {
    let test_folder = tempfile::tempdir().unwrap();
    fs::create_dir(test_folder.path().join("files")).unwrap();
    write_all(test_folder.path(), "round_0");
    run(test_folder.path());

    for round in 1..=ROUNDS {
        write_all(test_folder.path(), &format!("round_{round}"));
        kill_after(
            test_folder.path(),
            Duration::from_millis(round as u64 * 37 % 300),
        );
        check(test_folder.path());
    }

    run(test_folder.path());
    assert_eq!(
        seen(test_folder.path()),
        vec![format!("round_{ROUNDS}"); FILES]
    );
    check(test_folder.path());
}

/// Indexes in a loop until it is killed.
#[test]
#[ignore = "is run by the other test, in a process of its own"]
fn child() {
    let Some(test_folder) = env::var_os(TEST_FOLDER).map(PathBuf::from) else {
        return;
    };
    println!("started");
    loop {
        run(&test_folder);
    }
}

fn kill_after(test_folder: &Path, time: Duration) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "index_killed::child", "--ignored", "--nocapture"])
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

fn run(test_folder: &Path) {
    let root = test_folder.join("files").canonicalize().unwrap();
    let options = IndexOptions {
        force: true,
        ..IndexOptions::default()
    };
    let mut watch = |_| ControlFlow::Continue(());
    index(
        &open(test_folder),
        &root,
        "main",
        &options,
        Redactor::standard(),
        &mut watch,
    )
    .unwrap();
}

fn open(test_folder: &Path) -> Database {
    Database::open(test_folder.join("data").join("project.db")).unwrap()
}

fn write_all(test_folder: &Path, name: &str) {
    let text = format!("fn {name}() {{\n{}}}\n", "    call();\n".repeat(50));
    for file in 0..FILES {
        let path = test_folder.join("files").join(format!("f{file}.rs"));
        // Write atomically, like an editor.
        let new = test_folder.join("new");
        fs::write(&new, &text).unwrap();
        fs::rename(new, path).unwrap();
    }
}

/// Returns the definitions of all published files.
fn seen(test_folder: &Path) -> Vec<String> {
    let db = open(test_folder);
    db.read(|db| {
        let mut statement = db.prepare(
            "SELECT defs FROM chunk JOIN file ON file.id = chunk.file WHERE tree IS NOT NULL ORDER BY chunk.id",
        )?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    })
    .unwrap()
}

fn check(test_folder: &Path) {
    let seen = seen(test_folder);
    assert_eq!(seen.len(), FILES);
    assert!(
        seen.iter().all(|name| *name == seen[0]),
        "half of a change is shown"
    );
    let db = open(test_folder);
    let tree = tree_for(&db, &test_folder.join("files").canonicalize().unwrap());
    assert_eq!(tree.unwrap().unwrap().counts.files, FILES as u64);
    let is_sound = db.read(|db| {
        let text: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        db.execute(
            "INSERT INTO chunk_fts (chunk_fts) VALUES ('integrity-check')",
            [],
        )?;
        Ok(text == "ok")
    });
    assert!(is_sound.unwrap());
}
