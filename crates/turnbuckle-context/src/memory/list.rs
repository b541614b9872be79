//! Looking things up without a question: the newest, by id, by name.

use super::{Item, Kind};
use crate::{ContextError, Database};

/// Some things, and how to get more.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Newest first.
    pub items: Vec<Item>,
    /// Where the next page begins, if there is more.
    pub next: Option<String>,
}

/// Lists the newest things of a kind, from where another page ended. What is saved meanwhile shifts nothing.
pub fn list(
    database: &Database,
    kind: Kind,
    limit: usize,
    after: Option<&str>,
) -> Result<Page, ContextError> {
    let _ = (database, kind, limit, after);
    Err(ContextError::refused("not built yet"))
}

/// Finds one thing by its id.
pub fn find(database: &Database, id: &str) -> Result<Option<Item>, ContextError> {
    let _ = (database, id);
    Err(ContextError::refused("not built yet"))
}

/// Finds a skill by its name; case, spaces and punctuation make no difference.
pub fn find_skill(database: &Database, name: &str) -> Result<Option<Item>, ContextError> {
    let _ = (database, name);
    Err(ContextError::refused("not built yet"))
}

/// Removes one thing. Says whether it was there.
pub fn remove(database: &Database, id: &str) -> Result<bool, ContextError> {
    let _ = (database, id);
    Err(ContextError::refused("not built yet"))
}

/// Counts one more use of each of these things. Ids that are not there are passed over.
pub fn used(database: &Database, ids: &[&str]) -> Result<(), ContextError> {
    let _ = (database, ids);
    Err(ContextError::refused("not built yet"))
}
