//! How many files and connections this process may have open.

use std::io;

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

/// Returns the limit, if there is one.
pub(super) fn limit() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

/// Returns whether an error says that no descriptor is free, in this process or in all of them.
pub(super) fn are_exhausted(error: &io::Error) -> bool {
    let exhausted = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| exhausted.contains(&code))
}
