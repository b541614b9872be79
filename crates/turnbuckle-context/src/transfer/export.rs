//! Export as JSON Lines.

use std::io::Write;

use super::{
    DataLocation, DataSelection, PartitionRef, find_partitions,
    record::{ExportHeader, ExportRecord, FORMAT, VERSION},
};
use crate::{
    ContextError, Owner,
    memory_store::{MemoryStore, PartitionExport, block_on},
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
/// skipped and listed in [`ExportReport::damaged`]. Call it on a thread that may block.
pub fn export<'d>(
    data: impl Into<DataLocation<'d>>,
    owner: &Owner,
    selection: &DataSelection,
    to: &mut dyn Write,
) -> Result<ExportReport, ContextError> {
    let data = data.into();
    let header = ExportHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported: now(),
    };
    write(to, &ExportRecord::Header(header))?;
    let found = find_partitions(data, owner, selection)?;
    let mut exported = ExportReport {
        damaged: found.messages(),
        ..ExportReport::default()
    };
    let store = data.store();
    for source in found.partitions {
        exported.databases += 1;
        let read = export_partition(store.as_dyn(), &source, to)?;
        exported.items += read.items;
        let path = source.file.unwrap_or_default();
        let lost = read
            .lost
            .iter()
            .map(|lost| format!("{}: {lost}", path.display()));
        exported.damaged.extend(lost);
    }
    to.flush().map_err(write_error)?;
    Ok(exported)
}

fn export_partition(
    store: &dyn MemoryStore,
    source: &PartitionRef,
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
