//! The index of a repository, as its callers see it.

use std::{
    fs,
    ops::ControlFlow,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use turnbuckle_context::{
    ContextError, Database, Redactor,
    code_index::{
        Freshness, IndexOptions, IndexProgress, IndexReport, IndexTree, RefreshReport, SkipReason,
        index, refresh, tree_for, trees,
    },
};

/// A folder with files, and a database beside it.
struct Place {
    folder: tempfile::TempDir,
    data: tempfile::TempDir,
    db: Database,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let db = Database::open(data.path().join("project.db")).unwrap();
        let place = Self { folder, data, db };
        for (path, text) in files {
            place.write(path, text);
        }
        place
    }

    fn with_functions(number: usize) -> Self {
        let place = Self::new(&[]);
        for file in 0..number {
            let text = format!(
                "fn function_{file}() {{\n{}}}\n",
                "    call();\n".repeat(100)
            );
            place.write(&format!("d{}/f{file}.rs", file % 7), &text);
        }
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Writes a file that was changed long ago.
    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        self.write_at(path, text, 1_000_000);
    }

    fn write_at(&self, path: &str, text: impl AsRef<[u8]>, seconds: u64) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }

    fn index(&self) -> IndexReport {
        self.index_with(&IndexOptions::default())
    }

    fn index_with(&self, options: &IndexOptions) -> IndexReport {
        self.try_index(options, &mut |_| ControlFlow::Continue(()))
            .unwrap()
    }

    fn try_index(
        &self,
        options: &IndexOptions,
        watch: &mut dyn FnMut(IndexProgress) -> ControlFlow<()>,
    ) -> Result<IndexReport, ContextError> {
        index(
            &self.db,
            &self.root(),
            "main",
            options,
            Redactor::standard(),
            watch,
        )
    }

    fn refresh(&self, budget: Duration) -> RefreshReport {
        refresh(&self.db, &self.tree(), Redactor::standard(), budget).unwrap()
    }

    fn tree(&self) -> IndexTree {
        tree_for(&self.db, &self.root()).unwrap().unwrap()
    }

    fn paths(&self) -> Vec<String> {
        let select = "SELECT path FROM file WHERE tree = ?1 AND left_out = '' ORDER BY path";
        self.strings(select)
    }

    fn strings(&self, select: &str) -> Vec<String> {
        let tree = self.tree().id;
        self.db
            .read(|db| {
                let mut statement = db.prepare(select)?;
                let rows = statement.query_map([tree], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .unwrap()
    }

    /// The files in which a word is found.
    fn found(&self, word: &str) -> Vec<String> {
        let select = format!(
            "SELECT DISTINCT file.path FROM chunk_fts JOIN chunk ON chunk.id = chunk_fts.rowid JOIN file ON file.id = chunk.file
             WHERE tree = ?1 AND chunk_fts MATCH '\"{word}\"' ORDER BY file.path"
        );
        self.strings(&select)
    }

    fn number(&self, select: &str) -> i64 {
        self.db
            .read(|db| Ok(db.query_row(select, [], |row| row.get(0))?))
            .unwrap()
    }

    /// Everything is where it belongs: no files without an owner, no words without a chunk.
    fn check(&self) {
        assert_eq!(self.number("SELECT count(*) FROM run"), 0);
        assert_eq!(
            self.number("SELECT count(*) FROM file WHERE tree IS NULL"),
            0
        );
        let chunks = self.number("SELECT count(*) FROM chunk");
        assert_eq!(chunks, self.number("SELECT count(*) FROM chunk_fts"));
        assert_eq!(
            chunks,
            self.number("SELECT coalesce(sum(chunks), 0) FROM file")
        );
        let broken = "SELECT count(*) FROM chunk WHERE file NOT IN (SELECT id FROM file)";
        assert_eq!(self.number(broken), 0);
        for tree in trees(&self.db).unwrap() {
            let files = format!(
                "SELECT count(*) FROM file WHERE left_out = '' AND tree = {}",
                tree.id
            );
            assert_eq!(tree.counts.files, self.number(&files).cast_unsigned());
        }
    }
}

#[test]
fn what_was_indexed_is_found() {
    let place = Place::new(&[
        (
            "src/reader.rs",
            "/// Opens it.\npub fn openFileQuickly() {}\n",
        ),
        ("README.md", "# Title\n\nwords\n"),
    ]);
    let indexed = place.index();
    assert_eq!(
        (indexed.read, indexed.unchanged, indexed.removed),
        (2, 0, 0)
    );
    assert_eq!(
        (indexed.tree.counts.files, indexed.tree.counts.chunks),
        (2, 2)
    );
    assert_eq!(place.found("quickly"), ["src/reader.rs"]);
    assert_eq!(place.found("reader"), ["src/reader.rs"]);
    assert_eq!(
        place.strings(
            "SELECT symbol FROM chunk JOIN file ON file.id = file WHERE tree = ?1 ORDER BY path"
        ),
        ["Title", "openFileQuickly"]
    );
    assert_eq!(
        (indexed.tree.branch.as_str(), indexed.tree.version),
        ("main", 1)
    );
    place.check();
}

#[test]
fn only_what_changed_is_read_again() {
    let place = Place::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    place.index();
    place.write_at("a.rs", "fn gamma() {}", 2_000_000);
    place.write_at("c.rs", "fn delta() {}", 2_000_000);
    let indexed = place.index();
    assert_eq!(
        (indexed.read, indexed.unchanged, indexed.removed),
        (2, 1, 0)
    );
    assert!(place.found("alpha").is_empty());
    assert_eq!(place.found("gamma"), ["a.rs"]);
    assert_eq!(place.found("delta"), ["c.rs"]);
    place.check();
}

#[test]
fn what_was_deleted_or_renamed_is_gone() {
    let place = Place::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    place.index();
    fs::rename(place.root().join("a.rs"), place.root().join("z.rs")).unwrap();
    fs::remove_file(place.root().join("b.rs")).unwrap();
    let indexed = place.index();
    assert_eq!((indexed.read, indexed.removed), (1, 2));
    assert_eq!(place.paths(), ["z.rs"]);
    assert_eq!(place.found("alpha"), ["z.rs"]);
    place.check();
}

#[test]
fn a_file_that_only_looks_changed_is_not_stored_again() {
    let place = Place::new(&[("a.rs", "fn alpha() {}")]);
    let before = place.index().tree;
    place.write_at("a.rs", "fn alpha() {}", 3_000_000);
    let indexed = place.index();
    assert_eq!((indexed.read, indexed.unchanged), (0, 1));
    assert_eq!(indexed.tree.version, before.version);
    assert_eq!(
        place.strings("SELECT (modified / 1000000000) || '' FROM file WHERE tree = ?1"),
        ["3000000"]
    );
}

#[test]
fn a_change_that_size_and_time_do_not_show_is_seen_if_the_file_was_fresh() {
    let place = Place::new(&[]);
    let path = place.root().join("a.rs");
    fs::write(&path, "fn alpha() {}").unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    place.index();
    fs::write(&path, "fn gamma() {}").unwrap();
    fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    place.index();
    assert_eq!(place.found("gamma"), ["a.rs"]);
}

#[test]
fn force_reads_everything_again() {
    let place = Place::with_functions(100);
    place.index();
    place.write("d0/f0.rs", "fn other() {}");
    let options = IndexOptions {
        force: true,
        ..IndexOptions::default()
    };
    let indexed = place.index_with(&options);
    assert_eq!((indexed.read, indexed.unchanged), (100, 0));
    assert_eq!(place.found("other"), ["d0/f0.rs"]);
    place.check();
}

#[test]
fn other_settings_are_another_choice_of_files() {
    let place = Place::new(&[
        ("a.rs", "fn a() {}"),
        ("b.py", "def b(): pass"),
        ("c/d.rs", "fn d() {}"),
    ]);
    place.index();
    let only_rust = IndexOptions {
        include: vec!["*.rs".into()],
        exclude: vec!["c/".into()],
        ..IndexOptions::default()
    };
    place.index_with(&only_rust);
    assert_eq!(place.paths(), ["a.rs"]);
    place.write("e.py", "def e(): pass");
    place.refresh(Duration::from_secs(60));
    assert_eq!(place.paths(), ["a.rs"], "a refresh keeps the settings");
    assert_eq!(place.tree().options, only_rust);
    place.index();
    assert_eq!(place.paths(), ["a.rs", "b.py", "c/d.rs", "e.py"]);
    place.check();
}

#[test]
fn a_bad_pattern_is_named_and_nothing_happens() {
    let place = Place::new(&[("a.rs", "fn a() {}")]);
    let options = IndexOptions {
        include: vec!["src/[".into()],
        ..IndexOptions::default()
    };
    let error = place
        .try_index(&options, &mut |_| ControlFlow::Continue(()))
        .unwrap_err();
    assert!(
        matches!(error, ContextError::InvalidRequest(_)) && error.to_string().contains("`src/[`"),
        "{error}"
    );
    assert!(trees(&place.db).unwrap().is_empty());
}

#[test]
fn what_is_no_readable_text_is_counted() {
    let place = Place::new(&[
        ("a.rs", "fn a() {}"),
        ("nul.rs", "a\0b"),
        ("gen.rs", "// @generated by x\nfn g() {}"),
        ("blank.rs", " \n\n"),
        ("Cargo.lock", "x"),
        ("logo.png", "x"),
        ("empty.rs", ""),
        ("large.rs", &"x\n".repeat(600_000)),
    ]);
    place.write(
        "latin.c",
        b"/* caf\xe9 and so on and on */\nint f(void) {\n}\n",
    );
    let counts = place.index().tree.counts;
    assert_eq!(counts.files, 2);
    let wanted = [
        (SkipReason::Binary, 2),
        (SkipReason::TooLarge, 1),
        (SkipReason::Generated, 2),
        (SkipReason::Empty, 2),
    ];
    for (reason, number) in wanted {
        assert_eq!(counts.skipped(reason), number, "{reason:?}");
    }
    assert_eq!(place.found("café"), ["latin.c"]);
    let again = place.index();
    assert_eq!((again.read, again.tree.counts), (0, counts));
    place.check();
}

#[test]
fn secrets_are_not_stored() {
    // Made of parts, so that nobody takes this file for a leak.
    let secret = ["ghp", "_", "x9Kd82mNq4ZvT7wRbY3cLf6hJ1sPgA5uE0oi"].concat();
    let text = format!("fn a() {{\n    let key = \"{secret}\";\n}}\n\nfn after() {{}}\n");
    let place = Place::new(&[("a.rs", &text), (&format!("{secret}.rs"), "fn b() {}")]);

    let indexed = place.index();

    assert_eq!(indexed.redacted.values().sum::<usize>(), 1);
    assert_eq!(indexed.tree.counts.skipped(SkipReason::InvalidName), 1);
    assert_eq!(place.found("after"), ["a.rs"]);
    for file in fs::read_dir(place.data.path()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let is_there = |part: &[u8]| bytes.windows(part.len()).any(|bytes| bytes == part);
        assert!(!is_there(&secret.as_bytes()[4..20]));
    }
}

#[cfg(unix)]
#[test]
fn links_lead_nowhere_and_pipes_are_not_waited_for() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.rs"), "fn secret() {}").unwrap();
    let place = Place::new(&[("a.rs", "fn a() {}")]);
    std::os::unix::fs::symlink(outside.path(), place.root().join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.rs"), place.root().join("b.rs"))
        .unwrap();
    std::os::unix::fs::symlink(place.root(), place.root().join("around")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(place.root().join("pipe.rs"))
        .status();
    assert!(made.unwrap().success());
    let counts = place.index().tree.counts;
    assert_eq!((counts.files, counts.skipped(SkipReason::NotAFile)), (1, 4));
    assert!(place.found("secret").is_empty());
}

#[test]
fn a_very_long_line_is_many_chunks() {
    let place = Place::new(&[("data.txt", &"word ".repeat(100_000))]);
    let counts = place.index().tree.counts;
    assert!(counts.chunks > 50, "{counts:?}");
    let longest = place.number("SELECT max(length(body)) FROM chunk");
    assert!(longest < 10_000, "{longest}");
}

#[test]
fn a_run_that_is_cancelled_changes_nothing() {
    let place = Place::with_functions(120);
    place.index();
    let before = (place.tree().version, place.paths());
    for file in 0..120 {
        place.write_at(
            &format!("d{}/f{file}.rs", file % 7),
            "fn other() {}\n".repeat(100),
            2_000_000,
        );
    }
    let mut most = 0;
    for stop in [0, 1, 2, 3, 5, 8, usize::MAX] {
        let mut steps = 0;
        let ended = place.try_index(&IndexOptions::default(), &mut |step| {
            steps += 1;
            most = most.max(step.files_done);
            match steps > stop {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        match ended {
            Err(ContextError::Cancelled) => {
                assert_eq!((place.tree().version, place.paths()), before);
                assert!(place.found("other").is_empty());
                place.check();
            }
            ended => {
                assert_eq!(ended.unwrap().read, 120);
                break;
            }
        }
    }
    assert_eq!(most, 120);
    assert_eq!(place.index().tree.counts.files, 120);
    place.check();
}

#[test]
fn several_processes_may_index_at_once() {
    let place = Place::with_functions(80);
    let handles: Vec<_> = (0..4)
        .map(|_| Database::open(place.db.path()).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for db in &handles {
            scope.spawn(|| {
                let options = IndexOptions::default();
                let mut watch = |_| ControlFlow::Continue(());
                let indexed = index(
                    db,
                    &place.root(),
                    "main",
                    &options,
                    Redactor::standard(),
                    &mut watch,
                );
                assert_eq!(indexed.unwrap().tree.counts.files, 80);
            });
        }
    });
    assert_eq!(place.paths().len(), 80);
    let indexed = place.index();
    assert_eq!((indexed.read, indexed.unchanged), (0, 80));
    place.check();
}

#[test]
fn readers_see_the_old_index_or_the_new_one() {
    let place = Place::new(&[]);
    for file in 0..90 {
        place.write(
            &format!("f{file}.rs"),
            format!("fn before() {{\n{}}}\n", "    call();\n".repeat(100)),
        );
    }
    place.index();
    let is_done = AtomicBool::new(false);
    let options = IndexOptions {
        force: true,
        ..IndexOptions::default()
    };
    for file in 0..90 {
        place.write(
            &format!("f{file}.rs"),
            format!("fn later() {{\n{}}}\n", "    call();\n".repeat(100)),
        );
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let (before, later) = place
                    .db
                    .read(|db| {
                        let select = "SELECT count(*) FROM chunk JOIN file ON file.id = file WHERE defs = ?1 AND tree IS NOT NULL";
                        let count = |word: &str| db.query_row(select, [word], |row| row.get::<_, i64>(0));
                        Ok((count("before")?, count("later")?))
                    })
                    .unwrap();
                assert!(matches!((before, later), (90, 0) | (0, 90)), "{before} {later}");
            }
        });
        place.index_with(&options);
        is_done.store(true, Ordering::Relaxed);
    });
    place.check();
}

#[test]
fn somebody_else_can_write_meanwhile() {
    let place = Place::with_functions(400);
    let is_done = AtomicBool::new(false);
    let other = Database::open(place.db.path()).unwrap();
    std::thread::scope(|scope| {
        for db in [&place.db, &other] {
            let is_done = &is_done;
            scope.spawn(move || {
                let mut longest = Duration::ZERO;
                while !is_done.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    db.write(|db| {
                        Ok(db.execute("INSERT OR REPLACE INTO about VALUES ('a', 'b')", [])?)
                    })
                    .unwrap();
                    longest = longest.max(begun.elapsed());
                    std::thread::sleep(Duration::from_millis(10));
                }
                // Generous: the machine may be busy with other tests. The scale check measures it.
                assert!(longest < Duration::from_secs(3), "{longest:?}");
            });
        }
        place.index();
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_a_dead_run_left_is_cleaned_away() {
    let place = Place::new(&[("a.rs", "fn a() {}")]);
    place.index();
    place
        .db
        .write(|db| {
            db.execute("INSERT INTO run VALUES (7, '/x', 1)", [])?;
            let insert = "INSERT INTO file (id, run, path, size, modified, hash, language, indexed) VALUES (99, 7, 'x', 1, 1, x'', '', 1)";
            db.execute(insert, [])?;
            db.execute("INSERT INTO chunk (id, file, first_line, last_line, body) VALUES (99, 99, 1, 1, 'x')", [])?;
            Ok(db.execute("INSERT INTO chunk_fts (rowid, body) VALUES (99, 'leftover')", [])?)
        })
        .unwrap();
    place.index();
    place.check();
}

#[test]
fn what_was_read_when_the_clock_was_wrong_is_read_again() {
    for files in [1, 300] {
        let place = Place::with_functions(files);
        place.index();
        let spoil = "UPDATE file SET indexed = indexed + 1000000000";
        place.db.write(|db| Ok(db.execute(spoil, [])?)).unwrap();
        assert_eq!(place.index().read, files as u64);
        assert_eq!(place.index().read, 0);
        place.check();
    }
}

#[test]
fn settings_that_cannot_be_read_leave_no_file_out() {
    let place = Place::new(&[("a.rs", "fn alpha() {}")]);
    place.index();
    let spoil = "UPDATE tree SET settings = 'spoiled'";
    place.db.write(|db| Ok(db.execute(spoil, [])?)).unwrap();
    let refreshed = place.refresh(Duration::from_secs(60));
    assert_eq!((refreshed.removed, place.paths().len()), (0, 1));
}

#[test]
fn a_refresh_sees_changes_and_deletions() {
    let place = Place::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    place.index();
    let idle = place.refresh(Duration::from_secs(60));
    assert_eq!(
        (idle.freshness, idle.read, idle.removed),
        (Freshness::Fresh, 0, 0)
    );
    place.write_at("a.rs", "fn gamma() {}", 2_000_000);
    fs::remove_file(place.root().join("b.rs")).unwrap();
    let refreshed = place.refresh(Duration::from_secs(60));
    assert_eq!(
        (refreshed.freshness, refreshed.read, refreshed.removed),
        (Freshness::Fresh, 1, 1)
    );
    assert_eq!(refreshed.tree.counts.files, 1);
    assert_eq!(place.found("gamma"), ["a.rs"]);
    place.check();
}

#[test]
fn a_refresh_without_time_changes_nothing_and_says_so() {
    let place = Place::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    place.index();
    fs::remove_file(place.root().join("b.rs")).unwrap();
    place.write_at("a.rs", "fn gamma() {}", 2_000_000);
    let refreshed = place.refresh(Duration::ZERO);
    assert_eq!(refreshed.freshness, Freshness::Unknown);
    assert_eq!(place.paths(), ["a.rs", "b.rs"]);
    assert_eq!(place.found("alpha"), ["a.rs"]);
}

#[test]
fn a_folder_that_is_out_of_reach_loses_nothing() {
    let place = Place::new(&[("a.rs", "fn alpha() {}")]);
    place.index();
    let tree = place.tree();
    let away = place.data.path().join("away");
    fs::rename(&tree.root, &away).unwrap();
    assert!(
        refresh(
            &place.db,
            &tree,
            Redactor::standard(),
            Duration::from_secs(60)
        )
        .is_err()
    );
    fs::rename(&away, &tree.root).unwrap();
    assert_eq!(place.paths(), ["a.rs"]);
}

#[test]
fn the_tree_of_a_folder_is_the_nearest_one() {
    let place = Place::new(&[("a.rs", "fn a() {}"), ("sub/deep/b.rs", "fn b() {}")]);
    place.index();
    let sub = place.root().join("sub");
    let options = IndexOptions::default();
    index(
        &place.db,
        &sub,
        "main",
        &options,
        Redactor::standard(),
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
    let root_of = |folder: PathBuf| tree_for(&place.db, &folder).unwrap().map(|tree| tree.root);
    assert_eq!(root_of(sub.join("deep")), Some(sub));
    assert_eq!(root_of(place.root().join("other")), Some(place.root()));
    assert_eq!(root_of("/".into()), None);
    assert_eq!(trees(&place.db).unwrap().len(), 2);
    place.check();
}

/// Whoever may write a folder can put a link in its place after it was allowed.
#[cfg(unix)]
#[test]
fn a_folder_that_became_a_link_is_not_followed() {
    let place = Place::new(&[
        ("inside/a.rs", "fn inside() {}\n"),
        ("secret/b.rs", "fn b() {}\n"),
    ]);
    let root = place.root().join("inside");
    let mut watch = |_| ControlFlow::Continue(());
    let (options, redactor) = (IndexOptions::default(), Redactor::standard());
    let tree = index(&place.db, &root, "main", &options, redactor, &mut watch)
        .unwrap()
        .tree;
    fs::rename(&root, place.root().join("away")).unwrap();
    std::os::unix::fs::symlink(place.root().join("secret"), &root).unwrap();
    let again = index(&place.db, &root, "main", &options, redactor, &mut watch);
    assert!(again.unwrap_err().to_string().contains("has moved"));
    assert!(refresh(&place.db, &tree, redactor, Duration::from_secs(5)).is_err());
}
