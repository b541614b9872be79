//! Runs the conformance tests against the memory store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod broken_buses;
mod broken_control_logs;
mod broken_event_stores;
mod broken_registries;
mod broken_sessions;
mod broken_task_stores;
mod memory;
