//! Several instances of a server on one shared store.

mod calls;
mod client_requests;
mod leases;
mod streams;
mod tasks;
mod test_registry;
