//! Export and import of a partition.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};

use super::items::{self, COLUMNS, item_from_row};
use crate::{
    ContextError, Database,
    memory::ItemKind,
    memory_store::{
        ExportEntry, ExportSink, ImportCounts, ImportEntry, ImportSource, PartitionExport,
    },
    storage::database::{TransactionError, now},
};

/// Maximum duration of one transaction of an import, because other writers wait for it.
const MAX_TRANSACTION_TIME: Duration = Duration::from_millis(100);

/// Exports a partition from a snapshot. Damaged pages are skipped.
pub(crate) fn export(
    db: &Connection,
    sink: ExportSink<'_>,
) -> Result<PartitionExport, TransactionError> {
    let mut exported = PartitionExport::default();
    if let Err(error) = export_collections(db, sink) {
        let error = sqlite_damage(error)?;
        exported
            .lost
            .push(format!("not all branches were exported: {error}"));
    }
    export_items(db, sink, &mut exported)?;
    Ok(exported)
}

fn export_collections(db: &Connection, sink: ExportSink<'_>) -> Result<(), TransactionError> {
    let mut collections =
        db.prepare("SELECT branch, vector_size FROM collection ORDER BY branch")?;
    let mut rows = collections.query([])?;
    while let Some(row) = rows.next()? {
        sink(ExportEntry::Collection {
            label: row.get(0)?,
            vector_size: row.get(1)?,
        })?;
    }
    Ok(())
}

/// Exports the items ordered by row. After a damaged page, the remaining items are read one by one.
fn export_items(
    db: &Connection,
    sink: ExportSink<'_>,
    exported: &mut PartitionExport,
) -> Result<(), TransactionError> {
    let mut last = i64::MIN;
    let Err(error) = export_in_order(db, sink, exported, &mut last) else {
        return Ok(());
    };
    sqlite_damage(error)?;
    let mut select = db.prepare(&format!("SELECT {COLUMNS} FROM item WHERE row = ?1"))?;
    let rows = recoverable_rows(db);
    let mut lost = 0;
    for row in rows.range(last.saturating_add(1)..) {
        match select.query_row([row], item_from_row) {
            Ok(item) => {
                sink(ExportEntry::Item(Box::new(item)))?;
                exported.items += 1;
            }
            Err(_) => lost += 1,
        }
    }
    let what = match lost {
        0 => "a page is damaged; all known items were exported".to_owned(),
        1 => "1 item is on a damaged page".to_owned(),
        lost => format!("{lost} items are on damaged pages"),
    };
    exported.lost.push(what);
    Ok(())
}

fn export_in_order(
    db: &Connection,
    sink: ExportSink<'_>,
    exported: &mut PartitionExport,
    last: &mut i64,
) -> Result<(), TransactionError> {
    let select = format!("SELECT {COLUMNS} FROM item NOT INDEXED ORDER BY row");
    let mut items = db.prepare(&select)?;
    let mut rows = items.query([])?;
    while let Some(row) = rows.next()? {
        let item = item_from_row(row)?;
        *last = item.number.get();
        sink(ExportEntry::Item(Box::new(item)))?;
        exported.items += 1;
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

/// Stores entries in transactions of limited time.
pub(crate) fn import(
    database: &Database,
    entries: ImportSource<'_>,
) -> Result<ImportCounts, ContextError> {
    let mut counts = ImportCounts::default();
    let mut next = entries.next().transpose()?;
    while next.is_some() {
        database.write(|db| {
            let started = Instant::now();
            while started.elapsed() < MAX_TRANSACTION_TIME
                && let Some(entry) = next.take()
            {
                import_entry(db, entry, &mut counts)?;
                next = entries.next().transpose()?;
            }
            Ok(())
        })?;
        database.yield_lock();
    }
    Ok(counts)
}

fn import_entry(
    db: &Connection,
    entry: ImportEntry,
    counts: &mut ImportCounts,
) -> rusqlite::Result<()> {
    let (mut prepared, id) = match entry {
        ImportEntry::Item { item, id } => (*item, id),
        ImportEntry::Collection { label, vector_size } => {
            let insert = "INSERT OR IGNORE INTO collection VALUES (?1, ?2, ?3)";
            db.execute(insert, params![label, vector_size, now()])?;
            return Ok(());
        }
    };
    if let Some(id) = id
        && ItemKind::from_id(&id) == Some(prepared.item.kind)
        && is_free(db, &id)?
    {
        prepared.item.id = id;
    }
    match items::find_by_hash(db, prepared.item.kind, prepared.hash())? {
        None => counts.new += 1,
        Some(known) if known.updated < prepared.item.updated => counts.updated += 1,
        Some(_) => {
            counts.unchanged += 1;
            return Ok(());
        }
    }
    items::store(db, prepared).map(drop)
}

fn is_free(db: &Connection, id: &str) -> rusqlite::Result<bool> {
    let taken = db
        .prepare_cached("SELECT 1 FROM item WHERE id = ?1")?
        .exists([id])?;
    Ok(!taken)
}
