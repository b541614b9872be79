//! Saving, so that the same thing is kept once.

use std::collections::BTreeMap;

use super::{Draft, Item, Similar};
use crate::redact::Redactor;
use crate::{ContextError, Database};

/// What came of saving something.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// What is kept now.
    pub item: Item,
    /// Whether it was not there before.
    pub is_new: bool,
    /// What says nearly the same, nearest first. Nothing is merged.
    pub similar_to: Vec<Similar>,
    /// How many secrets were taken out, by the rule that found them.
    pub redacted: BTreeMap<String, u64>,
    /// The completed operation, written in the same transaction; see [`operations`](crate::operations).
    pub operation: String,
}

/// Saves something; it is on the disk when this returns.
///
/// The same thing again (same kind, branch and text) returns the first with `is_new` false: its title, detail, tags and
/// metadata are brought up to date. A skill of the same name is replaced and keeps its id.
pub fn save(database: &Database, redactor: &Redactor, draft: Draft) -> Result<Saved, ContextError> {
    let _ = (database, redactor, draft);
    Err(ContextError::refused("not built yet"))
}
