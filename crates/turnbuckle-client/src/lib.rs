//! A Model Context Protocol client for every server.
//!
//! A [`Client`] sends requests to a server over any transport and in any revision of the protocol. The transport is
//! chosen by the [`Target`] that is passed to [`ClientBuilder::connect`]; the revision is negotiated while connecting.

pub mod auth;
mod builder;
mod cache;
mod call;
mod callbacks;
mod client;
mod error;
mod fetcher;
mod inbound;
mod lifecycle;
#[cfg(test)]
#[path = "../tests/it/servers/mock_http.rs"]
mod mock_http;
pub mod relay;
mod round_trips;
#[cfg(feature = "skills")]
mod skills;
mod subscription;
mod sync;
mod target;
mod tasks;
pub mod tool_lock;
mod tools;
mod transport;

pub use builder::{ClientBuilder, LifecycleMode};
pub use call::{Call, Pages};
pub use callbacks::{
    ElicitationAction, FormError, FormRequest, FormResponse, IntoRoot, RootError, Roots,
    SamplingRequest, UrlElicitationRequest,
};
pub use client::Client;
pub use error::{CallError, ConnectError, HttpErrorResponse, TransportError};
pub use inbound::{
    observers::{Anomaly, ListItemKind, MessageDirection, TracedMessage},
    progress::{Progress, ProgressStream},
    recorder::{Recorder, TrafficEntry},
};
pub use lifecycle::{Era, LifecycleCache};
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillError, SkillMismatch};
pub use subscription::{Subscription, SubscriptionEvent};
pub use target::{Change, ClientLimits, ServerInfo, Target};
pub use tasks::{CallOutcome, Task};
pub use tools::{InvalidToolDigest, StructuredError, ToolDigest, ToolFingerprint, ToolOutput};
pub use transport::{http, ndjson, stdio, unix};
pub use turnbuckle_protocol::timeouts::Timeouts;
