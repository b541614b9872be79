//! The real binary against servers of ours; what it prints is pinned.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod authority;
mod calls;
mod cancelling;
mod changing;
mod check;
mod configured;
mod context;
mod failures;
mod fake_http;
mod faults;
mod flow;
mod http;
#[cfg(feature = "keyring")]
mod keyring;
mod killed;
mod listening;
mod lists;
mod logging_in;
#[cfg(not(feature = "keyring"))]
mod no_keyring;
mod programs;
mod serve;
#[cfg(feature = "tls")]
mod serve_authorization;
mod serving;
mod stage;
mod terminal;
mod weather;
mod wire;
