//! Records the traffic between a client and a server that are connected through this process.
//!
//! [`stdio_relay`] and [`http_relay`] pass bytes on, and give copies to a [`RecordingSink`]. Its queue is bounded: what does
//! not fit is counted as a gap, so that neither a slow disk nor parsing delays a message. A thread turns the copies into
//! entries ([`streams`]) and writes the file.

mod file;
mod host_check;
mod http_relay;
mod sink;
mod stdio_relay;
mod streams;

pub(crate) use file::RecordingFile;
pub(crate) use host_check::HostCheck;
pub(crate) use http_relay::{HttpRelay, bind};
pub(crate) use sink::RecordingSink;
pub(crate) use stdio_relay::{ProgramExit, relay_program};
