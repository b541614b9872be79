//! Scans the databases of an owner for changes.

use std::{collections::HashMap, fs::Metadata, path::Path, time::SystemTime};

use crate::{
    ContextError, Database, Owner, OwnershipPolicy,
    app_state::AppState,
    mcp::{
        display::{one_line, sanitize},
        resources,
    },
    memory,
    memory::{ItemKind, MemoryItem},
    storage::{collections, collections::Collection, lookup},
};

/// Maximum number of listed checkpoints and remediations per project.
const MAX_ITEMS_PER_KIND: usize = 20;
/// Maximum number of published skills.
const MAX_SKILLS: usize = 500;
/// Name of the shared database.
const SHARED: &str = "shared";

/// The resources of one database, as of the last scan.
pub(super) struct FileSnapshot {
    stamp: FileStamp,
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

/// Modification time and size of a database and of its WAL.
type FileStamp = [Option<(SystemTime, u64)>; 2];

/// Scans the databases of an owner; unchanged ones keep their snapshot.
pub(super) fn scan(
    state: &AppState,
    owner: &Owner,
    mut before: HashMap<String, FileSnapshot>,
) -> Result<HashMap<String, FileSnapshot>, ContextError> {
    let folder = state.data_dir().path().join(owner.id());
    let mut databases = state.data_dir().project_ids(owner)?;
    databases.push(SHARED.to_owned());
    let mut now = HashMap::new();
    for name in databases {
        // Taken before reading, so that the next scan sees concurrent writes.
        let stamp = stamp(&folder.join(format!("{name}.db")));
        let known = before.remove(&name);
        let snapshot = match known {
            Some(snapshot) if snapshot.stamp == stamp => snapshot,
            _ => match read(state, owner, &name) {
                Ok(Some((resources, skills))) => FileSnapshot {
                    stamp,
                    resources,
                    skills,
                },
                Ok(None) => continue,
                // An unreadable database does not hide the others; the tools report the error.
                Err(error) => {
                    tracing::warn!(%error, name, "not listed");
                    continue;
                }
            },
        };
        now.insert(name, snapshot);
    }
    Ok(now)
}

type DatabaseResources = (Vec<ListedResource>, Vec<MemoryItem>);

fn read(
    state: &AppState,
    owner: &Owner,
    name: &str,
) -> Result<Option<DatabaseResources>, ContextError> {
    let data_dir = state.data_dir();
    if name == SHARED {
        let Some(shared) = data_dir.open_shared_if_exists(owner)? else {
            return Ok(None);
        };
        let skills = match state.ownership() {
            OwnershipPolicy::Single(_) => {
                memory::list(&shared, ItemKind::Skill, MAX_SKILLS, None)?.items
            }
            // The skills extension shows the same skills to every caller, so they are not published.
            OwnershipPolicy::PerPrincipal => Vec::new(),
        };
        let skills = skills
            .into_iter()
            .map(|item| state.redact_item(item))
            .collect();
        return Ok(Some((
            newest(state, &shared, ItemKind::Remediation)?,
            skills,
        )));
    }
    let Some(database) = data_dir.open_project_by_id(owner, name)? else {
        return Ok(None);
    };
    let mut resources = newest(state, &database, ItemKind::Checkpoint)?;
    resources.extend(newest(state, &database, ItemKind::Remediation)?);
    resources.extend(collections_of(&database, owner, name)?);
    Ok(Some((resources, Vec::new())))
}

fn newest(
    state: &AppState,
    database: &Database,
    kind: ItemKind,
) -> Result<Vec<ListedResource>, ContextError> {
    let items = memory::list(database, kind, MAX_ITEMS_PER_KIND, None)?.items;
    let entry = |item: MemoryItem| ListedResource {
        uri: resources::item_uri(kind, &item.id),
        title: one_line(item.headline(), 100),
        mime_type: "text/markdown",
        target: ResourceTarget::Item(kind, item.id.clone()),
        version: item.updated.unsigned_abs(),
        name: item.id,
    };
    Ok(items
        .into_iter()
        .map(|item| entry(state.redact_item(item)))
        .collect())
}

fn collections_of(
    database: &Database,
    owner: &Owner,
    project: &str,
) -> Result<Vec<ListedResource>, ContextError> {
    let all = collections::list_project(database, owner, project)?;
    let root = lookup::root(database)?.unwrap_or_default();
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

fn stamp(file: &Path) -> FileStamp {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let of = |metadata: Metadata| Some((metadata.modified().ok()?, metadata.len()));
    let stamp_of = |path: &Path| path.metadata().ok().and_then(of);
    [stamp_of(file), stamp_of(Path::new(&log))]
}
