//! Scans the partitions of an owner for changes.

use std::collections::HashMap;

use crate::{
    ContextError, Owner, OwnershipPolicy,
    app_state::AppState,
    mcp::{
        display::{one_line, sanitize},
        resources,
    },
    memory::{ItemKind, MemoryItem},
    memory_store::{Partition, PartitionVersion},
    storage::collections::Collection,
};

/// Maximum number of listed checkpoints and remediations per project.
const MAX_ITEMS_PER_KIND: usize = 20;
/// Maximum number of published skills.
const MAX_SKILLS: usize = 500;

/// The resources of the partitions of an owner, as of the last scan.
pub(super) type PartitionSnapshots = HashMap<Partition, PartitionSnapshot>;

/// The resources of one partition, as of the last scan.
pub(super) struct PartitionSnapshot {
    version: PartitionVersion,
    pub(super) resources: Vec<ListedResource>,
    pub(super) skills: Vec<MemoryItem>,
}

/// A resource to list.
pub(super) struct ListedResource {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) mime_type: &'static str,
    pub(super) target: ResourceTarget,
    /// Changes with the contents; greater is newer.
    pub(super) version: u64,
}

/// The object that a resource refers to.
#[derive(Clone)]
pub(super) enum ResourceTarget {
    Item(ItemKind, String),
    Collection(String),
}

/// Scans the partitions of an owner; unchanged ones keep their snapshot.
pub(super) async fn scan(
    state: &AppState,
    owner: &Owner,
    mut before: PartitionSnapshots,
) -> Result<PartitionSnapshots, ContextError> {
    let mut now = HashMap::new();
    // The versions are read before the data, so that the next scan sees concurrent writes.
    for (partition, version) in state.memory().versions(owner).await? {
        let snapshot = match before.remove(&partition) {
            Some(snapshot) if snapshot.version == version => snapshot,
            _ => match read(state, &partition).await {
                Ok((resources, skills)) => PartitionSnapshot {
                    version,
                    resources,
                    skills,
                },
                // An unreadable database does not hide the others; the tools report the error.
                Err(error) => {
                    tracing::warn!(%error, project = partition.project_id(), "not listed");
                    continue;
                }
            },
        };
        now.insert(partition, snapshot);
    }
    Ok(now)
}

type PartitionResources = (Vec<ListedResource>, Vec<MemoryItem>);

async fn read(state: &AppState, partition: &Partition) -> Result<PartitionResources, ContextError> {
    if partition.project_id().is_none() {
        let skills = match state.ownership() {
            OwnershipPolicy::Single(_) => {
                let skills = state
                    .memory()
                    .list(partition, ItemKind::Skill, None, MAX_SKILLS);
                skills.await?
            }
            // The skills extension shows the same skills to every caller, so they are not published.
            OwnershipPolicy::PerPrincipal => Vec::new(),
        };
        let skills = skills
            .into_iter()
            .map(|item| state.redact_item(item))
            .collect();
        return Ok((
            newest(state, partition, ItemKind::Remediation).await?,
            skills,
        ));
    }
    let mut resources = newest(state, partition, ItemKind::Checkpoint).await?;
    resources.extend(newest(state, partition, ItemKind::Remediation).await?);
    resources.extend(collections_of(state, partition).await?);
    Ok((resources, Vec::new()))
}

async fn newest(
    state: &AppState,
    partition: &Partition,
    kind: ItemKind,
) -> Result<Vec<ListedResource>, ContextError> {
    let items = state
        .memory()
        .list(partition, kind, None, MAX_ITEMS_PER_KIND);
    let entry = |item: MemoryItem| ListedResource {
        uri: resources::item_uri(kind, &item.id),
        title: one_line(item.headline(), 100),
        mime_type: "text/markdown",
        target: ResourceTarget::Item(kind, item.id.clone()),
        version: item.updated.unsigned_abs(),
        name: item.id,
    };
    let items = items.await?.into_iter();
    Ok(items.map(|item| entry(state.redact_item(item))).collect())
}

async fn collections_of(
    state: &AppState,
    partition: &Partition,
) -> Result<Vec<ListedResource>, ContextError> {
    let all = state.collections().of_project(partition).await?;
    let root = state.memory().root(partition).await?.unwrap_or_default();
    let entry = |one: Collection| ListedResource {
        uri: resources::collection_uri(&one.name),
        title: sanitize(&root).into_owned(),
        mime_type: "application/json",
        // Collections are listed before items.
        version: u64::MAX - one.point_count,
        name: sanitize(&one.name).into_owned(),
        target: ResourceTarget::Collection(one.name),
    };
    Ok(all.into_iter().map(entry).collect())
}
