//! Replaces folders by links while they are read, and checks that no file outside of the folder is read.
//!
//! A thread exchanges a folder and a symlink with `renameat2` and `RENAME_EXCHANGE`, so that the name always exists and sometimes
//! leads outside. Code that checks a path before using it loses this race.

use std::{
    fs,
    ops::ControlFlow,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use turnbuckle_context::{
    ContextServer, DataDir, Database, Owner, OwnershipPolicy, Project, Redactor,
    evaluation::code_index::{IndexOptions, index, refresh, tree_for},
};
use turnbuckle_server::testing::Peer;

/// Text that only occurs in the file outside.
const SECRET: &str = "unmistakable_outside";

/// An allowed folder, a forbidden folder next to it, and a link to the latter.
struct TestProject {
    _temporary: tempfile::TempDir,
    allowed: PathBuf,
    outside: PathBuf,
}

impl TestProject {
    /// Creates `work` in the allowed folder, and `link`, which leads outside; both contain a `project`.
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let top = temporary.path().canonicalize().unwrap();
        let test_folder = Self {
            _temporary: temporary,
            allowed: top.join("allowed"),
            outside: top.join("outside"),
        };
        write(&test_folder.project().join("inside.rs"), "fn inside() {}\n");
        let secret = format!("fn {SECRET}() {{}}\n");
        write(&test_folder.outside.join("project/outside.rs"), &secret);
        symlink(&test_folder.outside, test_folder.allowed.join("link")).unwrap();
        test_folder
    }

    fn project(&self) -> PathBuf {
        self.allowed.join("work/project")
    }

    fn database(&self) -> Database {
        Database::open(self.allowed.with_file_name("index.db")).unwrap()
    }

    /// Runs a function while `work` and `link` are exchanged repeatedly.
    fn attack(&self, work: impl FnOnce()) {
        exchange(&self.allowed.join("work"), &self.allowed.join("link"), work);
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Exchanges two names as fast as possible until the work is done, and restores them.
fn exchange(one: &Path, other: &Path, work: impl FnOnce()) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let swap = || renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                swap();
                swap();
            }
        });
        let _stop = Stop(&is_over);
        work();
    });
}

#[test]
fn an_index_never_contains_a_file_from_outside() {
    let test_folder = TestProject::new();
    let (db, root) = (test_folder.database(), test_folder.project());
    let options = IndexOptions::default();
    let redactor = Redactor::standard();
    let mut watch = |_| ControlFlow::Continue(());
    let count = "SELECT count(*) FROM file WHERE path = 'outside.rs'";
    let mut indexed = 0;
    test_folder.attack(|| {
        for attempt in 0..1_500 {
            let done = index(&db, &root, "main", &options, redactor, &mut watch);
            indexed += usize::from(done.is_ok());
            if let Ok(Some(tree)) = tree_for(&db, &root) {
                let _ = refresh(&db, &tree, redactor, Duration::from_secs(5));
            }
            let seen = db.read(|db| Ok(db.query_row(count, [], |row| row.get::<_, i64>(0))?));
            assert_eq!(seen.unwrap(), 0, "escaped at attempt {attempt}");
        }
    });
    assert!(indexed > 0, "the folder itself was never seen");
}

#[test]
fn a_branch_is_never_read_from_outside() {
    let test_folder = TestProject::new();
    let git = test_folder.project().join(".git");
    write(&git.join("HEAD"), "ref: refs/heads/inside\n");
    write(
        &test_folder.outside.join("HEAD"),
        "ref: refs/heads/outside\n",
    );
    let link = test_folder.project().join("link");
    symlink(&test_folder.outside, &link).unwrap();
    let path = test_folder.project().to_str().unwrap().to_owned();
    let mut seen = 0;
    exchange(&git, &link, || {
        for attempt in 0..20_000 {
            let branch = Project::find(&path).map(|project| project.branch().to_owned());
            seen += usize::from(branch.as_deref().ok() == Some("inside"));
            assert_ne!(branch.unwrap_or_default(), "outside", "attempt {attempt}");
        }
    });
    assert!(seen > 0, "the branch itself was never seen");
}

#[test]
fn a_server_with_roots_never_returns_text_from_outside() {
    let test_folder = TestProject::new();
    let data = tempfile::tempdir().unwrap();
    let data_dir = DataDir::new(data.path()).restrict_to([test_folder.allowed.clone()]);
    let server =
        ContextServer::new(data_dir, OwnershipPolicy::Single(Owner::for_user("ada"))).build();
    let path = test_folder.project().to_str().unwrap().to_owned();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut peer = runtime.block_on(async { Peer::connect(server).await });
    let mut answered = 0;
    test_folder.attack(|| {
        for attempt in 0..150 {
            let index = json!({ "path": path });
            runtime.block_on(peer.call_tool("index_repository", index));
            let search = json!({ "query": format!("{SECRET} inside"), "project_path": path });
            let answer = runtime.block_on(peer.call_tool("repository_search", search));
            let text = format!("{answer:?}");
            answered += usize::from(text.contains("inside.rs"));
            assert!(!text.contains("outside.rs"), "attempt {attempt}: {text}");
        }
    });
    assert!(answered > 0, "the folder itself was never searched");
}
