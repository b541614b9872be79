//! What is in the files of an owner, as far as it changed since the last look.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use crate::answer::{one_line, visible};
use crate::collections::{self, Collection};
use crate::desk::Desk;
use crate::memory::{self, Item, Kind};
use crate::{ContextError, Database, Owner, Owners, known, resources};

/// Checkpoints and remediations of one project that are listed.
const MOST_OF_A_KIND: usize = 20;
/// Skills that are published.
const MOST_SKILLS: usize = 500;
/// The place of what projects share.
const SHARED: &str = "shared";

/// One file, as it was at the last look.
pub(super) struct Seen {
    stamp: Stamp,
    pub(super) entries: Vec<Entry>,
    pub(super) skills: Vec<Item>,
}

/// A resource to list.
pub(super) struct Entry {
    pub(super) uri: String,
    pub(super) name: String,
    pub(super) title: String,
    pub(super) mime_type: &'static str,
    pub(super) target: Target,
    /// Changes with the contents; newer ones are greater.
    pub(super) version: u64,
}

/// What a resource gives when it is read.
#[derive(Clone)]
pub(super) enum Target {
    Item(Kind, String),
    Collection(String),
}

/// When a file was last written, with what waits to be written into it, and how long both are.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// Looks at the files of an owner; those that are as they were at the last look keep what was seen.
pub(super) fn look(
    desk: &Desk,
    owner: &Owner,
    mut before: HashMap<String, Seen>,
) -> Result<HashMap<String, Seen>, ContextError> {
    let folder = desk.library().folder().join(owner.id());
    let mut places = desk.library().projects(owner)?;
    places.push(SHARED.to_owned());
    let mut now = HashMap::new();
    for place in places {
        // Taken first: what is written while we read is seen by the next look.
        let stamp = stamp(&folder.join(format!("{place}.db")));
        let known = before.remove(&place);
        let seen = match known {
            Some(seen) if seen.stamp == stamp => seen,
            _ => match read(desk, owner, &place) {
                Ok(Some((entries, skills))) => Seen {
                    stamp,
                    entries,
                    skills,
                },
                Ok(None) => continue,
                // A file that cannot be read hides no other; its own tools say what is wrong with it.
                Err(error) => {
                    tracing::warn!(%error, place, "not listed");
                    continue;
                }
            },
        };
        now.insert(place, seen);
    }
    Ok(now)
}

type Read = (Vec<Entry>, Vec<Item>);

fn read(desk: &Desk, owner: &Owner, place: &str) -> Result<Option<Read>, ContextError> {
    let library = desk.library();
    if place == SHARED {
        let Some(shared) = library.known_shared(owner)? else {
            return Ok(None);
        };
        let skills = match desk.owners() {
            Owners::One(_) => memory::list(&shared, Kind::Skill, MOST_SKILLS, None)?.items,
            // The skills extension shows the same to everyone, so theirs are not published.
            Owners::ByPrincipal => Vec::new(),
        };
        let skills = skills.into_iter().map(|item| desk.clean(item)).collect();
        return Ok(Some((newest(desk, &shared, Kind::Remediation)?, skills)));
    }
    let Some(database) = library.open_id(owner, place)? else {
        return Ok(None);
    };
    let mut entries = newest(desk, &database, Kind::Checkpoint)?;
    entries.extend(newest(desk, &database, Kind::Remediation)?);
    entries.extend(collections_of(&database, owner, place)?);
    Ok(Some((entries, Vec::new())))
}

fn newest(desk: &Desk, database: &Database, kind: Kind) -> Result<Vec<Entry>, ContextError> {
    let items = memory::list(database, kind, MOST_OF_A_KIND, None)?.items;
    let entry = |item: Item| Entry {
        uri: resources::address(kind, &item.id),
        title: one_line(item.headline(), 100),
        mime_type: "text/markdown",
        target: Target::Item(kind, item.id.clone()),
        version: item.updated.unsigned_abs(),
        name: item.id,
    };
    Ok(items
        .into_iter()
        .map(|item| entry(desk.clean(item)))
        .collect())
}

fn collections_of(
    database: &Database,
    owner: &Owner,
    project: &str,
) -> Result<Vec<Entry>, ContextError> {
    let all = collections::of_project(database, owner, project)?;
    let root = known::root(database)?.unwrap_or_default();
    let entry = |one: Collection| Entry {
        uri: resources::collection_address(&one.name),
        title: visible(&root).into_owned(),
        mime_type: "application/json",
        // Listed before what is in them.
        version: u64::MAX - one.point_count,
        name: visible(&one.name).into_owned(),
        target: Target::Collection(one.name),
    };
    Ok(all.into_iter().map(entry).collect())
}

fn stamp(file: &Path) -> Stamp {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    let of = |metadata: Metadata| Some((metadata.modified().ok()?, metadata.len()));
    let look = |path: &Path| path.metadata().ok().and_then(of);
    [look(file), look(Path::new(&log))]
}
