//! What people do with their data: take it along, bring it back, look at how much it is, have it forgotten.

mod export;
mod forget;
mod import;
mod lines;
mod record;
mod staging;
mod stats;

use std::sync::Arc;

use rusqlite::OptionalExtension as _;

pub use self::export::{Exported, export};
pub use self::forget::{Forget, Forgotten, forget};
pub use self::import::{BadLine, ImportOptions, Imported, import};
pub use self::stats::{PlaceStats, Stats, stats};
use crate::{ContextError, Database, Library, Owner};

/// Which part of an owner's data is meant.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Part {
    /// All projects and what they share.
    #[default]
    Everything,
    /// One project, by its id.
    Project(String),
    /// What projects share.
    Shared,
}

/// A database of an owner.
struct Place {
    /// The id of the project; nothing for what projects share.
    project: Option<String>,
    /// The folder of the project.
    root: Option<String>,
    database: Arc<Database>,
}

/// The databases of a part, what is shared last.
fn places(library: &Library, owner: &Owner, part: &Part) -> Result<Vec<Place>, ContextError> {
    let mut ids = match part {
        Part::Everything => library.projects(owner)?,
        Part::Project(id) => vec![id.clone()],
        Part::Shared => Vec::new(),
    };
    ids.sort();
    let mut places = Vec::new();
    for id in ids {
        let database = library.open_id(owner, &id)?;
        let database = database.ok_or_else(|| ContextError::missing(format!("project `{id}`")))?;
        places.push(Place {
            root: Some(root(&database)?),
            project: Some(id),
            database,
        });
    }
    if !matches!(part, Part::Project(_)) && library.has_shared(owner) {
        places.push(Place {
            project: None,
            root: None,
            database: library.shared(owner)?,
        });
    }
    Ok(places)
}

fn root(database: &Database) -> Result<String, ContextError> {
    let select = "SELECT value FROM about WHERE key = 'root'";
    let root = database.read(|db| {
        let root = db.query_row(select, [], |row| row.get(0));
        Ok(root.optional()?)
    })?;
    Ok(root.unwrap_or_default())
}
