//! Foreign test data, which is not ours to commit.

use std::path::PathBuf;

/// Returns the folder that `TURNBUCKLE_DATA` names; without it says that the check is not run.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let Some(root) = std::env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return None;
    };
    Some(PathBuf::from(root).join(name))
}
