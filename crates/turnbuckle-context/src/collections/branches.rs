//! The branches that something is kept of in one database, and what each is called.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, Transaction};

use super::{Collection, Removed};
use crate::answer::visible;
use crate::index::{bury, clear_away};
use crate::memory::erase;
use crate::{ContextError, Database};

/// How a branch is called in the name of a collection.
pub(super) fn label(branch: &str) -> String {
    branch.replace('/', "_")
}

/// What is kept, by label.
#[derive(Default)]
pub(super) struct Branches {
    labels: BTreeMap<String, Label>,
    /// The size of the vectors that are there.
    measured_size: u64,
}

/// All branches that would be called the same.
#[derive(Default)]
struct Label {
    /// The size of vectors that was asked for.
    vector_size: Option<u64>,
    /// What is kept of each branch.
    points: BTreeMap<String, u64>,
}

/// One collection.
#[derive(Clone, Copy)]
pub(super) struct Entry<'b> {
    label: &'b str,
    /// The last part of its name.
    called: &'b str,
    /// The branch, if something is kept of it.
    branch: Option<&'b str>,
    vector_size: u64,
    point_count: u64,
}

impl Branches {
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut branches = Self::default();
        for (branch, size) in pairs(db, "SELECT branch, vector_size FROM collection")? {
            branches.labels.entry(branch).or_default().vector_size = Some(size);
        }
        for counts in [
            "SELECT branch, count(*) FROM item GROUP BY branch",
            "SELECT branch, 0 FROM tree",
            "SELECT tree.branch, count(*) FROM tree JOIN file ON file.tree = tree.id \
             JOIN chunk ON chunk.file = file.id GROUP BY tree.branch",
        ] {
            for (branch, count) in pairs(db, counts)? {
                let label = branches.labels.entry(label(&branch)).or_default();
                *label.points.entry(branch).or_default() += count;
            }
        }
        let size = "SELECT '', coalesce((SELECT length(data) / 4 FROM vector LIMIT 1), 0)";
        branches.measured_size = pairs(db, size)?.first().map_or(0, |(_, size)| *size);
        Ok(branches)
    }

    /// All collections, by label and branch.
    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        for (label, of_label) in &self.labels {
            let entry = Entry {
                label,
                called: label,
                branch: None,
                vector_size: of_label.vector_size.unwrap_or(self.measured_size),
                point_count: 0,
            };
            let is_clear = of_label.points.len() == 1;
            for (branch, count) in &of_label.points {
                entries.push(Entry {
                    called: if is_clear { label } else { branch },
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

    /// The collection that the last part of a name means. Refuses one that means several.
    pub(super) fn resolve(&self, called: &str) -> Result<Option<Entry<'_>>, ContextError> {
        let means = |entry: &Entry<'_>| entry.called == called || entry.branch == Some(called);
        if let Some(entry) = self.entries().into_iter().find(means) {
            return Ok(Some(entry));
        }
        let several: Vec<&str> = self
            .entries()
            .into_iter()
            .filter(|entry| entry.label == called)
            .map(|entry| entry.called)
            .collect();
        if several.is_empty() {
            return Ok(None);
        }
        Err(ContextError::refused(format!(
            "`{called}` means several branches; end the name with one of `{}`",
            visible(&several.join("`, `"))
        )))
    }
}

impl Entry<'_> {
    /// What a caller sees of it.
    pub(super) fn collection(&self, place: &str) -> Collection {
        Collection {
            name: format!("{place}/{}", self.called),
            vector_size: self.vector_size,
            point_count: self.point_count,
        }
    }

    /// Begins to remove all that is kept of it.
    pub(super) fn remove(&self, db: &Transaction<'_>) -> rusqlite::Result<Leaving> {
        let buried = self.branch.map(|branch| bury(db, branch)).transpose()?;
        let buried = buried.unwrap_or_default();
        Ok(Leaving {
            branch: self.branch.map(str::to_owned),
            label: self.label.to_owned(),
            removed: Removed {
                items: 0,
                files: buried.files,
                chunks: buried.chunks,
            },
        })
    }
}

/// A collection on its way out: its index is not seen any more, its items are still there.
pub(super) struct Leaving {
    branch: Option<String>,
    label: String,
    removed: Removed,
}

impl Leaving {
    /// Removes the rest, a little at a time.
    pub(super) fn finish(mut self, database: &Database) -> Result<Removed, ContextError> {
        if let Some(branch) = &self.branch {
            self.removed.items = erase(database, "branch = :branch", &[(":branch", branch)])?;
        }
        let delete = "DELETE FROM collection WHERE branch = ?1 AND NOT EXISTS \
                      (SELECT 1 FROM item WHERE replace(branch, '/', '_') = ?1) AND NOT EXISTS \
                      (SELECT 1 FROM tree WHERE replace(branch, '/', '_') = ?1)";
        database.write(|db| Ok(db.execute(delete, [&self.label])?))?;
        if self.removed.files > 0 {
            clear_away(database)?;
        }
        Ok(self.removed)
    }
}

fn pairs(db: &Connection, select: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()));
    db.prepare_cached(select)?.query_map([], pair)?.collect()
}
