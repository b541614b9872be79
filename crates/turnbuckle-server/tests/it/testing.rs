//! The test kit of the crate.

mod equivalence;
mod failures;
mod http_client;
mod peer;
pub(crate) mod test_server;
