//! Tests of the index of a repository.

use std::{
    fs,
    ops::ControlFlow,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use turnbuckle_context::{
    ContextError, Database, Redactor,
    evaluation::code_index::{
        Freshness, IndexOptions, IndexProgress, IndexReport, IndexTree, RefreshReport, SkipReason,
        index, refresh, tree_for, trees,
    },
};

/// A folder with files, and a database.
struct TestProject {
    folder: tempfile::TempDir,
    data: tempfile::TempDir,
    db: Database,
}

impl TestProject {
    fn new(files: &[(&str, &str)]) -> Self {
        let (folder, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let db = Database::open(data.path().join("project.db")).unwrap();
        let test_folder = Self { folder, data, db };
        for (path, text) in files {
            test_folder.write(path, text);
        }
        test_folder
    }

    fn with_functions(number: usize) -> Self {
        let test_folder = Self::new(&[]);
        for file in 0..number {
            let text = format!(
                "fn function_{file}() {{\n{}}}\n",
                "    call();\n".repeat(100)
            );
            test_folder.write(&format!("d{}/f{file}.rs", file % 7), &text);
        }
        test_folder
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    /// Writes a file with an old modification time.
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

    /// Returns the files that contain a word.
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

    /// Checks that every file has a tree or run, and every search row a chunk.
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
fn indexed_files_are_found() {
    let test_folder = TestProject::new(&[
        (
            "src/reader.rs",
            "/// Opens it.\npub fn openFileQuickly() {}\n",
        ),
        ("README.md", "# Title\n\nwords\n"),
    ]);
    let indexed = test_folder.index();
    assert_eq!(
        (indexed.read, indexed.unchanged, indexed.removed),
        (2, 0, 0)
    );
    assert_eq!(
        (indexed.tree.counts.files, indexed.tree.counts.chunks),
        (2, 2)
    );
    assert_eq!(test_folder.found("quickly"), ["src/reader.rs"]);
    assert_eq!(test_folder.found("reader"), ["src/reader.rs"]);
    assert_eq!(
        test_folder.strings(
            "SELECT symbol FROM chunk JOIN file ON file.id = file WHERE tree = ?1 ORDER BY path"
        ),
        ["Title", "openFileQuickly"]
    );
    assert_eq!(
        (indexed.tree.branch.as_str(), indexed.tree.version),
        ("main", 1)
    );
    test_folder.check();
}

#[test]
fn only_changed_files_are_read_again() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    test_folder.index();
    test_folder.write_at("a.rs", "fn gamma() {}", 2_000_000);
    test_folder.write_at("c.rs", "fn delta() {}", 2_000_000);
    let indexed = test_folder.index();
    assert_eq!(
        (indexed.read, indexed.unchanged, indexed.removed),
        (2, 1, 0)
    );
    assert!(test_folder.found("alpha").is_empty());
    assert_eq!(test_folder.found("gamma"), ["a.rs"]);
    assert_eq!(test_folder.found("delta"), ["c.rs"]);
    test_folder.check();
}

#[test]
fn deleted_and_renamed_files_are_removed() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    test_folder.index();
    fs::rename(
        test_folder.root().join("a.rs"),
        test_folder.root().join("z.rs"),
    )
    .unwrap();
    fs::remove_file(test_folder.root().join("b.rs")).unwrap();
    let indexed = test_folder.index();
    assert_eq!((indexed.read, indexed.removed), (1, 2));
    assert_eq!(test_folder.paths(), ["z.rs"]);
    assert_eq!(test_folder.found("alpha"), ["z.rs"]);
    test_folder.check();
}

#[test]
fn a_touched_file_with_the_same_contents_is_not_stored_again() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}")]);
    let before = test_folder.index().tree;
    test_folder.write_at("a.rs", "fn alpha() {}", 3_000_000);
    let indexed = test_folder.index();
    assert_eq!((indexed.read, indexed.unchanged), (0, 1));
    assert_eq!(indexed.tree.version, before.version);
    assert_eq!(
        test_folder.strings("SELECT (modified / 1000000000) || '' FROM file WHERE tree = ?1"),
        ["3000000"]
    );
}

#[test]
fn a_change_right_after_indexing_is_detected_despite_equal_size_and_time() {
    let test_folder = TestProject::new(&[]);
    let path = test_folder.root().join("a.rs");
    fs::write(&path, "fn alpha() {}").unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    test_folder.index();
    fs::write(&path, "fn gamma() {}").unwrap();
    fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    test_folder.index();
    assert_eq!(test_folder.found("gamma"), ["a.rs"]);
}

#[test]
fn force_reads_everything_again() {
    let test_folder = TestProject::with_functions(100);
    test_folder.index();
    test_folder.write("d0/f0.rs", "fn other() {}");
    let options = IndexOptions {
        force: true,
        ..IndexOptions::default()
    };
    let indexed = test_folder.index_with(&options);
    assert_eq!((indexed.read, indexed.unchanged), (100, 0));
    assert_eq!(test_folder.found("other"), ["d0/f0.rs"]);
    test_folder.check();
}

#[test]
fn changed_options_change_the_indexed_files() {
    let test_folder = TestProject::new(&[
        ("a.rs", "fn a() {}"),
        ("b.py", "def b(): pass"),
        ("c/d.rs", "fn d() {}"),
    ]);
    test_folder.index();
    let only_rust = IndexOptions {
        include: vec!["*.rs".into()],
        exclude: vec!["c/".into()],
        ..IndexOptions::default()
    };
    test_folder.index_with(&only_rust);
    assert_eq!(test_folder.paths(), ["a.rs"]);
    test_folder.write("e.py", "def e(): pass");
    test_folder.refresh(Duration::from_secs(60));
    assert_eq!(
        test_folder.paths(),
        ["a.rs"],
        "a refresh keeps the settings"
    );
    assert_eq!(test_folder.tree().options, only_rust);
    test_folder.index();
    assert_eq!(test_folder.paths(), ["a.rs", "b.py", "c/d.rs", "e.py"]);
    test_folder.check();
}

#[test]
fn an_invalid_pattern_is_named_and_changes_nothing() {
    let test_folder = TestProject::new(&[("a.rs", "fn a() {}")]);
    let options = IndexOptions {
        include: vec!["src/[".into()],
        ..IndexOptions::default()
    };
    let error = test_folder
        .try_index(&options, &mut |_| ControlFlow::Continue(()))
        .unwrap_err();
    assert!(
        matches!(error, ContextError::InvalidRequest(_)) && error.to_string().contains("`src/[`"),
        "{error}"
    );
    assert!(trees(&test_folder.db).unwrap().is_empty());
}

#[test]
fn unreadable_and_binary_files_are_counted() {
    let test_folder = TestProject::new(&[
        ("a.rs", "fn a() {}"),
        ("nul.rs", "a\0b"),
        ("gen.rs", "// @generated by x\nfn g() {}"),
        ("blank.rs", " \n\n"),
        ("Cargo.lock", "x"),
        ("logo.png", "x"),
        ("empty.rs", ""),
        ("large.rs", &"x\n".repeat(600_000)),
    ]);
    test_folder.write(
        "latin.c",
        b"/* caf\xe9 and so on and on */\nint f(void) {\n}\n",
    );
    let counts = test_folder.index().tree.counts;
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
    assert_eq!(test_folder.found("café"), ["latin.c"]);
    let again = test_folder.index();
    assert_eq!((again.read, again.tree.counts), (0, counts));
    test_folder.check();
}

#[test]
fn secrets_are_not_stored() {
    // Concatenated, so that secret scanners do not report this file.
    let secret = ["ghp", "_", "x9Kd82mNq4ZvT7wRbY3cLf6hJ1sPgA5uE0oi"].concat();
    let text = format!("fn a() {{\n    let key = \"{secret}\";\n}}\n\nfn after() {{}}\n");
    let test_folder = TestProject::new(&[("a.rs", &text), (&format!("{secret}.rs"), "fn b() {}")]);

    let indexed = test_folder.index();

    assert_eq!(indexed.redacted.values().sum::<usize>(), 1);
    assert_eq!(indexed.tree.counts.skipped(SkipReason::InvalidName), 1);
    assert_eq!(test_folder.found("after"), ["a.rs"]);
    for file in fs::read_dir(test_folder.data.path()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let is_there = |part: &[u8]| bytes.windows(part.len()).any(|bytes| bytes == part);
        assert!(!is_there(&secret.as_bytes()[4..20]));
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_and_pipes_do_not_block() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.rs"), "fn secret() {}").unwrap();
    let test_folder = TestProject::new(&[("a.rs", "fn a() {}")]);
    std::os::unix::fs::symlink(outside.path(), test_folder.root().join("folder")).unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("secret.rs"),
        test_folder.root().join("b.rs"),
    )
    .unwrap();
    std::os::unix::fs::symlink(test_folder.root(), test_folder.root().join("around")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(test_folder.root().join("pipe.rs"))
        .status();
    assert!(made.unwrap().success());
    let counts = test_folder.index().tree.counts;
    assert_eq!((counts.files, counts.skipped(SkipReason::NotAFile)), (1, 4));
    assert!(test_folder.found("secret").is_empty());
}

#[test]
fn a_very_long_line_is_split_into_chunks() {
    let test_folder = TestProject::new(&[("data.txt", &"word ".repeat(100_000))]);
    let counts = test_folder.index().tree.counts;
    assert!(counts.chunks > 50, "{counts:?}");
    let longest = test_folder.number("SELECT max(length(body)) FROM chunk");
    assert!(longest < 10_000, "{longest}");
}

#[test]
fn a_cancelled_run_changes_nothing() {
    let test_folder = TestProject::with_functions(120);
    test_folder.index();
    let before = (test_folder.tree().version, test_folder.paths());
    for file in 0..120 {
        test_folder.write_at(
            &format!("d{}/f{file}.rs", file % 7),
            "fn other() {}\n".repeat(100),
            2_000_000,
        );
    }
    let mut most = 0;
    for stop in [0, 1, 2, 3, 5, 8, usize::MAX] {
        let mut steps = 0;
        let ended = test_folder.try_index(&IndexOptions::default(), &mut |step| {
            steps += 1;
            most = most.max(step.files_done);
            if steps > stop {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        match ended {
            Err(ContextError::Cancelled) => {
                assert_eq!((test_folder.tree().version, test_folder.paths()), before);
                assert!(test_folder.found("other").is_empty());
                test_folder.check();
            }
            ended => {
                assert_eq!(ended.unwrap().read, 120);
                break;
            }
        }
    }
    assert_eq!(most, 120);
    assert_eq!(test_folder.index().tree.counts.files, 120);
    test_folder.check();
}

#[test]
fn concurrent_index_runs_succeed() {
    let test_folder = TestProject::with_functions(80);
    let handles: Vec<_> = (0..4)
        .map(|_| Database::open(test_folder.db.path()).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for db in &handles {
            scope.spawn(|| {
                let options = IndexOptions::default();
                let mut watch = |_| ControlFlow::Continue(());
                let indexed = index(
                    db,
                    &test_folder.root(),
                    "main",
                    &options,
                    Redactor::standard(),
                    &mut watch,
                );
                assert_eq!(indexed.unwrap().tree.counts.files, 80);
            });
        }
    });
    assert_eq!(test_folder.paths().len(), 80);
    let indexed = test_folder.index();
    assert_eq!((indexed.read, indexed.unchanged), (0, 80));
    test_folder.check();
}

#[test]
fn readers_see_the_old_or_the_new_index() {
    let test_folder = TestProject::new(&[]);
    for file in 0..90 {
        test_folder.write(
            &format!("f{file}.rs"),
            format!("fn before() {{\n{}}}\n", "    call();\n".repeat(100)),
        );
    }
    test_folder.index();
    let is_done = AtomicBool::new(false);
    let options = IndexOptions {
        force: true,
        ..IndexOptions::default()
    };
    for file in 0..90 {
        test_folder.write(
            &format!("f{file}.rs"),
            format!("fn later() {{\n{}}}\n", "    call();\n".repeat(100)),
        );
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let (before, later) = test_folder
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
        test_folder.index_with(&options);
        is_done.store(true, Ordering::Relaxed);
    });
    test_folder.check();
}

#[test]
fn other_writers_are_not_blocked_by_indexing() {
    let test_folder = TestProject::with_functions(400);
    let is_done = AtomicBool::new(false);
    let other = Database::open(test_folder.db.path()).unwrap();
    std::thread::scope(|scope| {
        for db in [&test_folder.db, &other] {
            let is_done = &is_done;
            scope.spawn(move || {
                let mut longest = Duration::ZERO;
                while !is_done.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    db.write(|db| {
                        Ok(db.execute("INSERT OR REPLACE INTO about VALUES ('a', 'b')", [])?)
                    })
                    .unwrap();
                    longest = longest.max(started.elapsed());
                    std::thread::sleep(Duration::from_millis(10));
                }
                // Generous, because the machine may be busy with other tests. The scale test measures it exactly.
                assert!(longest < Duration::from_secs(3), "{longest:?}");
            });
        }
        test_folder.index();
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn files_of_a_dead_run_are_deleted() {
    let test_folder = TestProject::new(&[("a.rs", "fn a() {}")]);
    test_folder.index();
    test_folder
        .db
        .write(|db| {
            db.execute("INSERT INTO run VALUES (7, '/x', 1)", [])?;
            let insert = "INSERT INTO file (id, run, path, size, modified, hash, language, indexed) VALUES (99, 7, 'x', 1, 1, x'', '', 1)";
            db.execute(insert, [])?;
            db.execute("INSERT INTO chunk (id, file, first_line, last_line, body) VALUES (99, 99, 1, 1, 'x')", [])?;
            Ok(db.execute("INSERT INTO chunk_fts (rowid, body) VALUES (99, 'leftover')", [])?)
        })
        .unwrap();
    test_folder.index();
    test_folder.check();
}

#[test]
fn files_with_a_read_time_in_the_future_are_read_again() {
    for files in [1, 300] {
        let test_folder = TestProject::with_functions(files);
        test_folder.index();
        let spoil = "UPDATE file SET indexed = indexed + 1000000000";
        test_folder
            .db
            .write(|db| Ok(db.execute(spoil, [])?))
            .unwrap();
        assert_eq!(test_folder.index().read, files as u64);
        assert_eq!(test_folder.index().read, 0);
        test_folder.check();
    }
}

#[test]
fn unreadable_settings_do_not_exclude_files() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}")]);
    test_folder.index();
    let spoil = "UPDATE tree SET settings = 'spoiled'";
    test_folder
        .db
        .write(|db| Ok(db.execute(spoil, [])?))
        .unwrap();
    let refreshed = test_folder.refresh(Duration::from_secs(60));
    assert_eq!((refreshed.removed, test_folder.paths().len()), (0, 1));
}

#[test]
fn a_refresh_detects_changes_and_deletions() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    test_folder.index();
    let idle = test_folder.refresh(Duration::from_secs(60));
    assert_eq!(
        (idle.freshness, idle.read, idle.removed),
        (Freshness::Fresh, 0, 0)
    );
    test_folder.write_at("a.rs", "fn gamma() {}", 2_000_000);
    fs::remove_file(test_folder.root().join("b.rs")).unwrap();
    let refreshed = test_folder.refresh(Duration::from_secs(60));
    assert_eq!(
        (refreshed.freshness, refreshed.read, refreshed.removed),
        (Freshness::Fresh, 1, 1)
    );
    assert_eq!(refreshed.tree.counts.files, 1);
    assert_eq!(test_folder.found("gamma"), ["a.rs"]);
    test_folder.check();
}

#[test]
fn a_refresh_without_time_changes_nothing_and_reports_unknown() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}"), ("b.rs", "fn beta() {}")]);
    test_folder.index();
    fs::remove_file(test_folder.root().join("b.rs")).unwrap();
    test_folder.write_at("a.rs", "fn gamma() {}", 2_000_000);
    let refreshed = test_folder.refresh(Duration::ZERO);
    assert_eq!(refreshed.freshness, Freshness::Unknown);
    assert_eq!(test_folder.paths(), ["a.rs", "b.rs"]);
    assert_eq!(test_folder.found("alpha"), ["a.rs"]);
}

#[test]
fn files_of_an_inaccessible_folder_stay_in_the_index() {
    let test_folder = TestProject::new(&[("a.rs", "fn alpha() {}")]);
    test_folder.index();
    let tree = test_folder.tree();
    let away = test_folder.data.path().join("away");
    fs::rename(&tree.root, &away).unwrap();
    assert!(
        refresh(
            &test_folder.db,
            &tree,
            Redactor::standard(),
            Duration::from_secs(60)
        )
        .is_err()
    );
    fs::rename(&away, &tree.root).unwrap();
    assert_eq!(test_folder.paths(), ["a.rs"]);
}

#[test]
fn the_tree_of_a_folder_is_the_nearest_one() {
    let test_folder = TestProject::new(&[("a.rs", "fn a() {}"), ("sub/deep/b.rs", "fn b() {}")]);
    test_folder.index();
    let sub = test_folder.root().join("sub");
    let options = IndexOptions::default();
    index(
        &test_folder.db,
        &sub,
        "main",
        &options,
        Redactor::standard(),
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
    let root_of = |folder: PathBuf| {
        tree_for(&test_folder.db, &folder)
            .unwrap()
            .map(|tree| tree.root)
    };
    assert_eq!(root_of(sub.join("deep")), Some(sub));
    assert_eq!(
        root_of(test_folder.root().join("other")),
        Some(test_folder.root())
    );
    assert_eq!(root_of("/".into()), None);
    assert_eq!(trees(&test_folder.db).unwrap().len(), 2);
    test_folder.check();
}

/// A user with write permission can replace a folder by a link after it was allowed.
#[cfg(unix)]
#[test]
fn a_folder_replaced_by_a_link_is_not_followed() {
    let test_folder = TestProject::new(&[
        ("inside/a.rs", "fn inside() {}\n"),
        ("secret/b.rs", "fn b() {}\n"),
    ]);
    let root = test_folder.root().join("inside");
    let mut watch = |_| ControlFlow::Continue(());
    let (options, redactor) = (IndexOptions::default(), Redactor::standard());
    let tree = index(
        &test_folder.db,
        &root,
        "main",
        &options,
        redactor,
        &mut watch,
    )
    .unwrap()
    .tree;
    fs::rename(&root, test_folder.root().join("away")).unwrap();
    std::os::unix::fs::symlink(test_folder.root().join("secret"), &root).unwrap();
    let again = index(
        &test_folder.db,
        &root,
        "main",
        &options,
        redactor,
        &mut watch,
    );
    assert!(again.unwrap_err().to_string().contains("was moved"));
    assert!(refresh(&test_folder.db, &tree, redactor, Duration::from_secs(5)).is_err());
}
