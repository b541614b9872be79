//! What a server does, seen from the other end of a transport.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod http_caller;
mod http_modern;
mod http_sessions;
mod lines_ending;
mod lines_eras;
mod lines_messages;
mod lines_peer;
mod lines_running;
mod older_peers;
