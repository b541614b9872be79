//! Memory: checkpoints of work, remediations of errors, and skills.
//!
//! All texts are redacted before any other processing. Duplicates are stored once. Search results are ranked by how much of the
//! query they contain, by age and by confidence.
//!
//! All functions work on a [`Database`](crate::Database) and block; asynchronous callers use a blocking thread.

mod error_fingerprint;
mod item;
mod limits;
mod list;
mod near_duplicates;
mod postings;
mod redact_item;
pub(crate) mod rows;
mod save;
mod score;
mod search;

#[cfg(feature = "evaluation")]
pub use self::{
    error_fingerprint::ErrorFingerprint,
    list::{ItemPage, delete, record_use},
};
pub use self::{
    error_fingerprint::error_fingerprint,
    item::{ItemKind, MemoryItem, NewItem},
    list::{find, find_skill, list},
    near_duplicates::SimilarItem,
    save::{SaveOutcome, save},
    search::{HalfLife, MemoryHit, MemoryQuery, search},
};
pub(crate) use self::{
    limits::{ItemSource, validate},
    list::{ids_with_prefix, titles},
    redact_item::ItemRedactor,
    rows::{delete_where, new_id},
    save::PreparedItem,
};
