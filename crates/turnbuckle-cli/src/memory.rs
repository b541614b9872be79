//! Where the context server keeps its memory on this machine, and whose it is.

use std::path::PathBuf;

use turnbuckle_context::Owner;

use crate::environment::Environment;
use crate::failure::{Failure, Result};

/// Returns the folder that memory is kept in: the one that was named, or else the user's.
pub(crate) fn folder(named: Option<PathBuf>, environment: &Environment) -> Result<PathBuf> {
    let usual = || Some(environment.data_folder()?.join("turnbuckle"));
    named.or_else(usual).ok_or_else(|| {
        Failure::not_asked("there is no folder for the user's data")
            .hint("name one with --data DIR")
    })
}

/// Returns the owner of what the user of this process keeps.
pub(crate) fn owner(environment: &Environment) -> Owner {
    Owner::user(&environment.user)
}
