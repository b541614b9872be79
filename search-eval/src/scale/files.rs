//! A repository of many files: indexed, looked at again, changed a little.

use std::{ops::ControlFlow, time::Duration};

use turnbuckle_context::{
    Database, Redactor,
    code_index::{Freshness, IndexOptions, IndexTree, index, refresh},
    code_search::{CodeQuery, search},
};

use super::{
    megabytes,
    repository::Repository,
    usage::{Stopwatch, most_memory, on_disk},
    within,
};
use crate::failure::Failure;

const MOST_MEGABYTES: f64 = 300.0;
const CHANGED: usize = 10;
/// A name that no file has at first.
const NEW_NAME: &str = "quokkaLedgerRollover";

pub(super) fn measure(count: usize) -> Result<bool, Failure> {
    let place = tempfile::tempdir()?;
    let root = place.path().canonicalize()?.join("repository");
    let repository = Repository::write(&root, count)?;
    println!(
        "repository: {count} files, {:.0} MB",
        megabytes(repository.bytes())
    );
    let db = Database::open(place.path().join("scale.db"))?;
    let tree = index_all(&db, &repository, count)?;
    look_again(&db, &tree)?;
    change_some(&db, &tree, &repository)?;
    let Some(memory) = most_memory().map(megabytes) else {
        println!("memory: this system does not say");
        return Ok(true);
    };
    println!("memory: {memory:.0} MB at most");
    Ok(within("memory", memory, MOST_MEGABYTES, "MB"))
}

fn index_all(db: &Database, repository: &Repository, count: usize) -> Result<IndexTree, Failure> {
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
        "index: {} files, {} chunks in {:.1} s ({:.1} s of the processor); database {:.0} MB; memory {:.0} MB",
        done.tree.counts.files,
        done.tree.counts.chunks,
        watch.wall().as_secs_f64(),
        watch.processor().as_secs_f64(),
        megabytes(on_disk(db.path())),
        megabytes(most_memory().unwrap_or(0)),
    );
    expect("files in the index", done.tree.counts.files, count)?;
    Ok(done.tree)
}

fn look_again(db: &Database, tree: &IndexTree) -> Result<(), Failure> {
    let read = refreshed(db, tree, "refresh without changes")?;
    expect("files read without a change", read, 0)
}

fn change_some(db: &Database, tree: &IndexTree, repository: &Repository) -> Result<(), Failure> {
    expect("files with the new name", found(db, tree)?, 0)?;
    repository.change(CHANGED, NEW_NAME)?;
    let read = refreshed(db, tree, "refresh after ten changes")?;
    expect("files read after the changes", read, CHANGED)?;
    expect("files with the new name", found(db, tree)?, CHANGED)
}

fn refreshed(db: &Database, tree: &IndexTree, name: &str) -> Result<u64, Failure> {
    let watch = Stopwatch::start();
    // There is time for everything: what it takes is the question.
    let done = refresh(db, tree, Redactor::standard(), Duration::from_secs(600))?;
    println!("{name}: {:.0} ms", watch.wall().as_secs_f64() * 1e3);
    match done.freshness {
        Freshness::Fresh => Ok(done.read),
        other => Err(Failure::new(format!("{name}: the index is {other:?}"))),
    }
}

/// Returns the number of files that contain the new name.
fn found(db: &Database, tree: &IndexTree) -> Result<u64, Failure> {
    let mut query = CodeQuery::new(NEW_NAME);
    query.limit = 2 * CHANGED;
    let hits = search(db, tree, &query)?;
    let has_name = |body: &str| body.contains(NEW_NAME);
    let files = hits
        .iter()
        .filter(|file| file.chunks.iter().any(|chunk| has_name(&chunk.body)));
    Ok(files.count() as u64)
}

fn expect(what: &str, is: u64, wanted: usize) -> Result<(), Failure> {
    if is == wanted as u64 {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{what}: {is}, where {wanted} were to be expected"
    )))
}
