//! Runs the real binary against test servers, and pins its output.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod auth_server;
mod bridge;
#[cfg(feature = "tls")]
mod bridge_authorization;
mod bridge_config;
mod bridge_front;
#[cfg(target_os = "linux")]
mod bridge_hostile;
#[cfg(feature = "tls")]
mod bridge_logins;
mod bridge_paths;
mod bridge_policy;
#[cfg(target_os = "linux")]
mod bridge_processes;
mod bridge_reload;
mod bridge_state;
mod calls;
mod cancellation;
mod check;
mod configured_servers;
mod context;
mod context_flow;
mod crash_safety;
mod errors;
mod fake_http;
mod http;
mod issuer;
#[cfg(feature = "keyring")]
mod keyring;
mod listen;
mod lists;
mod login;
mod record;
mod sandbox;
mod serve;
#[cfg(feature = "tls")]
mod serve_authorization;
#[cfg(feature = "postgres")]
mod serve_database;
mod serve_process;
mod stdio_programs;
mod stdio_server;
mod supervisor;
mod terminal;
mod tool_changes;
mod weather;
#[cfg(not(feature = "keyring"))]
mod without_keyring;
