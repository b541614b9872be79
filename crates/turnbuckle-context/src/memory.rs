//! Memory: checkpoints of work, remediations of errors, and skills.
//!
//! All texts are redacted before any other processing. Duplicates are stored once. Search results are ranked by how much of the
//! query they contain, by age and by confidence.
//!
//! The functions work on a [`MemoryStore`](crate::memory_store::MemoryStore) and do not depend on its database.

mod candidates;
mod error_fingerprint;
#[cfg(feature = "evaluation")]
pub mod evaluation;
mod item;
mod limits;
mod list;
mod near_duplicates;
mod redact_item;
mod save;
mod score;
mod search;

#[cfg(feature = "evaluation")]
pub use self::error_fingerprint::ErrorFingerprint;
pub use self::{
    error_fingerprint::error_fingerprint,
    item::{ItemKind, MemoryItem, NewItem},
    list::ItemPage,
    near_duplicates::SimilarItem,
    save::{PreparedItem, SaveOutcome},
    search::{HalfLife, MemoryHit, MemoryQuery},
};
pub(crate) use self::{
    item::new_id,
    limits::{ItemSource, validate},
    list::{find_skill, list},
    redact_item::ItemRedactor,
    save::save,
    search::search,
};
