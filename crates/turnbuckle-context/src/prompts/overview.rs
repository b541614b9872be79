//! What an index says of a repository at a glance.

use std::path::Path;

use crate::{ContextError, Database};

pub(super) fn of(_: &Database, _: &Path) -> Result<Option<String>, ContextError> {
    Ok(None)
}
