//! Child processes, their standard streams, and Unix sockets.

#[cfg(unix)]
mod child_roles;
#[cfg(unix)]
mod child_servers;
mod malformed_output;
mod probe;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod restart;
#[cfg(unix)]
mod server_process;
#[cfg(unix)]
mod unix_socket;
mod wire;
