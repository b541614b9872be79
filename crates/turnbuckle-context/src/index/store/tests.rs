use super::*;

fn number(db: &Database, select: &str) -> i64 {
    db.read(|db| Ok(db.query_row(select, [], |row| row.get(0))?))
        .unwrap()
}

fn file(path: &str, indexed: i64) -> PreparedFile {
    PreparedFile {
        path: path.to_owned(),
        size: 1,
        modified: 1,
        hash: vec![1],
        language: "rust",
        skipped: None,
        indexed,
        chunks: Vec::new(),
        redacted: std::collections::BTreeMap::new(),
    }
}

#[test]
fn a_run_that_was_declared_dead_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path().join("project.db")).unwrap();
    let mut run = None;
    stage(&db, "/a", &mut run, &[file("one.rs", 1)])
        .unwrap()
        .unwrap();
    let id = run.unwrap();
    // Somebody began to clean it away, and is not done.
    db.write(|db| Ok(db.execute("UPDATE run SET heartbeat = 0", [])?))
        .unwrap();
    heartbeat(&db, "/a", id).unwrap();
    assert!(stage(&db, "/a", &mut run, &[]).unwrap().is_err());
    assert_eq!(number(&db, "SELECT heartbeat FROM run"), 0);

    delete_dead_runs(&db, &mut || true).unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM file"), 0);
    let mut next = None;
    stage(&db, "/b", &mut next, &[]).unwrap().unwrap();
    assert!(next.unwrap() > id, "the number of a run was used twice");
}

#[test]
fn cleaning_declares_a_silent_run_dead_first() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path().join("project.db")).unwrap();
    let mut run = None;
    stage(&db, "/a", &mut run, &[file("one.rs", 1)])
        .unwrap()
        .unwrap();
    let id = run.unwrap();
    db.write(|db| Ok(db.execute("UPDATE run SET heartbeat = 1", [])?))
        .unwrap();
    let killed = db.write(|db| {
        delete_dead_run(db, id)?;
        Ok(renew_heartbeat(db, "/a", id)?)
    });
    assert!(!killed.unwrap());
}
