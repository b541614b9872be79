//! The test kit of the crate.

mod every_way;
mod failures;
mod http_client;
mod peer;
pub(crate) mod test_server;
