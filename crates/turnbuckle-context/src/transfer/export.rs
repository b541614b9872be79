//! Writing what is kept as lines of JSON.

use std::io::Write;

use rusqlite::Connection;

use super::record::{FORMAT, Header, Record, VERSION};
use super::{Part, Place, places};
use crate::database::{Fault, now};
use crate::memory::stored;
use crate::{ContextError, Library, Owner};

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Exported {
    /// Projects, and what they share as one more.
    pub places: u64,
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// What is wrong with each file that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Writes an owner's memory as JSON Lines; the format is described in `docs/context-data.md`.
///
/// Of each project it is what was there at one moment. Indexes are not written: they can be made again.
pub fn export(
    library: &Library,
    owner: &Owner,
    part: &Part,
    to: &mut dyn Write,
) -> Result<Exported, ContextError> {
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported: now(),
    };
    write(to, &Record::Header(header))?;
    let found = places(library, owner, part)?;
    let mut exported = Exported {
        damaged: found.told(),
        ..Exported::default()
    };
    for place in found.places {
        exported.places += 1;
        exported.items += place.database.read(|db| export_place(db, &place, to))?;
    }
    to.flush().map_err(broken)?;
    Ok(exported)
}

fn export_place(db: &Connection, place: &Place, to: &mut dyn Write) -> Result<u64, Fault> {
    let begin = match &place.root {
        Some(root) => Record::Project { root: root.clone() },
        None => Record::Shared,
    };
    write(to, &begin)?;
    let mut collections =
        db.prepare("SELECT branch, vector_size FROM collection ORDER BY branch")?;
    let mut rows = collections.query([])?;
    while let Some(row) = rows.next()? {
        let collection = Record::Collection {
            branch: row.get(0)?,
            vector_size: row.get(1)?,
        };
        write(to, &collection)?;
    }
    let select = format!("SELECT {} FROM item ORDER BY row", stored::COLUMNS);
    let mut items = db.prepare(&select)?;
    let mut rows = items.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let item = stored::read(row)?;
        write(to, &Record::Item(Box::new(item.into())))?;
        count += 1;
    }
    Ok(count)
}

/// Writes a line. JSON has no line breaks but in this way.
pub(super) fn write(to: &mut dyn Write, record: &Record) -> Result<(), ContextError> {
    let mut line = serde_json::to_vec(record).expect("a record can be written as JSON");
    line.push(b'\n');
    to.write_all(&line).map_err(broken)
}

fn broken(error: std::io::Error) -> ContextError {
    ContextError::file("the file of the export", error)
}
