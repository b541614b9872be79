//! What clients see of all upstream servers: names, lists, subscriptions and capabilities.

pub(crate) mod capabilities;
pub(crate) mod lists;
pub(crate) mod names;
pub(crate) mod subscriptions;
