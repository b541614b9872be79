//! Requirements of the specification.

mod cancellation;
mod capabilities;
mod completion;
mod content;
mod era_detection;
mod lifecycle;
mod logging;
mod messages;
mod meta;
mod pagination;
mod progress;
mod schema;
mod server_requests;
mod subscriptions;
mod versioning;
