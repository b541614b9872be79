//! The context server: persistent memory and repository search.
//!
//! [`ContextServer`] builds the server, and [`transfer`] exports, imports, inspects and deletes its data. The feature `evaluation`
//! also exposes the modules that measurements and the tests of this crate use, without a guarantee of stability.

mod app_state;
#[allow(unreachable_pub, dead_code, reason = "`evaluation` exposes it")]
mod code_index;
#[allow(unreachable_pub, reason = "`evaluation` exposes it")]
mod code_search;
pub mod embedding;
mod error;
mod mcp;
#[allow(unreachable_pub, dead_code, reason = "`evaluation` exposes it")]
mod memory;
#[allow(unreachable_pub, dead_code, reason = "`evaluation` exposes it")]
mod memory_store;
mod owner;
mod project;
mod redact;
mod server;
mod storage;
mod text;
pub mod transfer;

pub use error::{ContextError, DatabaseErrorKind};
pub use memory::{HalfLife, ItemKind};
#[cfg(feature = "postgres")]
pub use memory_store::postgres;
pub use memory_store::{MemoryStore, MemoryStoreError};
pub use owner::{Owner, OwnershipPolicy};
pub use project::Project;
pub use redact::{RedactedText, Redactor, SecretFinding};
pub use server::{ContextServer, ToolSet};
pub use storage::{data_dir::DataDir, database::Database};

#[cfg(feature = "evaluation")]
pub mod evaluation {
    //! Index, searches and memory without the MCP interface, for measurements and tests.

    /// The index of a repository.
    pub mod code_index {
        pub use crate::code_index::*;
    }

    /// Search in an indexed repository.
    pub mod code_search {
        pub use crate::code_search::*;
    }

    /// The data of one branch, by name.
    pub mod collections {
        pub use crate::memory::evaluation::collections::*;
    }

    /// Saving and searching of items.
    pub mod memory {
        pub use crate::memory::{
            evaluation::{
                delete, find, find_operation, find_skill, list, record_use, save, search,
            },
            *,
        };
    }

    /// The trait for stores of memory, SQLite behind it, and the tests for all stores.
    pub mod memory_store {
        pub use crate::memory_store::*;
    }
}
