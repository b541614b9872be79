//! An index that is being written when its process is killed.

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
    code_index::{IndexOptions, index, tree_for},
};

/// Tells the process that is to be killed where the files are.
const PLACE: &str = "TURNBUCKLE_TEST_PLACE";
const FILES: usize = 120;
const ROUNDS: usize = 8;

#[test]
fn what_readers_see_is_whole_after_a_kill() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("files")).unwrap();
    write_all(place.path(), "round_0");
    run(place.path());

    for round in 1..=ROUNDS {
        write_all(place.path(), &format!("round_{round}"));
        kill_after(place.path(), Duration::from_millis(round as u64 * 37 % 300));
        check(place.path());
    }

    run(place.path());
    assert_eq!(seen(place.path()), vec![format!("round_{ROUNDS}"); FILES]);
    check(place.path());
}

/// Indexes over and over until it is killed.
#[test]
#[ignore = "is run by the other test, in a process of its own"]
fn victim() {
    let Some(place) = env::var_os(PLACE).map(PathBuf::from) else {
        return;
    };
    println!("begun");
    loop {
        run(&place);
    }
}

fn kill_after(place: &Path, time: Duration) {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "index_killed::victim",
            "--ignored",
            "--nocapture",
        ])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(victim.stdout.take().unwrap());
    let begun = output.lines().any(|line| line.unwrap().contains("begun"));
    assert!(begun);
    std::thread::sleep(time);
    victim.kill().unwrap();
    victim.wait().unwrap();
}

fn run(place: &Path) {
    let root = place.join("files").canonicalize().unwrap();
    let options = IndexOptions {
        force: true,
        ..IndexOptions::default()
    };
    let mut watch = |_| ControlFlow::Continue(());
    index(
        &open(place),
        &root,
        "main",
        &options,
        Redactor::standard(),
        &mut watch,
    )
    .unwrap();
}

fn open(place: &Path) -> Database {
    Database::open(place.join("data").join("project.db")).unwrap()
}

fn write_all(place: &Path, name: &str) {
    let text = format!("fn {name}() {{\n{}}}\n", "    call();\n".repeat(50));
    for file in 0..FILES {
        let path = place.join("files").join(format!("f{file}.rs"));
        // Whole or not at all, as an editor writes it.
        let new = place.join("new");
        fs::write(&new, &text).unwrap();
        fs::rename(new, path).unwrap();
    }
}

/// What every shown file defines.
fn seen(place: &Path) -> Vec<String> {
    let db = open(place);
    db.read(|db| {
        let mut statement = db.prepare(
            "SELECT defs FROM chunk JOIN file ON file.id = chunk.file WHERE tree IS NOT NULL ORDER BY chunk.id",
        )?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    })
    .unwrap()
}

fn check(place: &Path) {
    let seen = seen(place);
    assert_eq!(seen.len(), FILES);
    assert!(
        seen.iter().all(|name| *name == seen[0]),
        "half of a change is shown"
    );
    let db = open(place);
    let tree = tree_for(&db, &place.join("files").canonicalize().unwrap());
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
