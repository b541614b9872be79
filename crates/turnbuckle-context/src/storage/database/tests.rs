use super::*;

fn in_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner").join("project.db");
    (folder, path)
}

fn about(db: &Transaction<'_>, key: &str) -> rusqlite::Result<String> {
    db.query_row("SELECT value FROM about WHERE key = ?1", [key], |row| {
        row.get(0)
    })
}

#[test]
fn written_data_is_there_after_reopening() {
    let (_folder, path) = in_folder();
    let database = Database::open(&path).unwrap();
    let insert = "INSERT INTO about VALUES ('root', '/a')";
    database.write(|db| Ok(db.execute(insert, [])?)).unwrap();
    drop(database);
    let again = Database::open(&path).unwrap();
    assert_eq!(again.read(|db| Ok(about(db, "root")?)).unwrap(), "/a");
}

#[test]
fn an_error_rolls_back_the_transaction() {
    let (_folder, path) = in_folder();
    let database = Database::open(&path).unwrap();
    let rejected = database.write(|db| {
        db.execute("INSERT INTO about VALUES ('root', '/a')", [])?;
        Err::<(), _>(ContextError::invalid("no").into())
    });
    assert_eq!(rejected.unwrap_err().to_string(), "no");
    assert!(database.read(|db| Ok(about(db, "root")?)).is_err());
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_file_and_its_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path) = in_folder();
    let database = Database::open(&path).unwrap();
    database
        .write(|db| Ok(db.execute("INSERT INTO about VALUES ('a', 'b')", [])?))
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for file in fs::read_dir(path.parent().unwrap()).unwrap() {
        assert_eq!(mode(&file.unwrap().path()), 0o600);
    }
}

#[test]
fn a_file_that_is_not_a_database_is_reported_as_damaged() {
    let (_folder, path) = in_folder();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        "this is a letter, and it is long enough to be one".repeat(50),
    )
    .unwrap();
    let error = Database::open(&path).unwrap_err();
    assert!(
        matches!(
            error,
            ContextError::Database {
                kind: DatabaseErrorKind::Corrupt,
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("damaged"));
}

#[test]
fn a_file_of_a_newer_version_is_not_changed() {
    let (_folder, path) = in_folder();
    let database = Database::open(&path).unwrap();
    database
        .write(|db| Ok(db.pragma_update(None, "user_version", 99)?))
        .unwrap();
    drop(database);
    let error = Database::open(&path).unwrap_err();
    assert!(matches!(
        error,
        ContextError::Database {
            kind: DatabaseErrorKind::TooNew,
            ..
        }
    ));
}

#[test]
fn concurrent_opens_of_a_new_file_succeed() {
    let (_folder, path) = in_folder();
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Database::open(&path).map(drop)))
            .collect();
        for one in opened {
            one.join().unwrap().unwrap();
        }
    });
}

fn kind(opened: Result<Database, ContextError>) -> DatabaseErrorKind {
    match opened.unwrap_err() {
        ContextError::Database { kind, .. } => kind,
        error => panic!("{error:?}"),
    }
}

#[test]
fn an_empty_or_truncated_file_is_reported_and_not_changed() {
    let (_folder, path) = in_folder();
    drop(Database::open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    assert!(whole.len() > 8 * 4096);
    for length in [
        0,
        1,
        15,
        16,
        99,
        100,
        511,
        512,
        4095,
        4096,
        4097,
        3 * 4096,
        whole.len() - 1,
    ] {
        fs::write(&path, &whole[..length]).unwrap();
        let opened = Database::open(&path);
        assert!(opened.is_err(), "{length} of {}", whole.len());
        let message = opened.as_ref().unwrap_err().to_string();
        assert!(
            message.contains("empty or truncated"),
            "{length}: {message}"
        );
        assert_eq!(kind(opened), DatabaseErrorKind::Truncated, "{length}");
        assert_eq!(fs::read(&path).unwrap(), &whole[..length]);
    }
    fs::write(&path, &whole).unwrap();
    Database::open(&path).unwrap();
}

#[test]
fn creating_a_database_leaves_no_temporary_files() {
    let (_folder, path) = in_folder();
    drop(Database::open(&path).unwrap());
    let names = fs::read_dir(path.parent().unwrap()).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["project.db"]);
}

/// Returns a database like one opened in a read-only folder.
fn without_writer(path: &Path) -> Database {
    Database {
        path: path.to_owned(),
        identity: FileIdentity::read(path).unwrap(),
        writer: None,
        readers: Mutex::default(),
    }
}

#[test]
fn a_read_only_database_can_be_read() {
    let (_folder, path) = in_folder();
    let database = Database::open(&path).unwrap();
    let insert = "INSERT INTO about VALUES ('root', '/a')";
    database.write(|db| Ok(db.execute(insert, [])?)).unwrap();
    drop(database);
    let before = fs::read(&path).unwrap();
    let database = without_writer(&path);
    assert!(database.is_read_only());
    database.ensure_schema().unwrap();
    assert_eq!(database.read(|db| Ok(about(db, "root")?)).unwrap(), "/a");
    let error = database
        .write(|db| Ok(db.execute(insert, [])?))
        .unwrap_err();
    assert!(error.to_string().contains("is not writable"), "{error}");
    assert!(database.secure_vacuum().is_err() && database.truncate_wal().is_err());
    drop(database);
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A limit of open files counts for the whole process, so this starts another one.
#[cfg(unix)]
#[test]
fn a_limit_of_open_files_is_named() {
    let (_folder, path) = in_folder();
    drop(Database::open(&path).unwrap());
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture"])
        .arg("storage::database::tests::open_with_few_descriptors")
        .env(DATABASE_VARIABLE, &path)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}");

    // With no to five free descriptors: at first it fails, at the end it does not.
    let results: Vec<_> = output.lines().filter(|line| line.contains(".db")).collect();
    let limit = "cannot be opened: this process has reached its limit of 64 open files; raise it with `ulimit -n`";
    assert!(results.len() >= 2, "{output}");
    for result in &results {
        assert!(result.contains(limit), "{result}");
    }
    assert!(output.contains("opened"), "{output}");
}

/// The path of the database for the test in another process.
#[cfg(unix)]
const DATABASE_VARIABLE: &str = "TURNBUCKLE_TEST_DATABASE";

#[cfg(unix)]
#[test]
#[ignore = "is run by the other test, in a process of its own"]
fn open_with_few_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let Some(path) = std::env::var_os(DATABASE_VARIABLE) else {
        return;
    };
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(64);
    setrlimit(Resource::Nofile, limit).unwrap();
    let mut files: Vec<_> = std::iter::from_fn(|| fs::File::open("/").ok()).collect();
    for _ in 0..6 {
        match Database::open(&path) {
            Ok(_) => println!("opened"),
            Err(error) => println!("{error}"),
        }
        files.pop();
    }
}
