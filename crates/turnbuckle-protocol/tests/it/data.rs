//! Third-party test data that is not part of the repository.

use std::path::PathBuf;

/// Returns the folder that `TURNBUCKLE_DATA` names; without it prints that the check is skipped.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return None;
    };
    Some(PathBuf::from(root).join(name))
}
