//! The context server: memory that outlives a conversation, and a way around a repository.

mod database;
mod error;
mod library;
mod owner;
mod project;
pub mod tools;
mod trace;

pub use database::Database;
pub use error::{ContextError, Trouble};
pub use library::Library;
pub use owner::{Owner, Owners};
pub use project::Project;
pub use trace::{Trace, resources as debug_log_resources};
