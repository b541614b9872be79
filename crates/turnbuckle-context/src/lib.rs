//! The context server: memory that outlives a conversation, and search in repositories.

mod app_state;
pub mod code_index;
pub mod code_search;
pub mod embedding;
mod error;
mod mcp;
pub mod memory;
mod owner;
mod project;
mod redact;
mod server;
mod storage;
pub mod text;
pub mod transfer;

pub use error::{ContextError, DatabaseErrorKind};
pub use mcp::{
    call_log::{CallLog, resources as debug_log_resources},
    tools::debug::all as debug_tools,
};
pub use owner::{Owner, OwnershipPolicy};
pub use project::Project;
pub use redact::{RedactedText, Redactor, SecretFinding};
pub use server::ContextServer;
pub use storage::{collections, data_dir::DataDir, database::Database, operations};
