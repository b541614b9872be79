//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
#[cfg(unix)]
mod child_again;
#[cfg(unix)]
mod child_process;
#[cfg(unix)]
mod child_roles;
mod fake_http;
mod fake_lines;
mod listening;
mod own_server;
mod progress;
mod spec_asked;
mod spec_cancellation;
mod spec_completion;
mod spec_content;
mod spec_envelopes;
mod spec_lifecycle;
mod spec_logging;
mod spec_meta;
mod spec_offers;
mod spec_pagination;
mod spec_progress;
mod spec_versioning;
