//! Collections: the data of one branch of one project, under a name.
//!
//! A name contains `_` for each `/` of the branch. Git allows both `a/b` and `a_b`. As long as only one of them has data,
//! `a_b` refers to it. If both have data, the names end with the branch as Git writes it, so that no name is ambiguous.

use std::{collections::BTreeMap, sync::Arc};

use rusqlite::{Connection, Row, Transaction, params};

use super::database::now;
use crate::{
    ContextError, DataDir, Database, Owner, Redactor,
    code_index::{detach_branch, purge_detached},
    mcp::display::sanitize,
    memory::delete_where,
};

const MAX_VECTOR_SIZE: u64 = 65_536;
const MAX_BRANCH_CHARS: usize = 255;

/// The data of one branch.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Collection {
    /// `owner_<id>/project_<id>/<branch>`, with `_` for each `/` of the branch unless that would be ambiguous.
    pub name: String,
    /// The requested size of the vectors, or else the size of the stored ones; 0 without vectors.
    pub vector_size: u64,
    /// The number of items and of chunks of indexed files.
    pub point_count: u64,
}

/// The number of objects deleted with a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RemovedCounts {
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Indexed files.
    pub files: u64,
    /// Chunks of those files.
    pub chunks: u64,
}

/// Returns the collection name of a branch, which is valid as long as no other branch has the same label.
pub fn name(owner: &Owner, project_id: &str, branch: &str) -> String {
    format!("{owner}/project_{project_id}/{}", label(branch))
}

/// Creates a collection, or changes the size of its vectors. Saving and indexing create collections, too.
pub fn create(
    data_dir: &DataDir,
    owner: &Owner,
    name: &str,
    vector_size: u64,
) -> Result<Collection, ContextError> {
    let parsed = CollectionName::parse(name)?;
    if contains_secret(parsed.branch) {
        return Err(ContextError::invalid(
            "the name seems to contain a secret, and names are stored; use another name",
        ));
    }
    if !(1..=MAX_VECTOR_SIZE).contains(&vector_size) {
        return Err(ContextError::invalid(format!(
            "`vector_size` is {vector_size}; expected an integer from 1 to {MAX_VECTOR_SIZE}"
        )));
    }
    if parsed.owner != owner.id() {
        return Err(ContextError::invalid(format!(
            "`owner_{}` is another owner; the names of your collections start with `{owner}/`",
            parsed.owner
        )));
    }
    let Some(database) = data_dir.open_project_by_id(owner, parsed.project)? else {
        return Err(ContextError::not_found(format!(
            "project `project_{}`; save something in it, or list the collections to see the projects",
            parsed.project
        )));
    };
    let insert = "INSERT INTO collection VALUES (?1, ?2, ?3) \
                  ON CONFLICT DO UPDATE SET vector_size = excluded.vector_size";
    let size = vector_size.cast_signed();
    database.write(|db| Ok(db.execute(insert, params![label(parsed.branch), size, now()])?))?;
    let found = find(data_dir, owner, name)?;
    found.ok_or_else(|| unknown_collection(name))
}

/// Returns the collections of all projects of an owner, ordered by name.
pub fn list(data_dir: &DataDir, owner: &Owner) -> Result<Vec<Collection>, ContextError> {
    let mut all = Vec::new();
    for project in data_dir.project_ids(owner)? {
        let listed = data_dir
            .open_project_by_id(owner, &project)
            .and_then(|database| {
                let database = database.map(|database| list_project(&database, owner, &project));
                database.transpose()
            });
        match listed {
            Ok(listed) => all.extend(listed.unwrap_or_default()),
            // A damaged database does not hide the others.
            Err(error) => tracing::warn!(%error, project, "not listed"),
        }
    }
    all.sort_by(|one: &Collection, other| one.name.cmp(&other.name));
    Ok(all)
}

/// Returns the collections of one project.
pub(crate) fn list_project(
    database: &Database,
    owner: &Owner,
    project: &str,
) -> Result<Vec<Collection>, ContextError> {
    let branches = database.read(|db| Ok(BranchTable::read(db)?))?;
    let prefix = format!("{owner}/project_{project}");
    let entries = branches.entries().into_iter();
    Ok(entries.map(|entry| entry.collection(&prefix)).collect())
}

/// Returns the collection of an owner with this name.
pub fn find(
    data_dir: &DataDir,
    owner: &Owner,
    name: &str,
) -> Result<Option<Collection>, ContextError> {
    let Some((parsed, database)) = open(data_dir, owner, name)? else {
        return Ok(None);
    };
    let branches = database.read(|db| Ok(BranchTable::read(db)?))?;
    let entry = branches.resolve(parsed.branch)?;
    let prefix = format!("{owner}/project_{}", parsed.project);
    Ok(entry.map(|entry| entry.collection(&prefix)))
}

/// Deletes all data of a branch. A collection of another owner is reported as unknown.
pub fn delete(
    data_dir: &DataDir,
    owner: &Owner,
    name: &str,
) -> Result<RemovedCounts, ContextError> {
    let Some((parsed, database)) = open(data_dir, owner, name)? else {
        return Err(unknown_collection(name));
    };
    let removal = database.write(|db| {
        let branches = BranchTable::read(db)?;
        let Some(entry) = branches.resolve(parsed.branch)? else {
            return Err(unknown_collection(name).into());
        };
        Ok(entry.remove(db)?)
    })?;
    removal.finish(&database)
}

/// A parsed collection name.
struct CollectionName<'n> {
    owner: &'n str,
    project: &'n str,
    branch: &'n str,
}

impl<'n> CollectionName<'n> {
    fn parse(name: &'n str) -> Result<Self, ContextError> {
        let parse = || {
            let mut parts = name.splitn(3, '/');
            let owner = parts.next()?.strip_prefix("owner_").filter(is_id)?;
            let project = parts.next()?.strip_prefix("project_").filter(is_id)?;
            let branch = parts.next().filter(|branch| is_branch(branch))?;
            Some(Self {
                owner,
                project,
                branch,
            })
        };
        parse().ok_or_else(|| {
            ContextError::invalid(
                "a collection name has the form `owner_<16 digits>/project_<16 digits>/<branch>`; list the collections to see their names",
            )
        })
    }
}

/// Opens the database that a name refers to; `None` if it belongs to another owner or does not exist.
fn open<'n>(
    data_dir: &DataDir,
    owner: &Owner,
    name: &'n str,
) -> Result<Option<(CollectionName<'n>, Arc<Database>)>, ContextError> {
    let Ok(parsed) = CollectionName::parse(name) else {
        return Ok(None);
    };
    if parsed.owner != owner.id() {
        return Ok(None);
    }
    let database = data_dir.open_project_by_id(owner, parsed.project)?;
    Ok(database.map(|database| (parsed, database)))
}

fn unknown_collection(name: &str) -> ContextError {
    let name: String = name.chars().take(MAX_BRANCH_CHARS).collect();
    ContextError::not_found(format!(
        "collection `{name}`; list the collections to see their names"
    ))
}

/// Returns whether a name contains a secret, which may start after each `_` because names have `_` for `/`.
fn contains_secret(branch: &str) -> bool {
    let after = branch.match_indices('_').map(|(at, _)| &branch[at + 1..]);
    let mut parts = std::iter::once(branch).chain(after);
    parts.any(|part| !Redactor::standard().redact(part).findings.is_empty())
}

fn is_id(text: &&str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 16 && text.bytes().all(is_hex)
}

fn is_branch(text: &str) -> bool {
    let length = text.chars().count();
    (1..=MAX_BRANCH_CHARS).contains(&length)
        && !text.trim().is_empty()
        && !text.chars().any(char::is_control)
}

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
