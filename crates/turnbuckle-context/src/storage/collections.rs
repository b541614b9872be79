//! Collections: the data of one branch of one project, under a name.
//!
//! A name contains `_` for each `/` of the branch. Git allows both `a/b` and `a_b`. As long as only one of them has data,
//! `a_b` refers to it. If both have data, the names end with the branch as Git writes it, so that no name is ambiguous.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};

use crate::{
    ContextError, DataDir, Owner, Redactor,
    code_index::{DeletedCounts, detach_branch, purge_detached},
    mcp::display::sanitize,
    memory_store::{
        MemoryStore, MemoryStoreError, Partition, StoredBranches, sqlite::OpenPartition as _,
    },
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

/// The collections of all owners: items in a store of memory, and indexes in local files.
pub(crate) struct Collections<'s> {
    memory: &'s dyn MemoryStore,
    data_dir: &'s DataDir,
}

impl<'s> Collections<'s> {
    pub(crate) fn new(memory: &'s dyn MemoryStore, data_dir: &'s DataDir) -> Self {
        Self { memory, data_dir }
    }

    /// Creates a collection, or changes the size of its vectors. Saving and indexing create collections, too.
    pub(crate) async fn create(
        &self,
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
        let partition = Partition::project(owner, parsed.project);
        let label = label(parsed.branch);
        let created = self
            .memory
            .create_collection(&partition, &label, vector_size);
        created.await.map_err(|error| match error {
            MemoryStoreError::UnknownProject => ContextError::not_found(format!(
                "project `project_{}`; save something in it, or list the collections to see the projects",
                parsed.project
            )),
            error => error.into(),
        })?;
        let found = self.find(owner, name).await?;
        found.ok_or_else(|| unknown_collection(name))
    }

    /// Returns the collections of all projects of an owner, ordered by name.
    pub(crate) async fn list(&self, owner: &Owner) -> Result<Vec<Collection>, ContextError> {
        let mut all = Vec::new();
        for (partition, _) in self.memory.versions(owner).await? {
            if partition.project_id().is_none() {
                continue;
            }
            match self.of_project(&partition).await {
                Ok(listed) => all.extend(listed),
                // A damaged database does not hide the others.
                Err(error) => {
                    tracing::warn!(%error, project = partition.project_id(), "not listed");
                }
            }
        }
        all.sort_by(|one: &Collection, other| one.name.cmp(&other.name));
        Ok(all)
    }

    /// Returns the collections of one project.
    pub(crate) async fn of_project(
        &self,
        partition: &Partition,
    ) -> Result<Vec<Collection>, ContextError> {
        let branches = self.branches(partition).await?;
        let prefix = name_prefix(partition);
        let entries = branches.entries().into_iter();
        Ok(entries.map(|entry| entry.collection(&prefix)).collect())
    }

    /// Returns the collection of an owner with this name.
    pub(crate) async fn find(
        &self,
        owner: &Owner,
        name: &str,
    ) -> Result<Option<Collection>, ContextError> {
        let Some((partition, branch)) = partition_of(owner, name) else {
            return Ok(None);
        };
        let branches = self.branches(&partition).await?;
        let entry = branches.resolve(branch)?;
        Ok(entry.map(|entry| entry.collection(&name_prefix(&partition))))
    }

    /// Deletes all data of a branch. A collection of another owner is reported as unknown.
    ///
    /// First its index becomes invisible to readers; then the items are deleted, and last the files of the index.
    pub(crate) async fn delete(
        &self,
        owner: &Owner,
        name: &str,
    ) -> Result<RemovedCounts, ContextError> {
        let Some((partition, branch)) = partition_of(owner, name) else {
            return Err(unknown_collection(name));
        };
        let branches = self.branches(&partition).await?;
        let Some(entry) = branches.resolve(branch)? else {
            return Err(unknown_collection(name));
        };
        let index = self.data_dir.open(&partition)?;
        let detached = match (&index, entry.branch) {
            (Some(index), Some(branch)) => index.write(|db| Ok(detach_branch(db, branch)?))?,
            _ => DeletedCounts::default(),
        };
        let items = self
            .memory
            .remove_branch(&partition, entry.label, entry.branch)
            .await?;
        if let Some(index) = index.filter(|_| detached.files > 0) {
            purge_detached(&index)?;
        }
        Ok(RemovedCounts {
            items,
            files: detached.files,
            chunks: detached.chunks,
        })
    }

    async fn branches(&self, partition: &Partition) -> Result<BranchTable, ContextError> {
        let stored = self.memory.branches(partition).await?;
        let indexed = match self.data_dir.open(partition)? {
            Some(index) => index.read(|db| Ok(IndexedBranches::read(db)?))?,
            None => IndexedBranches::default(),
        };
        Ok(BranchTable::new(stored, indexed))
    }
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

/// Returns the partition and the branch that a name refers to; `None` if it belongs to another owner or is not a name.
fn partition_of<'n>(owner: &Owner, name: &'n str) -> Option<(Partition, &'n str)> {
    let parsed = CollectionName::parse(name).ok()?;
    let partition = Partition::project(owner, parsed.project);
    (parsed.owner == owner.id()).then_some((partition, parsed.branch))
}

/// Returns the start of the names of a project's collections.
fn name_prefix(partition: &Partition) -> String {
    let project = partition.project_id().unwrap_or_default();
    format!("{}/project_{project}", partition.owner())
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
fn label(branch: &str) -> String {
    branch.replace('/', "_")
}

/// Branches with data, by label.
#[derive(Default)]
struct BranchTable {
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
struct BranchEntry<'b> {
    label: &'b str,
    /// The last part of the collection name.
    name: &'b str,
    /// The branch, if it has data.
    branch: Option<&'b str>,
    vector_size: u64,
    point_count: u64,
}

/// The indexed branches of a project.
#[derive(Default)]
struct IndexedBranches {
    /// The number of chunks of each branch with an index.
    chunks: Vec<(String, u64)>,
    /// The size of the stored vectors; 0 without vectors.
    vector_size: u64,
}

impl IndexedBranches {
    fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut chunks = Vec::new();
        for counts in [
            "SELECT branch, 0 FROM tree",
            "SELECT tree.branch, count(*) FROM tree JOIN file ON file.tree = tree.id \
             JOIN chunk ON chunk.file = file.id GROUP BY tree.branch",
        ] {
            chunks.extend(query_pairs(db, counts)?);
        }
        let size = "SELECT '', coalesce(\
                    (SELECT length(data) / 4 FROM vector WHERE of = 'chunk' LIMIT 1), 0)";
        let size = query_pairs(db, size)?;
        Ok(Self {
            chunks,
            vector_size: size.first().map_or(0, |(_, size)| *size),
        })
    }
}

impl BranchTable {
    fn new(stored: StoredBranches, indexed: IndexedBranches) -> Self {
        let mut branches = Self::default();
        for (label, size) in stored.collections {
            branches.labels.entry(label).or_default().vector_size = Some(size);
        }
        for (branch, count) in stored.items.into_iter().chain(indexed.chunks) {
            let label = branches.labels.entry(label(&branch)).or_default();
            *label.points.entry(branch).or_default() += count;
        }
        branches.measured_size = match indexed.vector_size {
            0 => stored.vector_size,
            size => size,
        };
        branches
    }

    /// Returns all collections, ordered by label and branch.
    fn entries(&self) -> Vec<BranchEntry<'_>> {
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
    fn resolve(&self, name: &str) -> Result<Option<BranchEntry<'_>>, ContextError> {
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
    fn collection(&self, prefix: &str) -> Collection {
        Collection {
            name: format!("{prefix}/{}", self.name),
            vector_size: self.vector_size,
            point_count: self.point_count,
        }
    }
}

fn query_pairs(db: &Connection, select: &str) -> rusqlite::Result<Vec<(String, u64)>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()));
    db.prepare_cached(select)?.query_map([], pair)?.collect()
}
