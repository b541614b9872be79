//! What is remembered: checkpoints of work, remediations of errors, skills.
//!
//! Every text loses its secrets before anything else is done with it. The same thing is kept once. What is found is
//! ranked by how much of the question it answers, how new it is and how sure one was of it.
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

pub use self::{
    error_fingerprint::{ErrorFingerprint, error_fingerprint},
    item::{ItemKind, MemoryItem, NewItem},
    list::{ItemPage, delete, find, find_skill, list, record_use},
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

/// So many bytes of a text, or a few less: a character is not cut in two.
fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
