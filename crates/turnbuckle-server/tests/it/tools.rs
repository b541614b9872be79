//! Tools: arguments, handles, client requests.

mod client_request_edges;
mod compile_fail;
mod details;
mod handler_signatures;
mod handles;
mod no_validation;
mod own_validator;
#[cfg(feature = "validation")]
mod validation;
