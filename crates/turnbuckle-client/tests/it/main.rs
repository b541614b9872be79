//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
#[cfg(unix)]
mod child_process;
#[cfg(unix)]
mod child_roles;
#[cfg(unix)]
mod child_servers;
mod listening;
mod own_server;
mod scripted;
#[cfg(unix)]
mod stdio_child;
mod stdio_hostile;
mod stdio_probe;
mod stdio_wire;
#[cfg(unix)]
mod unix;
