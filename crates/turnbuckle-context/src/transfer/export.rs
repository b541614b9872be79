//! Export as JSON Lines.

use std::{collections::BTreeSet, io::Write};

use rusqlite::Connection;

use super::{
    DataSelection, DatabaseRef, open_databases,
    record::{ExportHeader, ExportRecord, FORMAT, VERSION},
};
use crate::{
    ContextError, DataDir, Owner,
    memory::rows,
    storage::database::{TransactionError, now},
};

/// Result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ExportReport {
    /// The number of exported databases: projects and the shared one.
    #[serde(rename = "places")]
    pub databases: u64,
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Errors for databases, or parts of them, that could not be read and are not in the export.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Writes an owner's memory as JSON Lines; the format is described in `docs/context-data.md`.
///
/// The export of each project is a consistent snapshot. Indexes are not exported, because they can be rebuilt. Damaged data is
/// skipped and listed in [`ExportReport::damaged`].
pub fn export(
    data_dir: &DataDir,
    owner: &Owner,
    selection: &DataSelection,
    to: &mut dyn Write,
) -> Result<ExportReport, ContextError> {
    let header = ExportHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported: now(),
    };
    write(to, &ExportRecord::Header(header))?;
    let found = open_databases(data_dir, owner, selection)?;
    let mut exported = ExportReport {
        damaged: found.messages(),
        ..ExportReport::default()
    };
    for source in found.databases {
        exported.databases += 1;
        let read = source
            .database
            .read(|db| export_database(db, &source, to))?;
        exported.items += read.items;
        let path = source.database.path().display();
        let lost = read.lost.iter().map(|lost| format!("{path}: {lost}"));
        exported.damaged.extend(lost);
    }
    to.flush().map_err(write_error)?;
    Ok(exported)
}

/// Result of exporting one database.
#[derive(Default)]
struct DatabaseExport {
    items: u64,
    lost: Vec<String>,
}

fn export_database(
    db: &Connection,
    source: &DatabaseRef,
    to: &mut dyn Write,
) -> Result<DatabaseExport, TransactionError> {
    let mut read = DatabaseExport::default();
    let begin = match (&source.root, &source.project) {
        (Some(root), _) => ExportRecord::Project { root: root.clone() },
        (None, None) => ExportRecord::Shared,
        (None, Some(id)) => {
            let root = format!("/unknown/{id}");
            let lost = format!(
                "the folder of the project cannot be read; its items are exported as those of {root}"
            );
            read.lost.push(lost);
            ExportRecord::Project { root }
        }
    };
    write(to, &begin)?;
    if let Err(error) = export_collections(db, to) {
        let error = sqlite_damage(error)?;
        read.lost
            .push(format!("not all branches were exported: {error}"));
    }
    export_items(db, to, &mut read)?;
    Ok(read)
}

fn export_collections(db: &Connection, to: &mut dyn Write) -> Result<(), TransactionError> {
    let mut collections =
        db.prepare("SELECT branch, vector_size FROM collection ORDER BY branch")?;
    let mut rows = collections.query([])?;
    while let Some(row) = rows.next()? {
        let collection = ExportRecord::Collection {
            branch: row.get(0)?,
            vector_size: row.get(1)?,
        };
        write(to, &collection)?;
    }
    Ok(())
}

/// Writes the items ordered by row. After a damaged page, the remaining items are read one by one.
fn export_items(
    db: &Connection,
    to: &mut dyn Write,
    read: &mut DatabaseExport,
) -> Result<(), TransactionError> {
    let mut last = i64::MIN;
    let Err(error) = export_in_order(db, to, read, &mut last) else {
        return Ok(());
    };
    sqlite_damage(error)?;
    let select = format!("SELECT {} FROM item WHERE row = ?1", rows::COLUMNS);
    let mut select = db.prepare(&select)?;
    let rows = recoverable_rows(db);
    let mut lost = 0;
    for row in rows.range(last.saturating_add(1)..) {
        match select.query_row([row], rows::item_from_row) {
            Ok(item) => {
                write(to, &ExportRecord::Item(Box::new(item.into())))?;
                read.items += 1;
            }
            Err(_) => lost += 1,
        }
    }
    let what = match lost {
        0 => "a page is damaged; all known items were exported".to_owned(),
        1 => "1 item is on a damaged page".to_owned(),
        lost => format!("{lost} items are on damaged pages"),
    };
    read.lost.push(what);
    Ok(())
}

fn export_in_order(
    db: &Connection,
    to: &mut dyn Write,
    read: &mut DatabaseExport,
    last: &mut i64,
) -> Result<(), TransactionError> {
    let select = format!(
        "SELECT {} FROM item NOT INDEXED ORDER BY row",
        rows::COLUMNS
    );
    let mut items = db.prepare(&select)?;
    let mut rows = items.query([])?;
    while let Some(row) = rows.next()? {
        let item = rows::item_from_row(row)?;
        *last = item.row;
        write(to, &ExportRecord::Item(Box::new(item.into())))?;
        read.items += 1;
    }
    Ok(())
}

/// Returns the rows of all items in the table or in one of its indexes. Each is scanned from both ends, up to a damaged page.
fn recoverable_rows(db: &Connection) -> BTreeSet<i64> {
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
        // Keep the rows read before the error.
        let _ = read();
    }
    known
}

/// Returns SQLite errors as damage. Any other error ends the export.
fn sqlite_damage(error: TransactionError) -> Result<rusqlite::Error, TransactionError> {
    match error {
        TransactionError::Sqlite(error) => Ok(error),
        error => Err(error),
    }
}

/// Writes a record as one line. The JSON does not contain line breaks.
pub(super) fn write(to: &mut dyn Write, record: &ExportRecord) -> Result<(), ContextError> {
    let mut line = serde_json::to_vec(record).expect("a record can be written as JSON");
    line.push(b'\n');
    to.write_all(&line).map_err(write_error)
}

fn write_error(error: std::io::Error) -> ContextError {
    ContextError::file("the export file", error)
}
