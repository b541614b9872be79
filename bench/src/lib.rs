//! Shared by the benchmarks: the messages they send, the responses they read, the server they start, the limit.
//!
//! Nothing here uses Turnbuckle. The drivers use a server as any client does: a process, a pipe, a socket.

pub mod callgrind;
pub mod client;
pub mod connection;
pub mod cores;
pub mod descriptors;
pub mod goals;
pub mod limit;
pub mod message;
pub mod options;
pub mod process;
pub mod response;
pub mod sessions;
pub mod streams;
pub mod wire;
pub mod work;

/// The reason why a benchmark could not run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
