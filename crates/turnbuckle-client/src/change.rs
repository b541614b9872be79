//! What a server tells about changes.

use turnbuckle_protocol::types::tasks::GetTaskResult;

/// Something that changed on the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// A resource that was subscribed to, or a part of it.
    Resource {
        /// Its address.
        uri: String,
    },
    /// A task.
    Task(Box<GetTaskResult>),
    /// A visit to a URL is over (2025-11-25).
    Visit {
        /// Which visit.
        elicitation_id: String,
    },
}
