//! A repository of many files: indexed, refreshed without changes, and refreshed after a few changes.

use std::{ops::ControlFlow, time::Duration};

use turnbuckle_context::{
    Database, Redactor,
    evaluation::{
        code_index::{Freshness, IndexOptions, IndexTree, index, refresh},
        code_search::{CodeQuery, search},
    },
};

use super::{
    megabytes,
    repository::Repository,
    usage::{Stopwatch, on_disk, peak_memory},
    within,
};
use crate::error::EvalError;

const MAX_MEGABYTES: f64 = 300.0;
const CHANGED_FILES: usize = 10;
/// A name that no file contains at first.
const NEW_NAME: &str = "quokkaLedgerRollover";

pub(super) fn measure(count: usize) -> Result<bool, EvalError> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?.join("repository");
    let repository = Repository::write(&root, count)?;
    println!(
        "repository: {count} files, {:.0} MB",
        megabytes(repository.bytes())
    );
    let db = Database::open(folder.path().join("scale.db"))?;
    let tree = index_all(&db, &repository, count)?;
    refresh_unchanged(&db, &tree)?;
    refresh_changed(&db, &tree, &repository)?;
    let Some(memory) = peak_memory().map(megabytes) else {
        println!("memory: not available on this system");
        return Ok(true);
    };
    println!("memory: {memory:.0} MB at most");
    Ok(within("memory", memory, MAX_MEGABYTES, "MB"))
}

fn index_all(db: &Database, repository: &Repository, count: usize) -> Result<IndexTree, EvalError> {
    let watch = Stopwatch::start();
    let done = index(
        db,
        repository.root(),
        "main",
        &IndexOptions::default(),
        Redactor::standard(),
        &mut |_| ControlFlow::Continue(()),
    )?;
    println!(
        "index: {} files, {} chunks in {:.1} s ({:.1} s CPU time); database {:.0} MB; memory {:.0} MB",
        done.tree.counts.files,
        done.tree.counts.chunks,
        watch.wall().as_secs_f64(),
        watch.processor().as_secs_f64(),
        megabytes(on_disk(db.path())),
        megabytes(peak_memory().unwrap_or(0)),
    );
    expect("files in the index", done.tree.counts.files, count)?;
    Ok(done.tree)
}

fn refresh_unchanged(db: &Database, tree: &IndexTree) -> Result<(), EvalError> {
    let read = refreshed(db, tree, "refresh without changes")?;
    expect("files read without a change", read, 0)
}

fn refresh_changed(
    db: &Database,
    tree: &IndexTree,
    repository: &Repository,
) -> Result<(), EvalError> {
    expect("files with the new name", found(db, tree)?, 0)?;
    repository.change(CHANGED_FILES, NEW_NAME)?;
    let read = refreshed(db, tree, "refresh after ten changes")?;
    expect("files read after the changes", read, CHANGED_FILES)?;
    expect("files with the new name", found(db, tree)?, CHANGED_FILES)
}

fn refreshed(db: &Database, tree: &IndexTree, name: &str) -> Result<u64, EvalError> {
    let watch = Stopwatch::start();
    // The budget is large: the duration is measured.
    let done = refresh(db, tree, Redactor::standard(), Duration::from_secs(600))?;
    println!("{name}: {:.0} ms", watch.wall().as_secs_f64() * 1e3);
    match done.freshness {
        Freshness::Fresh => Ok(done.read),
        other => Err(EvalError::new(format!("{name}: the index is {other:?}"))),
    }
}

/// Returns the number of files that contain the new name.
fn found(db: &Database, tree: &IndexTree) -> Result<u64, EvalError> {
    let mut query = CodeQuery::new(NEW_NAME);
    query.limit = 2 * CHANGED_FILES;
    let hits = search(db, tree, &query)?;
    let has_name = |body: &str| body.contains(NEW_NAME);
    let files = hits
        .iter()
        .filter(|file| file.chunks.iter().any(|chunk| has_name(&chunk.body)));
    Ok(files.count() as u64)
}

fn expect(what: &str, is: u64, wanted: usize) -> Result<(), EvalError> {
    if is == wanted as u64 {
        return Ok(());
    }
    Err(EvalError::new(format!(
        "{what}: expected {wanted}, got {is}"
    )))
}
