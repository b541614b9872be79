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

pub(crate) use clean::Cleaner;
pub(crate) use erase::erase;
pub use item::{Draft, Item, Kind};
pub(crate) use limits::{Source, check};
pub use list::{Page, find, find_skill, list, remove, used};
pub(crate) use names::{ids, titles};
pub use patterns::{Patterns, patterns};
pub(crate) use save::Entry;
pub use save::{Saved, save};
pub use search::{HalfLife, Hit, MemoryQuery, search};
pub use similar::Similar;
pub(crate) use stored::new_id;

/// So many bytes of a text, or a few less: a character is not cut in two.
fn beginning(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
