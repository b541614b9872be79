//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
#[cfg(unix)]
mod child_process;
#[cfg(unix)]
mod child_roles;
mod listening;
mod own_server;
