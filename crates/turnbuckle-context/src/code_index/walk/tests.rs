use std::{fs, path::PathBuf};

use super::*;

struct TestDir(tempfile::TempDir);

impl TestDir {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = folder.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn walk(&self, options: &IndexOptions) -> (Vec<String>, SkipCounts) {
        let (mut paths, mut skip_counts) = (Vec::new(), SkipCounts::new());
        let mut should_continue = || ControlFlow::Continue(());
        let mut on_file = |found: FoundFile| paths.push(found.path);
        let root = self.root();
        let folder = crate::storage::dir_handle::DirHandle::open(&root).unwrap();
        walk(
            &folder,
            &root,
            options,
            &mut skip_counts,
            &mut should_continue,
            &mut on_file,
        )
        .unwrap();
        (paths, skip_counts)
    }

    fn paths(&self, include: &[&str], exclude: &[&str]) -> Vec<String> {
        let owned = |patterns: &[&str]| {
            patterns
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect()
        };
        let options = IndexOptions {
            include: owned(include),
            exclude: owned(exclude),
            ..IndexOptions::default()
        };
        self.walk(&options).0
    }
}

#[test]
fn ignore_rules_apply_without_a_repository() {
    let folder = TestDir::new(&[
        (".gitignore", "*.log\n/out/\n"),
        (".ignore", "notes\n"),
        ("a.log", "x"),
        ("a.rs", "x"),
        ("out/b.rs", "x"),
        ("src/out/c.rs", "x"),
        ("src/.gitignore", "d.rs"),
        ("src/d.rs", "x"),
        ("notes/e.rs", "x"),
        (".hidden/f.rs", "x"),
        (".git/config.rs", "x"),
    ]);
    fs::remove_dir_all(folder.root().join(".git")).unwrap();
    assert_eq!(folder.paths(&[], &[]), ["a.rs", "src/out/c.rs"]);
}

#[test]
fn rules_of_the_repository_apply_in_its_folders() {
    let folder = TestDir::new(&[
        (".gitignore", "*.log"),
        (".git/HEAD", "ref: refs/heads/main"),
        ("sub/a.log", "x"),
        ("sub/a.rs", "x"),
    ]);
    let (mut paths, mut skip_counts) = (Vec::new(), SkipCounts::new());
    let mut on_file = |found: FoundFile| paths.push(found.path);
    let mut should_continue = || ControlFlow::Continue(());
    let sub = folder.root().join("sub");
    walk(
        &crate::storage::dir_handle::DirHandle::open(&sub).unwrap(),
        &sub,
        &IndexOptions::default(),
        &mut skip_counts,
        &mut should_continue,
        &mut on_file,
    )
    .unwrap();
    assert_eq!(paths, ["a.rs"]);
}

#[test]
fn patterns_select_among_files_that_are_not_ignored() {
    let folder = TestDir::new(&[
        (".gitignore", "gen/\nlocal.rs"),
        (".git/a.rs", "x"),
        (".x/a.rs", "x"),
        ("a.rs", "x"),
        ("a.py", "x"),
        ("local.rs", "x"),
        ("gen/b.rs", "x"),
        ("src/c.rs", "x"),
        ("src/tests/d.rs", "x"),
    ]);
    assert_eq!(
        folder.paths(&["*.rs"], &[]),
        ["a.rs", "src/c.rs", "src/tests/d.rs"]
    );
    assert_eq!(folder.paths(&["src/"], &[]), ["src/c.rs", "src/tests/d.rs"]);
    assert_eq!(folder.paths(&["./src"], &["**/tests/**"]), ["src/c.rs"]);
    assert_eq!(folder.paths(&[], &["src", "*.py"]), ["a.rs"]);
    assert_eq!(
        folder.paths(&["**"], &["src/tests/"]),
        ["a.py", "a.rs", "src/c.rs"]
    );
    assert_eq!(folder.paths(&["/a.*"], &[]), ["a.py", "a.rs"]);
}

#[test]
fn the_error_names_an_invalid_pattern() {
    for pattern in ["a[", "!a", " ", "{a"] {
        let options = IndexOptions {
            exclude: vec![pattern.to_owned()],
            ..IndexOptions::default()
        };
        let error = FileFilter::new(Path::new("/"), &options).unwrap_err();
        assert!(
            error.to_string().contains(&format!("`{pattern}`")),
            "{error}"
        );
    }
}

#[test]
fn files_are_skipped_by_name_and_size_and_counted() {
    let folder = TestDir::new(&[
        ("a.rs", "x"),
        ("logo.png", "x"),
        ("Cargo.lock", "x"),
        ("empty.rs", ""),
        ("large.rs", &"x".repeat(101)),
    ]);
    let options = IndexOptions {
        max_file_size: 100,
        ..IndexOptions::default()
    };
    let (paths, skip_counts) = folder.walk(&options);
    assert_eq!(paths, ["a.rs"]);
    let expected = [
        (SkipReason::Binary, 1),
        (SkipReason::TooLarge, 1),
        (SkipReason::Generated, 1),
        (SkipReason::Empty, 1),
    ];
    assert_eq!(skip_counts, SkipCounts::from(expected));
}

#[cfg(unix)]
#[test]
fn links_pipes_and_invalid_names_are_counted_as_skipped() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = TestDir::new(&[("a.rs", "x"), ("b/c.rs", "x")]);
    let root = folder.root();
    std::os::unix::fs::symlink(&root, root.join("around")).unwrap();
    std::os::unix::fs::symlink(root.join("a.rs"), root.join("link.rs")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(root.join("pipe.rs"))
        .status();
    assert!(made.unwrap().success());
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff.rs")), "x").unwrap();
    let (paths, skip_counts) = folder.walk(&IndexOptions::default());
    assert_eq!(paths, ["a.rs", "b/c.rs"]);
    assert_eq!(
        skip_counts,
        SkipCounts::from([(SkipReason::NotAFile, 3), (SkipReason::InvalidName, 1)])
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_as_ignore_file_does_not_block() {
    let folder = TestDir::new(&[("a.rs", "x"), ("b/c.rs", "x")]);
    let pipe = folder.root().join("b/.gitignore");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", folder.root().join("b/.ignore")).unwrap();
    let (paths, skip_counts) = folder.walk(&IndexOptions::default());
    assert_eq!(paths, ["a.rs"]);
    assert_eq!(skip_counts, SkipCounts::from([(SkipReason::Unreadable, 1)]));
}

#[test]
fn very_deep_folders_are_skipped() {
    let deep = "d/".repeat(MAX_DEPTH + 3) + "a.rs";
    let folder = TestDir::new(&[("a.rs", "x"), (&deep, "x")]);
    let (paths, skip_counts) = folder.walk(&IndexOptions::default());
    assert_eq!(paths, ["a.rs"]);
    assert_eq!(
        skip_counts,
        SkipCounts::from([(SkipReason::LimitExceeded, 1)])
    );
}

#[test]
fn a_folder_with_too_many_entries_is_skipped() {
    let folder = TestDir::new(&[("a.rs", "x"), ("large/a.rs", "x"), ("small/a.rs", "x")]);
    for number in 0..MAX_ENTRIES {
        fs::File::create(folder.root().join(format!("large/{number}"))).unwrap();
    }
    let (paths, skip_counts) = folder.walk(&IndexOptions::default());
    assert_eq!(paths, ["a.rs", "small/a.rs"]);
    assert_eq!(
        skip_counts,
        SkipCounts::from([(SkipReason::LimitExceeded, 1)])
    );
    let rejected = walk_below(&folder, "large").unwrap_err();
    assert!(
        rejected.to_string().contains("more than 1000"),
        "{rejected}"
    );
}

#[test]
fn unusable_rules_in_a_parent_folder_are_an_error() {
    let folder = TestDir::new(&[
        (".git/HEAD", "ref: refs/heads/main"),
        (".gitignore", "*.log"),
        ("sub/.gitignore/a", "x"),
        ("sub/sub/a.log", "x"),
    ]);
    let walked = walk_below(&folder, "sub/sub");
    assert!(walked.unwrap_err().to_string().contains(".gitignore"));
}

#[test]
fn rules_above_the_repository_do_not_apply() {
    let folder = TestDir::new(&[
        (".git/HEAD", "ref: refs/heads/main"),
        (".gitignore/a", "x"),
        ("repository/.git/HEAD", "ref: refs/heads/main"),
        ("repository/.gitignore", "*.log"),
        ("repository/sub/a.log", "x"),
        ("repository/sub/a.rs", "x"),
    ]);
    let walked = walk_below(&folder, "repository/sub");
    assert_eq!(walked.unwrap(), ["a.rs"]);
}

fn walk_below(folder: &TestDir, path: &str) -> Result<Vec<String>, ContextError> {
    let (mut paths, mut skip_counts) = (Vec::new(), SkipCounts::new());
    let root = folder.root().join(path);
    walk(
        &crate::storage::dir_handle::DirHandle::open(&root).unwrap(),
        &root,
        &IndexOptions::default(),
        &mut skip_counts,
        &mut || ControlFlow::Continue(()),
        &mut |found: FoundFile| paths.push(found.path),
    )?;
    Ok(paths)
}
