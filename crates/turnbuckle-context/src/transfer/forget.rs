//! Forgetting, so that nothing is left.

use rusqlite::ToSql;

use super::{Found, Part, places};
use crate::memory::{Kind, erase};
use crate::{ContextError, Library, Owner};

/// What shall be forgotten.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Forget {
    /// One thing, by its id, wherever it is.
    Item(String),
    /// The things of one kind, or of all, that were last saved before a time, or whenever.
    Items {
        /// Where.
        part: Part,
        /// Only this kind.
        kind: Option<Kind>,
        /// Only what was last saved before; milliseconds since 1970.
        before: Option<i64>,
    },
    /// Whole files, with memory and index.
    All(Part),
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Forgotten {
    /// Checkpoints, remediations and skills.
    pub items: u64,
    /// Database files that were removed altogether.
    pub files: u64,
    /// Whether no trace is left in the files. Another process that reads at the same time can delay that.
    pub traceless: bool,
}

/// Forgets, so that nothing of it is left in the files.
///
/// A server that runs meanwhile sees the change; one that holds a file open that was removed goes on with a new one.
pub fn forget(library: &Library, owner: &Owner, what: &Forget) -> Result<Forgotten, ContextError> {
    match what {
        Forget::Item(id) => {
            let found = places(library, owner, &Part::Everything)?;
            let forgotten = delete(&found, "id = :wanted", &[(":wanted", id)])?;
            if forgotten.items == 0 {
                // It may be in what could not be read.
                let missing = || ContextError::missing(format!("item `{id}`"));
                return Err(found.damaged.into_iter().next().unwrap_or_else(missing));
            }
            Ok(forgotten)
        }
        Forget::Items { part, kind, before } => {
            let found = places(library, owner, part)?;
            let forgotten = delete(
                &found,
                "kind = coalesce(:kind, kind) AND updated < coalesce(:before, updated + 1)",
                &[(":kind", &kind.map(Kind::as_str)), (":before", before)],
            )?;
            // What can be forgotten is forgotten before anybody hears of what cannot.
            found.damaged.into_iter().next().map_or(Ok(forgotten), Err)
        }
        Forget::All(part) => remove(library, owner, part),
    }
}

/// Deletes items, and the traces of those that are gone.
fn delete(
    found: &Found,
    condition: &str,
    parameters: &[(&str, &dyn ToSql)],
) -> Result<Forgotten, ContextError> {
    let mut forgotten = Forgotten {
        traceless: true,
        ..Forgotten::default()
    };
    for place in &found.places {
        let items = erase(&place.database, condition, parameters)?;
        if items > 0 {
            forgotten.items += items;
            forgotten.traceless &= place.database.scrub()?;
        }
    }
    Ok(forgotten)
}

fn remove(library: &Library, owner: &Owner, part: &Part) -> Result<Forgotten, ContextError> {
    let mut forgotten = Forgotten {
        traceless: true,
        ..Forgotten::default()
    };
    let projects = match part {
        Part::Everything => library.projects(owner)?,
        Part::Project(id) => vec![id.clone()],
        Part::Shared => Vec::new(),
    };
    for id in &projects {
        forgotten.files += u64::from(library.remove(owner, id)?);
    }
    if !matches!(part, Part::Project(_)) {
        forgotten.files += u64::from(library.remove_shared(owner)?);
    }
    if matches!(part, Part::Everything) {
        library.remove_owner(owner)?;
    }
    match part {
        Part::Project(id) if forgotten.files == 0 => {
            Err(ContextError::missing(format!("project `{id}`")))
        }
        _ => Ok(forgotten),
    }
}
