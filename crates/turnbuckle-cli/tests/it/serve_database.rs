//! `serve` and `context` with a PostgreSQL database.

use std::{fs, os::unix::fs::PermissionsExt as _};

use turnbuckle_test_bed::PostgresServer;

use crate::{sandbox::Sandbox, serve_process::ServeProcess};

const PASSWORD: &str = "s3cret";

/// Starts a database server that asks the user `ada` for a password, and returns the URL without it.
fn start() -> (PostgresServer, String) {
    let server = PostgresServer::start().unwrap();
    let create = format!("CREATE ROLE ada LOGIN SUPERUSER PASSWORD '{PASSWORD}'");
    server.execute(&create).unwrap();
    let file = server.execute("SHOW hba_file").unwrap();
    let rules = format!(
        "COPY (VALUES ('host all ada 127.0.0.1/32 scram-sha-256'), \
         ('host all all 127.0.0.1/32 trust')) TO '{file}'"
    );
    server.execute(&rules).unwrap();
    server.execute("SELECT pg_reload_conf()").unwrap();
    let url = format!("postgres://ada@{}/postgres", server.address());
    (server, url)
}

/// Writes the file with passwords that programs for PostgreSQL read.
fn write_password(sandbox: &Sandbox, mode: u32) {
    sandbox.write(".pgpass", &format!("*:*:*:ada:{PASSWORD}\n"));
    let file = sandbox.path().join(".pgpass");
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn servers_with_different_disks_share_the_memory_of_a_project() {
    let (_server, url) = start();
    let (one, other) = (Sandbox::new(), Sandbox::new());
    write_password(&one, 0o600);
    let secret_url = url.replace("ada@", &format!("ada:{PASSWORD}@"));
    other.write("database", &format!("{secret_url}\n"));
    // The owner is the user of this machine, the same for both.
    let listen = ["--listen", "127.0.0.1:0"];
    let first = ServeProcess::start(&one, &[&listen[..], &["--database", &url]].concat());
    let options = ["--database-file", "database"];
    let second = ServeProcess::start(&other, &[&listen[..], &options].concat());

    let key = ["--header", "turnbuckle-project: acme/app"];
    let save = [
        &["checkpoint_save", "project_path=/home/ada/app"],
        &["content=the parser is half done"][..],
        &key,
    ];
    first.call(&one, &save.concat());
    let search = ["checkpoint_search", "query=parser", "project_path=C:\\app"];
    let found = second.call(&other, &[&search[..], &key].concat());
    let found = &found["checkpoints"][0];
    let found = &found["checkpoint"];
    assert_eq!(found["summary"], "the parser is half done", "{found}");
    let search = [
        "checkpoint_search",
        "query=parser",
        "project_path=project:acme/app",
    ];
    let found = second.call(&other, &search);
    assert_eq!(found["checkpoints"].as_array().unwrap().len(), 1);
    let search = [
        "checkpoint_search",
        "query=parser",
        "project_path=project:acme/other",
    ];
    let found = second.call(&other, &search);
    assert_eq!(found["checkpoints"].as_array().unwrap().len(), 0);

    for (process, files) in [(first, &one), (second, &other)] {
        let text = process.stop();
        assert!(
            text.contains("stores memory in postgres://ada@127.0.0.1:"),
            "{text}"
        );
        assert!(!text.contains(PASSWORD), "{text}");
        let data = files.path().join(".local/share/turnbuckle");
        assert_eq!(
            fs::read_dir(data).unwrap().count(),
            0,
            "memory is in no local file"
        );
    }
}

#[test]
fn data_moves_between_files_and_a_database() {
    let (_server, url) = start();
    let sandbox = Sandbox::new();
    write_password(&sandbox, 0o600);
    let header = r#"{"type":"header","format":"turnbuckle-memory","version":1}"#;
    let lines = [
        r#"{"type":"project","root":"project:acme/app"}"#,
        r#"{"type":"item","kind":"checkpoint","id":"ckpt_00000000000000aa","branch":"main","title":"step","body":"half done","confidence":1.0,"usage":0,"redacted":0,"created":1700000000000,"updated":1700000000000}"#,
        r#"{"type":"shared"}"#,
        r#"{"type":"item","kind":"skill","id":"skill_00000000000000aa","branch":"default","title":"Deploy","body":"push","detail":"how","confidence":1.0,"usage":3,"redacted":0,"created":1700000000000,"updated":1700000000001}"#,
    ];
    sandbox.write("memory.jsonl", &format!("{header}\n{}\n", lines.join("\n")));
    let database = ["--database", &*url];
    let run = |words: &[&str]| sandbox.run(&[&["context"], words].concat());
    let exported = |words: &[&str]| -> Vec<String> {
        let text = run(&[&["export"], words].concat());
        text.lines().skip(1).map(str::to_owned).collect()
    };

    let text = run(&[&["import", "memory.jsonl"][..], &database].concat());
    assert_eq!(text, "--- stderr\nimported 2 new items\n");
    assert_eq!(exported(&database), lines);
    assert!(exported(&[]).is_empty(), "nothing is in files");
    run(&[&["export", "-o", "copy.jsonl"][..], &database].concat());
    run(&["import", "copy.jsonl"]);
    assert_eq!(exported(&[]), lines);
    let stats = run(&[&["stats"][..], &database].concat());
    assert!(stats.contains("project:acme/app"), "{stats}");
    let forget = ["forget", "--yes", "--project", "project:acme/app"];
    let text = run(&[&forget[..], &database].concat());
    assert!(text.contains("1 item deleted"), "{text}");
    assert_eq!(exported(&database), lines[2..]);
    assert_eq!(exported(&[]), lines, "the files keep their data");
}

#[test]
fn a_database_that_cannot_be_used_is_a_clear_error_without_the_password() {
    let (server, url) = start();
    let sandbox = Sandbox::new();
    let serve = |url: &str| {
        let text = sandbox.run(&["serve", "--listen", "127.0.0.1:0", "--database", url]);
        assert!(text.ends_with("--- exit 2\n"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        text
    };
    let text = serve(&url.replace("ada@", "ada:hunter2@"));
    assert!(text.contains("rejects the user or the password"), "{text}");
    let text = serve(&url);
    assert!(text.contains("hint: put the password into"), "{text}");
    let text = serve("mysql://ada:hunter2@localhost/memory");
    assert!(text.contains("expected postgres://"), "{text}");
    let text = serve("postgres://ada:hunter2@127.0.0.1:1/memory");
    assert!(text.contains("cannot be reached"), "{text}");
    write_password(&sandbox, 0o644);
    let text = serve(&url);
    assert!(text.contains("chmod 600"), "{text}");
    write_password(&sandbox, 0o600);
    server.execute("CREATE SCHEMA turnbuckle").unwrap();
    for statement in [
        "CREATE TABLE turnbuckle.migration (version integer)",
        "INSERT INTO turnbuckle.migration VALUES (99)",
    ] {
        server.execute(statement).unwrap();
    }
    let text = serve(&url);
    assert!(text.contains("newer version of this program"), "{text}");
}
