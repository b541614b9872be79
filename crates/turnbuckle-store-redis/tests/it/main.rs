//! The store on a real Redis: the conformance tests, and faults of servers and connections.

mod conformance;
mod connecting;
mod faults;
mod test_store;
