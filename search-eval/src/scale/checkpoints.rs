//! A memory of many checkpoints: brought in at once, then asked.

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
    memory::{ItemKind, MemoryQuery, search},
    transfer::{ImportOptions, import},
};

use super::{
    diary::{Way, entry, question},
    megabytes,
    usage::{Stopwatch, on_disk},
    within,
};
use crate::failure::Failure;

const MOST_MILLISECONDS: f64 = 20.0;
const QUESTIONS: usize = 50;
/// So many of those that are asked for by their own words must be found: a search that finds nothing is fast, too.
const LEAST_FOUND: f64 = 0.9;

pub(super) fn measure(count: usize) -> Result<bool, Failure> {
    let place = tempfile::tempdir()?;
    let database = filled(&place.path().canonicalize()?, count)?;
    let mut times = Vec::with_capacity(QUESTIONS);
    let (mut wanted, mut found) = (0, 0);
    for asked in 0..QUESTIONS {
        let (number, way) = (asked * count / QUESTIONS, Way::ALL[asked % Way::ALL.len()]);
        let query = MemoryQuery::new(ItemKind::Checkpoint, question(number, way));
        let watch = Stopwatch::start();
        let hits = search(&[&database], &query)?;
        times.push(watch.processor());
        if way.tells_one() {
            let content = entry(number).content;
            wanted += 1;
            found += usize::from(hits.iter().any(|hit| hit.item.body == content));
        }
    }
    println!(
        "found: {found} of {wanted} that were asked for by their own words, among the first ten"
    );
    if (found as f64) < LEAST_FOUND * f64::from(wanted) {
        return Err(Failure::new(
            "too few were found for the times to mean anything",
        ));
    }
    Ok(judged(times))
}

/// Makes a memory of so many checkpoints below a folder.
fn filled(place: &Path, count: usize) -> Result<Arc<Database>, Failure> {
    let project = place.join("project");
    std::fs::create_dir(&project)?;
    let project = project.to_string_lossy();
    let library = DataDir::new(place.join("data"));
    let owner = Owner::for_user("scale");
    let mut options = ImportOptions::default();
    options.into = Some(project.to_string());
    let mut export = BufReader::new(export(count)?);

    let watch = Stopwatch::start();
    let done = import(
        &library,
        &owner,
        Redactor::standard(),
        &options,
        &mut export,
    )?;
    let database = library.open_project(&owner, &library.project(&owner, &project)?)?;
    println!(
        "import: {} checkpoints in {:.1} s ({:.1} s of the processor); database {:.0} MB",
        done.new,
        watch.wall().as_secs_f64(),
        watch.processor().as_secs_f64(),
        megabytes(on_disk(database.path())),
    );
    if done.new == count as u64 {
        return Ok(database);
    }
    Err(Failure::new(format!(
        "{} of {count} checkpoints were imported",
        done.new
    )))
}

/// Writes so many checkpoints as an export has them.
fn export(count: usize) -> Result<File, Failure> {
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

/// Prints what a search costs, and says whether that is little enough.
fn judged(mut times: Vec<Duration>) -> bool {
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let mean = milliseconds(times.iter().sum::<Duration>()) / times.len() as f64;
    println!(
        "search: {mean:.1} ms of the processor on average, {:.1} ms in the middle, {:.1} ms at most",
        milliseconds(times[times.len() / 2]),
        milliseconds(times[times.len() - 1]),
    );
    within("a search", mean, MOST_MILLISECONDS, "ms")
}
