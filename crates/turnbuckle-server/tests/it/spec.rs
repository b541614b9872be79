//! Requirements of the specification, in every revision that has them.

mod check_order;
mod client_requests;
mod confidential_data;
mod content;
mod elicitation;
mod envelopes;
mod errors;
mod extensions;
mod legacy_notifications;
mod lists;
mod notifications;
mod object_params;
mod prompts;
mod resources;
pub(crate) mod revision_client;
mod sampling;
mod schema;
mod streams;
mod tools;
mod url_elicitation;
