//! Writing what is kept as lines of JSON.

use std::collections::BTreeSet;
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
    /// What could not be read, and is not in the export: whole files, or parts of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Writes an owner's memory as JSON Lines; the format is described in `docs/context-data.md`.
///
/// Of each project it is what was there at one moment. Indexes are not written: they can be made again. What is damaged is left
/// out, and [`Exported::damaged`] says so.
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
        let read = place.database.read(|db| export_place(db, &place, to))?;
        exported.items += read.items;
        let path = place.database.path().display();
        let lost = read.lost.iter().map(|lost| format!("{path}: {lost}"));
        exported.damaged.extend(lost);
    }
    to.flush().map_err(broken)?;
    Ok(exported)
}

/// What was read of one database.
#[derive(Default)]
struct Read {
    items: u64,
    lost: Vec<String>,
}

fn export_place(db: &Connection, place: &Place, to: &mut dyn Write) -> Result<Read, Fault> {
    let mut read = Read::default();
    let begin = match (&place.root, &place.project) {
        (Some(root), _) => Record::Project { root: root.clone() },
        (None, None) => Record::Shared,
        (None, Some(id)) => {
            let root = format!("/unknown/{id}");
            let lost = format!(
                "the folder of the project cannot be read; its things are exported as those of {root}"
            );
            read.lost.push(lost);
            Record::Project { root }
        }
    };
    write(to, &begin)?;
    if let Err(error) = export_collections(db, to) {
        let error = only_damage(error)?;
        read.lost.push(format!("not all branches: {error}"));
    }
    export_items(db, to, &mut read)?;
    Ok(read)
}

fn export_collections(db: &Connection, to: &mut dyn Write) -> Result<(), Fault> {
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
    Ok(())
}

/// Writes the items in the order of their rows. Where that meets a damaged page, the rest is read one by one.
fn export_items(db: &Connection, to: &mut dyn Write, read: &mut Read) -> Result<(), Fault> {
    let mut last = i64::MIN;
    let Err(fault) = export_in_order(db, to, read, &mut last) else {
        return Ok(());
    };
    only_damage(fault)?;
    let select = format!("SELECT {} FROM item WHERE row = ?1", stored::COLUMNS);
    let mut select = db.prepare(&select)?;
    let rows = known_rows(db);
    let mut lost = 0;
    for row in rows.range(last.saturating_add(1)..) {
        match select.query_row([row], stored::read) {
            Ok(item) => {
                write(to, &Record::Item(Box::new(item.into())))?;
                read.items += 1;
            }
            Err(_) => lost += 1,
        }
    }
    let what = match lost {
        0 => "a page is damaged; every thing that is known of could be read".to_owned(),
        1 => "1 thing is on a damaged page".to_owned(),
        lost => format!("{lost} things are on damaged pages"),
    };
    read.lost.push(what);
    Ok(())
}

fn export_in_order(
    db: &Connection,
    to: &mut dyn Write,
    read: &mut Read,
    last: &mut i64,
) -> Result<(), Fault> {
    let select = format!(
        "SELECT {} FROM item NOT INDEXED ORDER BY row",
        stored::COLUMNS
    );
    let mut items = db.prepare(&select)?;
    let mut rows = items.query([])?;
    while let Some(row) = rows.next()? {
        let item = stored::read(row)?;
        *last = item.row;
        write(to, &Record::Item(Box::new(item.into())))?;
        read.items += 1;
    }
    Ok(())
}

/// The rows of all items that the table or one of its indexes still knows. Each is read from both ends, up to a damaged page.
fn known_rows(db: &Connection) -> BTreeSet<i64> {
    const SCANS: &[&str] = &[
        "SELECT row FROM item NOT INDEXED ORDER BY row",
        "SELECT row FROM item NOT INDEXED ORDER BY row DESC",
        "SELECT row FROM item ORDER BY id",
        "SELECT row FROM item ORDER BY id DESC",
        "SELECT row FROM item INDEXED BY item_newest ORDER BY kind, created DESC, row DESC",
        "SELECT row FROM item INDEXED BY item_newest ORDER BY kind DESC, created, row",
        "SELECT row FROM item INDEXED BY item_branch ORDER BY branch, row",
        "SELECT row FROM item INDEXED BY item_branch ORDER BY branch DESC, row DESC",
    ];
    let mut known = BTreeSet::new();
    for scan in SCANS {
        let mut read = || -> rusqlite::Result<()> {
            let mut rows = db.prepare(scan)?;
            for row in rows.query_map([], |row| row.get(0))? {
                known.insert(row?);
            }
            Ok(())
        };
        // What was read before the damage counts.
        let _ = read();
    }
    known
}

/// Passes on what is no damage of the database: then nothing more can be exported.
fn only_damage(fault: Fault) -> Result<rusqlite::Error, Fault> {
    match fault {
        Fault::Sqlite(error) => Ok(error),
        fault => Err(fault),
    }
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
