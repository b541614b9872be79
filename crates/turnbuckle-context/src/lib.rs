//! The context server: memory that outlives a conversation, and a way around a repository.

mod answer;
pub mod collections;
mod database;
mod dense;
mod desk;
#[path = "embedding_stub.rs"]
pub mod embedding;
mod error;
mod failure;
mod known;
mod library;
pub mod memory;
pub mod operations;
mod owner;
mod project;
mod prompts;
mod published;
#[path = "redact_stub.rs"]
pub mod redact;
mod resources;
mod server;
mod tools;
pub mod transfer;

pub use database::Database;
pub use error::{ContextError, Trouble};
pub use library::Library;
pub use owner::{Owner, Owners};
pub use project::Project;
pub use server::ContextServer;
