//! Streamable HTTP.

mod batches;
mod concurrent_clients;
mod connections;
pub(crate) mod event_store_faults;
mod get_streams;
mod host_origin;
#[cfg(feature = "http2")]
mod http2;
mod lingering_close;
mod param_headers;
mod path_servers;
mod quotas;
mod request_bodies;
mod resumption;
pub(crate) mod session_expiry;
mod sessions;
mod stateless;
mod stream_polling;
mod streams;
pub(crate) mod test_client;
mod web_pages;
