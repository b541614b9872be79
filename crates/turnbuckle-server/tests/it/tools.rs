//! Tools: arguments, handles, client requests.

mod client_request_edges;
mod details;
mod handles;
#[cfg(not(feature = "validation"))]
mod no_validation;
#[cfg(feature = "validation")]
mod validation;
