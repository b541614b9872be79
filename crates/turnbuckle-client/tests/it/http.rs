//! Streamable HTTP and HTTP+SSE.

mod callbacks;
mod get_stream;
mod header_names;
mod hostile_servers;
mod http_sse;
mod lost_responses;
mod param_headers;
mod requests;
mod session_renewal;
mod sessions;
mod streams;
mod subscriptions;
mod tasks;
mod turnbuckle_server;
