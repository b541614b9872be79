//! Tests of the client through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod caching;
mod calls;
#[cfg(unix)]
mod child_again;
#[cfg(unix)]
mod child_process;
#[cfg(unix)]
mod child_roles;
#[cfg(unix)]
mod child_servers;
mod elicitation;
mod eras;
mod fake_http;
mod fake_lines;
mod http_asked;
mod http_authorization;
mod http_authorized_streams;
mod http_hostile;
mod http_listening;
mod http_logins;
mod http_names;
mod http_opening;
mod http_own_guard;
mod http_own_server;
mod http_parameters;
mod http_peer;
mod http_posting;
mod http_reissue;
mod http_renewal;
mod http_sessions;
mod http_sse;
mod http_streams;
mod http_tasks;
mod let_go;
mod listeners;
mod listening;
mod listening_ends;
mod lists_endless;
mod objects;
mod own_server;
mod patience;
mod progress;
mod roots;
mod rounds;
mod sampling;
mod scripted;
#[cfg(feature = "skills")]
mod skills;
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
mod spec_schema;
mod spec_subscriptions;
mod spec_versioning;
#[cfg(unix)]
mod stdio_child;
mod stdio_hostile;
mod stdio_probe;
mod stdio_wire;
mod tasks;
mod tasks_scripted;
mod tools;
mod tools_changed;
#[cfg(feature = "validation")]
mod tools_checked;
#[cfg(not(feature = "validation"))]
mod tools_unchecked;
#[cfg(unix)]
mod unix;
mod wallet;
