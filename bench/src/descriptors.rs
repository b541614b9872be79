//! The limit of open descriptors, for this process and the server it starts.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::Failure;

/// Reserved for everything that is not an open call: probes, listeners, HTTP/2 connections, the runtime.
const RESERVE: usize = 500;

/// Raises the soft limit as far as `calls` need and the hard limit allows; returns the number of connections that fit.
pub fn raise(calls: usize) -> Result<usize, Failure> {
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    let needed = ((calls + RESERVE) as u64).min(most);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(needed);
        setrlimit(Resource::Nofile, limit)?;
    }
    let current = limit.current.map_or(usize::MAX, |current| current as usize);
    match current.saturating_sub(RESERVE) {
        0 => Err(format!("only {current} descriptors: raise the hard limit (`ulimit -Hn`)").into()),
        fitting => Ok(fitting),
    }
}
