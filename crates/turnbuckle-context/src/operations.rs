//! What was asked for and may be asked about later.

use serde_json::Value;

use crate::{ContextError, Database};

/// Something that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// `op_` and 16 hexadecimal digits.
    pub id: String,
    /// The tool that was called.
    pub kind: String,
    /// How far it is.
    pub status: Status,
    /// What came of it.
    pub result: Option<Value>,
    /// Why nothing came of it.
    pub error: Option<String>,
    /// Milliseconds since 1970.
    pub created: i64,
    /// Milliseconds since 1970.
    pub updated: i64,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not begun.
    Pending,
    /// Being done.
    Running,
    /// Done.
    Completed,
    /// Given up.
    Failed,
}

/// Notes that something is being done; returns the id of the operation.
pub fn begin(database: &Database, kind: &str) -> Result<String, ContextError> {
    let _ = (database, kind);
    Err(ContextError::refused("not built yet"))
}

/// Notes that it is still being done.
pub fn touch(database: &Database, id: &str) -> Result<(), ContextError> {
    let _ = (database, id);
    Err(ContextError::refused("not built yet"))
}

/// Notes what came of it.
pub fn finish(database: &Database, id: &str, result: &Value) -> Result<(), ContextError> {
    let _ = (database, id, result);
    Err(ContextError::refused("not built yet"))
}

/// Notes why nothing came of it.
pub fn fail(database: &Database, id: &str, error: &str) -> Result<(), ContextError> {
    let _ = (database, id, error);
    Err(ContextError::refused("not built yet"))
}

/// Notes something that is done already, in one step; returns the id of the operation.
pub fn completed(database: &Database, kind: &str, result: &Value) -> Result<String, ContextError> {
    let _ = (database, kind, result);
    Err(ContextError::refused("not built yet"))
}

/// Finds an operation by its id.
pub fn find(database: &Database, id: &str) -> Result<Option<Operation>, ContextError> {
    let _ = (database, id);
    Err(ContextError::refused("not built yet"))
}
