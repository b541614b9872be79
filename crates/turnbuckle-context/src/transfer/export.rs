//! Export as JSON Lines.

use std::io::Write;

use super::{
    DataSelection, DatabaseRef, open_databases,
    record::{ExportHeader, ExportRecord, FORMAT, VERSION},
};
use crate::{
    ContextError, DataDir, Owner,
    memory_store::{MemoryStore, PartitionExport, SqliteMemoryStore, block_on},
    storage::database::now,
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
    let store = SqliteMemoryStore::new(data_dir);
    for source in found.databases {
        exported.databases += 1;
        let read = export_database(&store, &source, to)?;
        exported.items += read.items;
        let path = source.database.path().display();
        let lost = read.lost.iter().map(|lost| format!("{path}: {lost}"));
        exported.damaged.extend(lost);
    }
    to.flush().map_err(write_error)?;
    Ok(exported)
}

fn export_database(
    store: &dyn MemoryStore,
    source: &DatabaseRef,
    to: &mut dyn Write,
) -> Result<PartitionExport, ContextError> {
    let mut lost = Vec::new();
    let begin = match (&source.root, source.partition.project_id()) {
        (Some(root), _) => ExportRecord::Project { root: root.clone() },
        (None, None) => ExportRecord::Shared,
        (None, Some(id)) => {
            let root = format!("/unknown/{id}");
            lost.push(format!(
                "the folder of the project cannot be read; its items are exported as those of {root}"
            ));
            ExportRecord::Project { root }
        }
    };
    write(to, &begin)?;
    let mut sink = |entry| write(to, &ExportRecord::from(entry));
    let mut read = block_on(store.export(&source.partition, &mut sink))?;
    read.lost.splice(..0, lost);
    Ok(read)
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
