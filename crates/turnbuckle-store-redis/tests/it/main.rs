//! The store on a real Redis: the conformance tests, and faults of servers and connections.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod conformance;
mod connection;
mod faults;
mod test_store;
