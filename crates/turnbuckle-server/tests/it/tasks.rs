//! Tasks, in both models.

mod client_requested;
mod http;
mod owners;
mod server_directed;
pub(crate) mod test_server;
