//! The context server: memory that outlives a conversation, and a way around a repository.

mod answer;
pub mod code;
pub mod collections;
mod database;
mod dense;
mod desk;
pub mod embedding;
mod error;
mod failure;
mod folder;
pub mod fuse;
pub mod index;
mod known;
mod library;
pub mod memory;
pub mod operations;
mod owner;
mod project;
mod prompts;
mod published;
mod redact;
mod resources;
mod server;
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
pub use server::ContextServer;
pub use trace::{Trace, resources as debug_log_resources};
