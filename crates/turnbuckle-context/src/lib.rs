//! The context server: memory that outlives a conversation, and a way around a repository.

mod database;
mod error;
pub mod index;
mod library;
mod owner;
mod project;

pub use database::Database;
pub use error::{ContextError, Trouble};
pub use library::Library;
pub use owner::{Owner, Owners};
pub use project::Project;
