//! The context server: memory that outlives a conversation, and a way around a repository.

pub mod code;
pub mod collections;
mod database;
mod error;
pub mod fuse;
pub mod index;
mod library;
pub mod memory;
pub mod operations;
mod owner;
mod project;
mod redact;
pub mod tools;
mod trace;
pub mod transfer;
pub mod words;

pub use database::Database;
pub use error::{ContextError, Trouble};
pub use library::Library;
pub use owner::{Owner, Owners};
pub use project::Project;
pub use redact::{Finding, Redacted, Redactor};
pub use trace::{Trace, resources as debug_log_resources};
