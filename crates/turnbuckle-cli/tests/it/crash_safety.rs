//! Acknowledged data survives killed servers, concurrent servers, full disks and damaged files.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{sandbox::Sandbox, stdio_server::StdioServer};

/// A project, and a data directory next to it.
struct TestProject {
    sandbox: Sandbox,
    root: PathBuf,
}

impl TestProject {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("project/.git/HEAD", "ref: refs/heads/main\n");
        let project = sandbox.path().join("project").canonicalize().unwrap();
        Self {
            sandbox,
            root: project,
        }
    }

    fn server(&self) -> StdioServer {
        StdioServer::start(
            &mut self
                .sandbox
                .command(&["serve", "--stdio", "--data", "data"]),
        )
    }

    fn checkpoint(&self, content: &str) -> Value {
        json!({ "content": content, "project_path": self.root })
    }

    /// Returns the files of all databases.
    fn databases(&self) -> Vec<PathBuf> {
        let data = self.sandbox.path().join("data");
        let owners = fs::read_dir(data)
            .unwrap()
            .map(|owner| owner.unwrap().path());
        let files = owners
            .filter(|owner| owner.is_dir())
            .flat_map(|owner| fs::read_dir(owner).unwrap());
        let files = files.map(|file| file.unwrap().path());
        files
            .filter(|file| file.extension().is_some_and(|end| end == "db"))
            .collect()
    }

    /// Returns the database of the only project.
    fn database(&self) -> PathBuf {
        let is_project = |file: &PathBuf| file.file_stem().is_some_and(|name| name != "shared");
        self.databases().into_iter().find(is_project).unwrap()
    }
}

/// Asserts that a database and its full-text indexes are intact.
fn assert_intact(file: &Path) {
    let database = Connection::open(file).unwrap();
    let verdict: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    for index in ["item_fts", "chunk_fts"] {
        let check = format!("INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)");
        database.execute(&check, []).unwrap();
    }
    let violations: i64 = database
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(violations, 0);
}

fn bodies(file: &Path) -> BTreeMap<String, String> {
    let database = Connection::open(file).unwrap();
    let mut rows = database.prepare("SELECT id, body FROM item").unwrap();
    let rows = rows
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns the id in the response to a saved checkpoint.
fn saved(response: &Value) -> Option<String> {
    let id = &response["result"]["structuredContent"]["checkpoint_id"];
    id.as_str().map(str::to_owned)
}

/// The delay before a server is killed: a pseudo-random share of a span.
///
/// The span shrinks if the work was done before the kill, so that some rounds are interrupted on a fast machine, too.
struct KillDelay {
    span: Duration,
    state: u64,
}

impl KillDelay {
    fn new(span: Duration) -> Self {
        let state = 0x9E37_79B9_7F4A_7C15;
        Self { span, state }
    }

    fn next(&mut self) -> Duration {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let share = (self.state >> 33) % 1_000;
        self.span * u32::try_from(share).unwrap() / 1_000
    }

    fn adapt(&mut self, was_cut_short: bool) {
        if !was_cut_short {
            self.span = self.span * 2 / 3;
        }
    }
}

#[test]
fn acknowledged_saves_survive_a_kill_at_any_moment() {
    let project = TestProject::new();
    let (mut acknowledged, mut cut_short) = (BTreeMap::new(), 0);

    let mut delay = KillDelay::new(Duration::from_millis(60));
    for round in 0..25 {
        let mut server = project.server();
        // The first save creates the file, and shows that the server is ready.
        let content = format!("round {round} begins");
        let first = server.call("checkpoint_save", &project.checkpoint(&content));
        let id = first["structuredContent"]["checkpoint_id"]
            .as_str()
            .unwrap();
        acknowledged.insert(id.to_owned(), content);
        let mut sent = BTreeMap::new();
        for number in 0..60 {
            let content = format!("round {round} number {number}");
            if let Some(id) = server.send("checkpoint_save", &project.checkpoint(&content)) {
                sent.insert(id, content);
            }
        }
        std::thread::sleep(delay.next());
        server.kill();
        while let Some(response) = server.read_response() {
            let content = sent.remove(&response["id"].as_u64().unwrap()).unwrap();
            acknowledged.insert(saved(&response).unwrap(), content);
        }
        delay.adapt(!sent.is_empty());
        cut_short += usize::from(!sent.is_empty());
    }

    let file = project.database();
    assert_intact(&file);
    let kept = bodies(&file);
    for (id, content) in &acknowledged {
        assert_eq!(kept.get(id), Some(content), "{id} was acknowledged");
    }
    assert!(cut_short > 5, "only {cut_short} rounds were cut short");
    let mut server = project.server();
    let (id, content) = acknowledged.last_key_value().unwrap();
    let text = server.read(&format!("checkpoint://{id}")).unwrap();
    assert!(text.contains(content), "{text}");
}

#[test]
fn two_servers_save_concurrently_into_one_file() {
    let project = TestProject::new();
    let mut servers = [project.server(), project.server()];
    for number in 0..50 {
        for (which, server) in servers.iter_mut().enumerate() {
            let content = format!("server {which} number {number}");
            server
                .send("checkpoint_save", &project.checkpoint(&content))
                .unwrap();
        }
    }
    let mut ids = Vec::new();
    for server in &mut servers {
        for _ in 0..50 {
            let response = server.read_response().unwrap();
            ids.push(saved(&response).unwrap_or_else(|| panic!("{response}")));
        }
    }

    let file = project.database();
    assert_intact(&file);
    let kept = bodies(&file);
    assert_eq!(kept.len(), 100);
    assert!(ids.iter().all(|id| kept.contains_key(id)));
    // Each server sees the items of the other.
    for server in &mut servers {
        let query = json!({ "query": "server number", "project_path": project.root, "limit": 100 });
        let found = server.call("checkpoint_search", &query);
        assert!(
            found["structuredContent"]["checkpoints"]
                .as_array()
                .unwrap()
                .len()
                > 50
        );
    }
}

/// Returns the rounds in the visible chunks, with the number of chunks.
fn indexed_rounds(file: &Path) -> BTreeMap<String, usize> {
    let database = Connection::open(file).unwrap();
    let shown = "SELECT chunk.body FROM chunk JOIN file ON file.id = chunk.file WHERE file.tree IS NOT NULL";
    let mut rows = database.prepare(shown).unwrap();
    let rows = rows.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut rounds = BTreeMap::new();
    for body in rows.map(Result::unwrap) {
        let round = body.split("round_").nth(1).unwrap();
        let round = round.split('(').next().unwrap().to_owned();
        *rounds.entry(round).or_default() += 1;
    }
    rounds
}

#[test]
fn a_kill_while_indexing_leaves_the_old_or_the_new_index() {
    const FILES: usize = 300;
    let project = TestProject::new();
    let write = |round: usize| {
        for file in 0..FILES {
            let text = format!("pub fn round_{round}() {{\n    // file {file}\n}}\n");
            project
                .sandbox
                .write(&format!("project/src/f{file}.rs"), &text);
        }
    };
    let index = json!({ "path": project.root });
    write(0);
    let first = project.server().call("index_repository", &index);
    assert_eq!(
        first["structuredContent"]["files_indexed"], FILES,
        "{first}"
    );
    let mut now = 0;
    let mut unfinished = 0;

    let mut delay = KillDelay::new(Duration::from_millis(400));
    for round in 1..=15 {
        write(round);
        let mut server = project.server();
        server.call("status", &json!({}));
        server.send("index_repository", &index).unwrap();
        std::thread::sleep(delay.next());
        server.kill();
        let acknowledged = server
            .read_response()
            .is_some_and(|response| response["result"].is_object());
        drop(server);

        let rounds = indexed_rounds(&project.database());
        assert_eq!(rounds.len(), 1, "the index is mixed: {rounds:?}");
        let (shown, files) = rounds.first_key_value().unwrap();
        assert_eq!(*files, FILES);
        let shown: usize = shown.parse().unwrap();
        assert!(
            shown == now || shown == round,
            "{shown} after {now} and {round}"
        );
        assert!(
            !acknowledged || shown == round,
            "what was acknowledged is not there"
        );
        delay.adapt(shown != round);
        unfinished += usize::from(shown != round);
        now = shown;
        assert_intact(&project.database());
    }

    assert!(unfinished > 3, "only {unfinished} runs were cut short");
    let last = project.server().call("index_repository", &index);
    assert_ne!(last["isError"], true, "{last}");
    assert_eq!(indexed_rounds(&project.database()).len(), 1);
}

#[test]
fn concurrent_indexing_and_saving_lose_nothing() {
    let project = TestProject::new();
    for file in 0..200 {
        let text = format!("pub fn round_1() {{\n    // file {file}\n}}\n");
        project
            .sandbox
            .write(&format!("project/src/f{file}.rs"), &text);
    }
    let mut servers = [project.server(), project.server(), project.server()];
    for server in &mut servers[..2] {
        server
            .send("index_repository", &json!({ "path": project.root }))
            .unwrap();
    }
    for number in 0..20 {
        let content = format!("saved in between, number {number}");
        let result = servers[2].call("checkpoint_save", &project.checkpoint(&content));
        assert_ne!(result["isError"], true, "{result}");
    }
    for server in &mut servers[..2] {
        let response = server.read_response().unwrap();
        assert_ne!(response["result"]["isError"], true, "{response}");
    }

    let file = project.database();
    assert_intact(&file);
    assert_eq!(bodies(&file).len(), 20);
    assert_eq!(
        indexed_rounds(&file),
        BTreeMap::from([("1".to_owned(), 200)])
    );
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let project = TestProject::new();
    fs::create_dir(project.sandbox.path().join("data")).unwrap();
    let mount = "mount -t tmpfs -o size=1m none data && exec \"$@\"";
    let server = env!("CARGO_BIN_EXE_turnbuckle");
    let words = [
        "-rm", "sh", "-c", mount, "sh", server, "serve", "--stdio", "--data", "data",
    ];
    let probe = Command::new("unshare").args(["-rm", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return not_run("there is no way to mount a small disk");
    }
    let mut command = Command::new("unshare");
    command.args(words).current_dir(project.sandbox.path());
    command.env("HOME", project.sandbox.path());
    let mut server = StdioServer::start(&mut command);

    let mut acknowledged = Vec::new();
    let rejected = loop {
        let content = format!(
            "{} {}",
            acknowledged.len(),
            "some words to fill the disk ".repeat(400)
        );
        let result = server.call("checkpoint_save", &project.checkpoint(&content));
        match result["structuredContent"]["checkpoint_id"].as_str() {
            Some(id) => acknowledged.push((id.to_owned(), content)),
            None => break result,
        }
        assert!(acknowledged.len() < 200, "the disk never fills up");
    };

    assert_eq!(rejected["isError"], true);
    let text = rejected["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("disk is full"), "{text}");
    assert!(!text.contains("data/"), "{text}");
    assert!(acknowledged.len() > 3, "{}", acknowledged.len());
    for (id, content) in &acknowledged {
        let kept = server.read(&format!("checkpoint://{id}")).unwrap();
        assert!(kept.contains(content.trim()), "{id}");
    }
}

#[test]
fn a_read_only_data_directory_is_reported() {
    let project = TestProject::new();
    let mut server = project.server();
    server.call("checkpoint_save", &project.checkpoint("something to keep"));
    drop(server);
    let data = project.sandbox.path().join("data");
    let before = bodies(&project.database());
    let make_read_only = |path: &Path| {
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };

    // Root ignores permissions: then the server runs without capabilities.
    let run = |words: &[&str]| {
        let mut command = project.sandbox.command(words);
        if rustix::process::getuid().is_root() {
            let mut bare = Command::new("setpriv");
            bare.args(["--bounding-set", "-all"]);
            bare.arg(command.get_program()).args(command.get_args());
            bare.env("HOME", project.sandbox.path());
            bare.current_dir(project.sandbox.path());
            command = bare;
        }
        command
    };
    fs::set_permissions(project.sandbox.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let empty = project.sandbox.path().join("empty");
    fs::create_dir(&empty).unwrap();
    make_read_only(&empty);
    let output = run(&["serve", "--stdio", "--data", "empty"])
        .output()
        .unwrap();
    let seen = project.sandbox.render(&output);
    assert!(
        seen.contains("error: ~/empty cannot be used: Permission denied"),
        "{seen}"
    );
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");

    // Stored data can be read. A call that would write returns an error, and the server continues.
    let owner = project.database().parent().unwrap().to_owned();
    for file in fs::read_dir(&owner).unwrap() {
        make_read_only(&file.unwrap().path());
    }
    make_read_only(&owner);
    for mode in [0o777, 0o555] {
        fs::set_permissions(&data, fs::Permissions::from_mode(mode)).unwrap();
        let mut server = StdioServer::start(&mut run(&["serve", "--stdio", "--data", "data"]));
        let rejected = server.call("checkpoint_save", &project.checkpoint("more"));
        assert_eq!(rejected["isError"], true, "{rejected}");
        let text = rejected["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("not writable"), "{text}");
        for (tool, args) in [
            ("checkpoint_list", json!({ "project_path": project.root })),
            (
                "checkpoint_search",
                json!({ "query": "something to keep", "project_path": project.root }),
            ),
        ] {
            let found = server.call(tool, &args);
            assert!(found.to_string().contains("something to keep"), "{found}");
        }
    }
    let exported = run(&["context", "export", "--data", "data"])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{exported:?}");
    let exported = String::from_utf8(exported.stdout).unwrap();
    assert!(exported.contains("something to keep"), "{exported}");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&owner, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(bodies(&project.database()), before);
}

#[test]
fn a_damaged_file_is_reported_and_not_changed() {
    let project = TestProject::new();
    let mut server = project.server();
    for number in 0..40 {
        let content = format!("number {number} {}", "and some words ".repeat(50));
        server.call("checkpoint_save", &project.checkpoint(&content));
    }
    drop(server);
    let file = project.database();
    Connection::open(&file)
        .unwrap()
        .pragma_update(None, "wal_checkpoint", "truncate")
        .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[4096..end].fill(0x5A);
    fs::write(&file, &bytes).unwrap();

    let mut server = project.server();
    let rejected = server.call("checkpoint_save", &project.checkpoint("one more"));
    assert_eq!(rejected["isError"], true, "{rejected}");
    let text = rejected["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("damaged") && text.contains("import"),
        "{text}"
    );
    assert_eq!(fs::read(&file).unwrap().len(), end);
    // Other projects are not affected.
    project
        .sandbox
        .write("other/.git/HEAD", "ref: refs/heads/main\n");
    let other = project.sandbox.path().join("other");
    let content = json!({ "content": "elsewhere", "project_path": other });
    let result = server.call("checkpoint_save", &content);
    assert!(
        result["structuredContent"]["checkpoint_id"].is_string(),
        "{result}"
    );

    // A file that is not a database is not treated as an empty one.
    fs::write(&file, "this is a letter, and no database\n".repeat(200)).unwrap();
    let mut server = project.server();
    let rejected = server.call("checkpoint_save", &project.checkpoint("one more"));
    assert!(
        rejected["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("damaged"),
        "{rejected}"
    );
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("this is a letter")
    );
}

#[expect(
    clippy::print_stderr,
    reason = "the summary of the tests lists what was not run"
)]
fn not_run(why: &str) {
    eprintln!("not run: {why}");
}
