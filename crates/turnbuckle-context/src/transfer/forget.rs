//! Forgetting, so that nothing is left.

use super::{Found, Part, leftovers, places};
use crate::database::now;
use crate::memory::Kind;
use crate::pending_forget::{Pending, forget_items};
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
    /// Whether no trace is left in the files. Another process that reads or imports at the same time can delay that.
    pub traceless: bool,
}

/// Forgets, so that nothing of it is left in the files.
///
/// First it removes what killed imports left, and finishes what a killed forget began. A server that runs meanwhile sees the
/// change; one that holds a file open that was removed goes on with a new one.
pub fn forget(library: &Library, owner: &Owner, what: &Forget) -> Result<Forgotten, ContextError> {
    let is_clean = leftovers::remove(&library.folder().join(owner.id()));
    library.finish_forgetting(owner)?;
    let mut forgotten = match what {
        Forget::Item(id) => {
            let found = places(library, owner, &Part::Everything)?;
            let forgotten = delete(&found, &Pending::Item(id.clone()))?;
            if forgotten.items == 0 {
                // It may be in what could not be read.
                let missing = || ContextError::missing(format!("item `{id}`"));
                return Err(found.damaged.into_iter().next().unwrap_or_else(missing));
            }
            forgotten
        }
        Forget::Items { part, kind, before } => {
            let found = places(library, owner, part)?;
            let pending = Pending::Items {
                kind: *kind,
                // What is saved from now on is not meant, also if another process finishes this.
                before: before.unwrap_or_else(|| now().saturating_add(1)),
            };
            let forgotten = delete(&found, &pending)?;
            // What can be forgotten is forgotten before anybody hears of what cannot.
            match found.damaged.into_iter().next() {
                Some(error) => return Err(error),
                None => forgotten,
            }
        }
        Forget::All(part) => remove(library, owner, part)?,
    };
    forgotten.traceless &= is_clean;
    Ok(forgotten)
}

/// Deletes items, and the traces of those that are gone.
fn delete(found: &Found, pending: &Pending) -> Result<Forgotten, ContextError> {
    let mut forgotten = Forgotten {
        traceless: true,
        ..Forgotten::default()
    };
    for place in &found.places {
        let erased = forget_items(&place.database, pending)?;
        forgotten.items += erased.items;
        forgotten.traceless &= erased.traceless;
    }
    Ok(forgotten)
}

fn remove(library: &Library, owner: &Owner, part: &Part) -> Result<Forgotten, ContextError> {
    let (projects, shared) = match part {
        Part::Everything => (library.projects(owner)?, true),
        Part::Project(id) => (vec![id.clone()], false),
        Part::Shared => (Vec::new(), true),
    };
    let files = library.remove_all(owner, &projects, shared)?;
    let traceless = match part {
        Part::Everything => library.remove_owner(owner)?,
        _ => true,
    };
    match part {
        Part::Project(id) if files == 0 => Err(ContextError::missing(format!("project `{id}`"))),
        _ => Ok(Forgotten {
            items: 0,
            files,
            traceless,
        }),
    }
}
