//! What is remembered: checkpoints of work, remediations of errors, skills.
//!
//! Every text loses its secrets before anything else is done with it. The same thing is kept once. What is found is
//! ranked by how much of the question it answers, how new it is and how sure one was of it.
//!
//! All functions work on a [`Database`](crate::Database) and block; asynchronous callers use a blocking thread.

mod item;
mod list;
mod patterns;
mod save;
mod search;
mod similar;

pub use item::{Draft, Item, Kind};
pub use list::{Page, find, find_skill, list, remove, used};
pub use patterns::{Patterns, patterns};
pub use save::{Saved, save};
pub use search::{Dense, HalfLife, Hit, MemoryQuery, search};
pub use similar::Similar;
