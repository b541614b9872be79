//! What people do with their data: take it along, bring it back, look at how much it is, have it forgotten.

mod export;
mod forget;
mod import;
pub(crate) mod leftovers;
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
use crate::{ContextError, Database, Library, Owner, Trouble};

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
    /// The folder of the project, unless that cannot be read.
    root: Option<String>,
    database: Arc<Database>,
}

/// What could be opened, and what is wrong with the rest.
struct Found {
    /// What is shared comes last.
    places: Vec<Place>,
    damaged: Vec<ContextError>,
}

impl Found {
    /// What is wrong with each file that could not be read.
    fn told(&self) -> Vec<String> {
        self.damaged.iter().map(ToString::to_string).collect()
    }
}

/// The databases of a part. If that is everything, one that is damaged hides no other.
fn places(library: &Library, owner: &Owner, part: &Part) -> Result<Found, ContextError> {
    let mut ids = match part {
        Part::Everything => library.projects(owner)?,
        Part::Project(id) => vec![id.clone()],
        Part::Shared => Vec::new(),
    };
    ids.sort();
    let mut ids: Vec<Option<String>> = ids.into_iter().map(Some).collect();
    if !matches!(part, Part::Project(_)) && library.has_shared(owner) {
        ids.push(None);
    }
    let mut found = Found {
        places: Vec::new(),
        damaged: Vec::new(),
    };
    for id in ids {
        match place(library, owner, id) {
            Ok(place) => found.places.push(place),
            Err(error) if *part != Part::Everything => return Err(error),
            // It was removed since we looked.
            Err(ContextError::Missing(_)) => {}
            Err(error) => found.damaged.push(error),
        }
    }
    Ok(found)
}

fn place(library: &Library, owner: &Owner, project: Option<String>) -> Result<Place, ContextError> {
    let Some(id) = project else {
        return Ok(Place {
            project: None,
            root: None,
            database: library.shared(owner)?,
        });
    };
    let database = library.open_id(owner, &id)?;
    let database = database.ok_or_else(|| ContextError::missing(format!("project `{id}`")))?;
    Ok(Place {
        root: match root(&database) {
            // One damaged page hides nothing else.
            Err(ContextError::Storage {
                trouble: Trouble::Corrupt,
                ..
            }) => None,
            root => Some(root?),
        },
        project: Some(id),
        database,
    })
}

fn root(database: &Database) -> Result<String, ContextError> {
    let select = "SELECT value FROM about WHERE key = 'root'";
    let root = database.read(|db| {
        let root = db.query_row(select, [], |row| row.get(0));
        Ok(root.optional()?)
    })?;
    Ok(root.unwrap_or_default())
}
