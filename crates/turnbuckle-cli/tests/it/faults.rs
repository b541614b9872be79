//! What was acknowledged is there afterwards, whatever happens: killed servers, two at once, full disks, damaged files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::wire::Wire;

/// A project, and a folder for data beside it.
struct Place {
    stage: Stage,
    project: PathBuf,
}

impl Place {
    fn new() -> Self {
        let stage = Stage::new();
        stage.write("project/.git/HEAD", "ref: refs/heads/main\n");
        let project = stage.path().join("project").canonicalize().unwrap();
        Self { stage, project }
    }

    fn server(&self) -> Wire {
        Wire::start(&mut self.stage.command(&["serve", "--stdio", "--data", "data"]))
    }

    fn checkpoint(&self, content: &str) -> Value {
        json!({ "content": content, "project_path": self.project })
    }

    /// The files of all databases.
    fn databases(&self) -> Vec<PathBuf> {
        let data = self.stage.path().join("data");
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

    /// The file of the one project there is.
    fn database(&self) -> PathBuf {
        let is_project = |file: &PathBuf| file.file_stem().is_some_and(|name| name != "shared");
        self.databases().into_iter().find(is_project).unwrap()
    }
}

/// Sees whether the file and both of its word indexes are whole.
fn assert_whole(file: &Path) {
    let database = Connection::open(file).unwrap();
    let verdict: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
    for index in ["item_fts", "chunk_fts"] {
        let check = format!("INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)");
        database.execute(&check, []).unwrap();
    }
    let strays: i64 = database
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(strays, 0);
}

fn bodies(file: &Path) -> BTreeMap<String, String> {
    let database = Connection::open(file).unwrap();
    let mut rows = database.prepare("SELECT id, body FROM item").unwrap();
    let rows = rows
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// The id in an answer that says a checkpoint is saved.
fn saved(answer: &Value) -> Option<String> {
    let id = &answer["result"]["structuredContent"]["checkpoint_id"];
    id.as_str().map(str::to_owned)
}

/// How long to let a server work before it is killed: a share of a span, which looks random.
///
/// The span shrinks when the work was done before the kill, so that some rounds are cut short on a fast machine too.
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
fn what_was_acknowledged_survives_being_killed_at_any_moment() {
    let place = Place::new();
    let (mut acknowledged, mut cut_short) = (BTreeMap::new(), 0);

    let mut delay = KillDelay::new(Duration::from_millis(60));
    for round in 0..25 {
        let mut server = place.server();
        // The first save makes the file, and shows that the server is up.
        let content = format!("round {round} begins");
        let first = server.call("checkpoint_save", &place.checkpoint(&content));
        let id = first["structuredContent"]["checkpoint_id"]
            .as_str()
            .unwrap();
        acknowledged.insert(id.to_owned(), content);
        let mut sent = BTreeMap::new();
        for number in 0..60 {
            let content = format!("round {round} number {number}");
            if let Some(id) = server.send("checkpoint_save", &place.checkpoint(&content)) {
                sent.insert(id, content);
            }
        }
        std::thread::sleep(delay.next());
        server.kill();
        while let Some(answer) = server.answer() {
            let content = sent.remove(&answer["id"].as_u64().unwrap()).unwrap();
            acknowledged.insert(saved(&answer).unwrap(), content);
        }
        delay.adapt(!sent.is_empty());
        cut_short += usize::from(!sent.is_empty());
    }

    let file = place.database();
    assert_whole(&file);
    let kept = bodies(&file);
    for (id, content) in &acknowledged {
        assert_eq!(kept.get(id), Some(content), "{id} was acknowledged");
    }
    assert!(cut_short > 5, "only {cut_short} rounds were cut short");
    let mut server = place.server();
    let (id, content) = acknowledged.last_key_value().unwrap();
    let text = server.read(&format!("checkpoint://{id}")).unwrap();
    assert!(text.contains(content), "{text}");
}

#[test]
fn two_servers_save_at_once_into_one_file() {
    let place = Place::new();
    let mut servers = [place.server(), place.server()];
    for number in 0..50 {
        for (which, server) in servers.iter_mut().enumerate() {
            let content = format!("server {which} number {number}");
            server
                .send("checkpoint_save", &place.checkpoint(&content))
                .unwrap();
        }
    }
    let mut ids = Vec::new();
    for server in &mut servers {
        for _ in 0..50 {
            let answer = server.answer().unwrap();
            ids.push(saved(&answer).unwrap_or_else(|| panic!("{answer}")));
        }
    }

    let file = place.database();
    assert_whole(&file);
    let kept = bodies(&file);
    assert_eq!(kept.len(), 100);
    assert!(ids.iter().all(|id| kept.contains_key(id)));
    // Each sees what the other has saved.
    for server in &mut servers {
        let query =
            json!({ "query": "server number", "project_path": place.project, "limit": 100 });
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

/// The rounds whose text is in the chunks that are shown.
fn shown_rounds(file: &Path) -> BTreeMap<String, usize> {
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
fn a_server_that_is_killed_while_it_indexes_leaves_the_old_index_or_the_new_one() {
    const FILES: usize = 300;
    let place = Place::new();
    let write = |round: usize| {
        for file in 0..FILES {
            let text = format!("pub fn round_{round}() {{\n    // file {file}\n}}\n");
            place.stage.write(&format!("project/src/f{file}.rs"), &text);
        }
    };
    let index = json!({ "path": place.project });
    write(0);
    let first = place.server().call("index_repository", &index);
    assert_eq!(
        first["structuredContent"]["files_indexed"], FILES,
        "{first}"
    );
    let mut now = 0;
    let mut unfinished = 0;

    let mut delay = KillDelay::new(Duration::from_millis(400));
    for round in 1..=15 {
        write(round);
        let mut server = place.server();
        server.call("status", &json!({}));
        server.send("index_repository", &index).unwrap();
        std::thread::sleep(delay.next());
        server.kill();
        let acknowledged = server
            .answer()
            .is_some_and(|answer| answer["result"].is_object());
        drop(server);

        let rounds = shown_rounds(&place.database());
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
        assert_whole(&place.database());
    }

    assert!(unfinished > 3, "only {unfinished} runs were cut short");
    let last = place.server().call("index_repository", &index);
    assert_ne!(last["isError"], true, "{last}");
    assert_eq!(shown_rounds(&place.database()).len(), 1);
}

#[test]
fn two_servers_index_at_once_while_others_save() {
    let place = Place::new();
    for file in 0..200 {
        let text = format!("pub fn round_1() {{\n    // file {file}\n}}\n");
        place.stage.write(&format!("project/src/f{file}.rs"), &text);
    }
    let mut servers = [place.server(), place.server(), place.server()];
    for server in &mut servers[..2] {
        server
            .send("index_repository", &json!({ "path": place.project }))
            .unwrap();
    }
    for number in 0..20 {
        let content = format!("saved meanwhile, number {number}");
        let result = servers[2].call("checkpoint_save", &place.checkpoint(&content));
        assert_ne!(result["isError"], true, "{result}");
    }
    for server in &mut servers[..2] {
        let answer = server.answer().unwrap();
        assert_ne!(answer["result"]["isError"], true, "{answer}");
    }

    let file = place.database();
    assert_whole(&file);
    assert_eq!(bodies(&file).len(), 20);
    assert_eq!(shown_rounds(&file), BTreeMap::from([("1".to_owned(), 200)]));
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    let place = Place::new();
    fs::create_dir(place.stage.path().join("data")).unwrap();
    let mount = "mount -t tmpfs -o size=1m none data && exec \"$@\"";
    let server = env!("CARGO_BIN_EXE_turnbuckle");
    let words = [
        "-rm", "sh", "-c", mount, "sh", server, "serve", "--stdio", "--data", "data",
    ];
    let trial = Command::new("unshare").args(["-rm", "true"]).output();
    if !trial.is_ok_and(|trial| trial.status.success()) {
        return not_run("there is no way to mount a small disk");
    }
    let mut command = Command::new("unshare");
    command.args(words).current_dir(place.stage.path());
    command.env("HOME", place.stage.path());
    let mut server = Wire::start(&mut command);

    let mut acknowledged = Vec::new();
    let refusal = loop {
        let content = format!(
            "{} {}",
            acknowledged.len(),
            "some words to fill the disk ".repeat(400)
        );
        let result = server.call("checkpoint_save", &place.checkpoint(&content));
        match result["structuredContent"]["checkpoint_id"].as_str() {
            Some(id) => acknowledged.push((id.to_owned(), content)),
            None => break result,
        }
        assert!(acknowledged.len() < 200, "the disk never fills up");
    };

    assert_eq!(refusal["isError"], true);
    let text = refusal["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("disk is full"), "{text}");
    assert!(!text.contains("data/"), "{text}");
    assert!(acknowledged.len() > 3, "{}", acknowledged.len());
    for (id, content) in &acknowledged {
        let kept = server.read(&format!("checkpoint://{id}")).unwrap();
        assert!(kept.contains(content.trim()), "{id}");
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_said() {
    let place = Place::new();
    let mut server = place.server();
    server.call("checkpoint_save", &place.checkpoint("something to keep"));
    drop(server);
    let data = place.stage.path().join("data");
    let before = bodies(&place.database());
    let anyone = |path: &Path| {
        let mode = if path.is_dir() { 0o555 } else { 0o444 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };

    // The tests may run as root, whom no permission stops: then the server runs without the rights that make it so.
    let run = |words: &[&str]| {
        let mut command = place.stage.command(words);
        if rustix::process::getuid().is_root() {
            let mut bare = Command::new("setpriv");
            bare.args(["--bounding-set", "-all"]);
            bare.arg(command.get_program()).args(command.get_args());
            bare.env("HOME", place.stage.path());
            bare.current_dir(place.stage.path());
            command = bare;
        }
        command
    };
    fs::set_permissions(place.stage.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let empty = place.stage.path().join("empty");
    fs::create_dir(&empty).unwrap();
    anyone(&empty);
    let output = run(&["serve", "--stdio", "--data", "empty"])
        .output()
        .unwrap();
    let seen = place.stage.seen(&output);
    assert!(
        seen.contains("error: ~/empty cannot be used: Permission denied"),
        "{seen}"
    );
    assert!(seen.ends_with("--- exit 2\n"), "{seen}");

    // What is kept can be read. Each call that would write says that it cannot, and the server lives on.
    let owner = place.database().parent().unwrap().to_owned();
    for file in fs::read_dir(&owner).unwrap() {
        anyone(&file.unwrap().path());
    }
    anyone(&owner);
    for mode in [0o777, 0o555] {
        fs::set_permissions(&data, fs::Permissions::from_mode(mode)).unwrap();
        let mut server = Wire::start(&mut run(&["serve", "--stdio", "--data", "data"]));
        let refused = server.call("checkpoint_save", &place.checkpoint("more"));
        assert_eq!(refused["isError"], true, "{refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("cannot be written"), "{text}");
        for (tool, args) in [
            ("checkpoint_list", json!({ "project_path": place.project })),
            (
                "checkpoint_search",
                json!({ "query": "something to keep", "project_path": place.project }),
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
    assert_eq!(bodies(&place.database()), before);
}

#[test]
fn a_damaged_file_is_said_and_left_as_it_is() {
    let place = Place::new();
    let mut server = place.server();
    for number in 0..40 {
        let content = format!("number {number} {}", "and some words ".repeat(50));
        server.call("checkpoint_save", &place.checkpoint(&content));
    }
    drop(server);
    let file = place.database();
    Connection::open(&file)
        .unwrap()
        .pragma_update(None, "wal_checkpoint", "truncate")
        .unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[4096..end].fill(0x5A);
    fs::write(&file, &bytes).unwrap();

    let mut server = place.server();
    let refused = server.call("checkpoint_save", &place.checkpoint("one more"));
    assert_eq!(refused["isError"], true, "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("damaged") && text.contains("import"),
        "{text}"
    );
    assert_eq!(fs::read(&file).unwrap().len(), end);
    // Other projects are none the worse.
    place
        .stage
        .write("other/.git/HEAD", "ref: refs/heads/main\n");
    let other = place.stage.path().join("other");
    let content = json!({ "content": "elsewhere", "project_path": other });
    let result = server.call("checkpoint_save", &content);
    assert!(
        result["structuredContent"]["checkpoint_id"].is_string(),
        "{result}"
    );

    // What is no database at all is told from an empty one.
    fs::write(&file, "this is a letter, and no database\n".repeat(200)).unwrap();
    let mut server = place.server();
    let refused = server.call("checkpoint_save", &place.checkpoint("one more"));
    assert!(
        refused["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("damaged"),
        "{refused}"
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
