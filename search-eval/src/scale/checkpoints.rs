//! A memory of many checkpoints: imported, then searched.

use std::{
    fs::File,
    io::{BufReader, BufWriter, IntoInnerError, Seek as _, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use serde_json::json;
use turnbuckle_context::{
    DataDir, Database, Owner, Redactor,
    evaluation::memory::{ItemKind, MemoryQuery, search},
    transfer::{ImportOptions, import},
};

use super::{
    checkpoint_generator::{QueryForm, entry, query},
    megabytes,
    usage::{Stopwatch, on_disk},
    within,
};
use crate::error::EvalError;

const MAX_MILLISECONDS: f64 = 20.0;
const QUERY_COUNT: usize = 50;
/// Minimum share of checkpoints found by their own words, because a search without results is fast, too.
const MIN_FOUND_SHARE: f64 = 0.9;

pub(super) fn measure(count: usize) -> Result<bool, EvalError> {
    let folder = tempfile::tempdir()?;
    let database = import_checkpoints(&folder.path().canonicalize()?, count)?;
    let mut times = Vec::with_capacity(QUERY_COUNT);
    let (mut wanted, mut found) = (0, 0);
    for index in 0..QUERY_COUNT {
        let (number, form) = (
            index * count / QUERY_COUNT,
            QueryForm::ALL[index % QueryForm::ALL.len()],
        );
        let query = MemoryQuery::new(ItemKind::Checkpoint, query(number, form));
        let watch = Stopwatch::start();
        let hits = search(&[&database], &query)?;
        times.push(watch.processor());
        if form.is_unique() {
            let content = entry(number).content;
            wanted += 1;
            found += usize::from(hits.iter().any(|hit| hit.item.body == content));
        }
    }
    println!("found: {found} of {wanted} searched by their own words, among the first ten");
    if (found as f64) < MIN_FOUND_SHARE * f64::from(wanted) {
        return Err(EvalError::new(
            "too few checkpoints were found for the times to be meaningful",
        ));
    }
    Ok(report_times(times))
}

/// Creates a data directory with this many checkpoints in a folder.
fn import_checkpoints(folder: &Path, count: usize) -> Result<Arc<Database>, EvalError> {
    let project = folder.join("project");
    std::fs::create_dir(&project)?;
    let project = project.to_string_lossy();
    let data_dir = DataDir::new(folder.join("data"));
    let owner = Owner::for_user("scale");
    let mut options = ImportOptions::default();
    options.into = Some(project.to_string());
    let mut export = BufReader::new(export(count)?);

    let watch = Stopwatch::start();
    let done = import(
        &data_dir,
        &owner,
        Redactor::standard(),
        &options,
        &mut export,
    )?;
    let database = data_dir.open_project(&owner, &data_dir.project(&owner, &project)?)?;
    println!(
        "import: {} checkpoints in {:.1} s ({:.1} s CPU time); database {:.0} MB",
        done.new,
        watch.wall().as_secs_f64(),
        watch.processor().as_secs_f64(),
        megabytes(on_disk(database.path())),
    );
    if done.new == count as u64 {
        return Ok(database);
    }
    Err(EvalError::new(format!(
        "{} of {count} checkpoints were imported",
        done.new
    )))
}

/// Writes an export with this many checkpoints.
fn export(count: usize) -> Result<File, EvalError> {
    let mut lines = BufWriter::new(tempfile::tempfile()?);
    writeln!(
        lines,
        "{}",
        json!({ "type": "header", "format": "turnbuckle-memory", "version": 1 })
    )?;
    for number in 0..count {
        let entry = entry(number);
        let line = json!({
            "type": "item",
            "kind": ItemKind::Checkpoint,
            "branch": "main",
            "title": entry.summary,
            "body": entry.content,
            "tags": entry.tags,
        });
        writeln!(lines, "{line}")?;
    }
    let mut file = lines.into_inner().map_err(IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

/// Prints the CPU time of a search and returns whether it is within the limit.
fn report_times(mut times: Vec<Duration>) -> bool {
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mean = milliseconds(times.iter().sum::<Duration>()) / times.len() as f64;
    println!(
        "search: {mean:.1} ms CPU time on average, {:.1} ms median, {:.1} ms at most",
        milliseconds(times[times.len() / 2]),
        milliseconds(times[times.len() - 1]),
    );
    within("a search", mean, MAX_MILLISECONDS, "ms")
}
