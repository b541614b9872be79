//! The branches with data in one database, and their collection names.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, Transaction};

use super::{Collection, RemovedCounts};
use crate::{
    ContextError, Database,
    answer::sanitize,
    index::{detach_branch, purge_detached},
    memory::delete_where,
};

/// Returns the form of a branch in a collection name.
pub(super) fn label(branch: &str) -> String {
    branch.replace('/', "_")
}

/// Branches with data, by label.
#[derive(Default)]
pub(super) struct BranchTable {
    labels: BTreeMap<String, BranchLabel>,
    /// The size of the stored vectors.
    measured_size: u64,
}

/// The branches that share a label.
#[derive(Default)]
struct BranchLabel {
    /// The requested vector size.
    vector_size: Option<u64>,
    /// The number of points of each branch.
    points: BTreeMap<String, u64>,
}

/// One collection.
#[derive(Clone, Copy)]
pub(super) struct BranchEntry<'b> {
    label: &'b str,
    /// The last part of the collection name.
    name: &'b str,
    /// The branch, if it has data.
    branch: Option<&'b str>,
    vector_size: u64,
    point_count: u64,
}

impl BranchTable {
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut branches = Self::default();
        for (branch, size) in query_pairs(db, "SELECT branch, vector_size FROM collection")? {
            branches.labels.entry(branch).or_default().vector_size = Some(size);
        }
        for counts in [
            "SELECT branch, count(*) FROM item GROUP BY branch",
            "SELECT branch, 0 FROM tree",
            "SELECT tree.branch, count(*) FROM tree JOIN file ON file.tree = tree.id \
             JOIN chunk ON chunk.file = file.id GROUP BY tree.branch",
        ] {
            for (branch, count) in query_pairs(db, counts)? {
                let label = branches.labels.entry(label(&branch)).or_default();
                *label.points.entry(branch).or_default() += count;
            }
        }
        let size = "SELECT '', coalesce((SELECT length(data) / 4 FROM vector LIMIT 1), 0)";
        branches.measured_size = query_pairs(db, size)?.first().map_or(0, |(_, size)| *size);
        Ok(branches)
    }

    /// Returns all collections, ordered by label and branch.
    pub(super) fn entries(&self) -> Vec<BranchEntry<'_>> {
        let mut entries = Vec::new();
        for (label, of_label) in &self.labels {
            let entry = BranchEntry {
                label,
                name: label,
                branch: None,
                vector_size: of_label.vector_size.unwrap_or(self.measured_size),
                point_count: 0,
            };
            let is_clear = of_label.points.len() == 1;
            for (branch, count) in &of_label.points {
                entries.push(BranchEntry {
                    name: if is_clear { label } else { branch },
                    branch: Some(branch),
                    point_count: *count,
                    ..entry
                });
            }
            if of_label.points.is_empty() {
                entries.push(entry);
            }
        }
        entries
    }

    /// Returns the collection with this last part of a name. Fails if the part is ambiguous.
    pub(super) fn resolve(&self, name: &str) -> Result<Option<BranchEntry<'_>>, ContextError> {
        let means = |entry: &BranchEntry<'_>| entry.name == name || entry.branch == Some(name);
        if let Some(entry) = self.entries().into_iter().find(means) {
            return Ok(Some(entry));
        }
        let several: Vec<&str> = self
            .entries()
            .into_iter()
            .filter(|entry| entry.label == name)
            .map(|entry| entry.name)
            .collect();
        if several.is_empty() {
            return Ok(None);
        }
        Err(ContextError::invalid(format!(
            "`{name}` means several branches; end the name with one of `{}`",
            sanitize(&several.join("`, `"))
        )))
    }
}

impl BranchEntry<'_> {
    /// Returns the public form of the entry.
    pub(super) fn collection(&self, prefix: &str) -> Collection {
        Collection {
            name: format!("{prefix}/{}", self.name),
            vector_size: self.vector_size,
            point_count: self.point_count,
        }
    }

    /// Starts the removal: detaches the index of the branch.
    pub(super) fn remove(&self, db: &Transaction<'_>) -> rusqlite::Result<BranchRemoval> {
        let detached = self
            .branch
            .map(|branch| detach_branch(db, branch))
            .transpose()?;
        let detached = detached.unwrap_or_default();
        Ok(BranchRemoval {
            branch: self.branch.map(str::to_owned),
            label: self.label.to_owned(),
            removed: RemovedCounts {
                items: 0,
                files: detached.files,
                chunks: detached.chunks,
            },
        })
    }
}

/// A removal in progress: the index is already invisible to readers, the items still exist.
pub(super) struct BranchRemoval {
    branch: Option<String>,
    label: String,
    removed: RemovedCounts,
}

impl BranchRemoval {
    /// Deletes the items and the detached index in small transactions.
    pub(super) fn finish(mut self, database: &Database) -> Result<RemovedCounts, ContextError> {
        if let Some(branch) = &self.branch {
            self.removed.items =
                delete_where(database, "branch = :branch", &[(":branch", branch)])?;
        }
        let delete = "DELETE FROM collection WHERE branch = ?1 AND NOT EXISTS \
                      (SELECT 1 FROM item WHERE replace(branch, '/', '_') = ?1) AND NOT EXISTS \
                      (SELECT 1 FROM tree WHERE replace(branch, '/', '_') = ?1)";
        database.write(|db| Ok(db.execute(delete, [&self.label])?))?;
        if self.removed.files > 0 {
            purge_detached(database)?;
        }
        Ok(self.removed)
    }
}

fn query_pairs(db: &Connection, select: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()));
    db.prepare_cached(select)?.query_map([], pair)?.collect()
}
