//! Authorization of HTTP requests.

pub(crate) mod credentials;
mod login_timeouts;
mod requests;
mod streams;
mod turnbuckle_server;
