//! What the benches share: the messages they send, the answers they read, the server they start.
//!
//! Nothing here uses Turnbuckle. The drivers see a server as any client does: a process, a pipe, a socket.

pub mod callgrind;
pub mod client;
pub mod connection;
pub mod descriptors;
pub mod goals;
pub mod message;
pub mod options;
pub mod place;
pub mod process;
pub mod response;
pub mod sessions;
pub mod streams;
pub mod wire;
pub mod work;

/// Why a bench could not be carried out.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
