//! What is remembered: checkpoints of work, remediations of errors, skills.
//!
//! Every text loses its secrets before anything else is done with it. The same thing is kept once. What is found is
//! ranked by how much of the question it answers, how new it is and how sure one was of it.
//!
//! All functions work on a [`Database`](crate::Database) and block; asynchronous callers use a blocking thread.

mod clean;
mod cursor;
mod dense;
mod erase;
mod item;
mod limits;
mod list;
mod names;
mod patterns;
mod postings;
mod save;
mod score;
mod search;
mod similar;
pub(crate) mod stored;

pub(crate) use clean::ItemRedactor;
pub(crate) use erase::delete_where;
pub use item::{ItemKind, MemoryItem, NewItem};
pub(crate) use limits::{ItemSource, validate};
pub use list::{ItemPage, delete, find, find_skill, list, record_use};
pub(crate) use names::{ids_with_prefix, titles};
pub use patterns::{ErrorFingerprint, error_fingerprint};
pub(crate) use save::PreparedItem;
pub use save::{SaveOutcome, save};
pub use search::{HalfLife, MemoryHit, MemoryQuery, search};
pub use similar::SimilarItem;
pub(crate) use stored::new_id;

/// So many bytes of a text, or a few less: a character is not cut in two.
fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
