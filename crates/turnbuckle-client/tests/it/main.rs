//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
#[cfg(unix)]
mod child_process;
#[cfg(unix)]
mod child_roles;
mod fake_http;
mod fake_lines;
mod http_hostile;
mod http_own_server;
mod http_peer;
mod http_posting;
mod http_sessions;
mod http_sse;
mod http_streams;
mod listening;
mod own_server;
mod progress;
mod spec_asked;
mod spec_cancellation;
mod spec_envelopes;
mod spec_lifecycle;
mod spec_logging;
mod spec_meta;
mod spec_pagination;
mod spec_progress;
mod spec_versioning;
