//! The context server: memory that outlives a conversation, and a way around a repository.

pub mod collections;
mod database;
mod error;
mod library;
pub mod memory;
pub mod operations;
mod owner;
mod project;
#[path = "redact_stub.rs"]
pub mod redact;
pub mod transfer;

pub use database::Database;
pub use error::{ContextError, Trouble};
pub use library::Library;
pub use owner::{Owner, Owners};
pub use project::Project;
