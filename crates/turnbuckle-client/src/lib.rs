//! A Model Context Protocol client for every server.
//!
//! A [`Client`] asks a server, wherever it is and whichever revision it speaks: the transport is a target that is
//! connected to, and the revision is found out underneath.

mod answer;
pub mod auth;
mod builder;
mod cache;
mod call;
mod callbacks;
mod change;
mod client;
mod error;
#[cfg(test)]
#[path = "../tests/it/fake_http.rs"]
mod fake_http;
mod given_up;
mod held;
pub mod http;
mod hub;
mod incoming;
mod lifecycle;
mod limits;
pub mod lines;
mod listen;
mod lowered;
mod message;
mod oddity;
mod pages;
mod pending_sends;
mod progress;
mod rounds;
mod server;
#[cfg(feature = "skills")]
mod skills;
pub mod stdio;
mod target;
mod tasks;
mod tools;
mod traffic;
mod transport;
pub mod unix;
mod waiting;

pub use builder::{ClientBuilder, EraChoice};
pub use call::Call;
pub use callbacks::{
    Consent, FormAnswer, FormError, FormRequest, IntoRoot, RootError, Roots, SampleRequest,
    VisitRequest,
};
pub use change::Change;
pub use client::Client;
pub use error::{CallError, ConnectError, HttpRefusal, TransportError};
pub use lifecycle::{Era, EraMemory};
pub use limits::Limits;
pub use lines::connect_lines;
pub use listen::{Heard, Listening};
pub use oddity::Oddity;
pub use pages::Pages;
pub use progress::{Progress, ProgressStream};
pub use server::Server;
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillError, SkillMismatch};
pub use target::Target;
pub use tasks::{Started, Task};
pub use tools::{BadDigest, StructuredError, ToolDigest, ToolFingerprint, ToolOutput};
pub use traffic::{Direction, Traffic};
pub use turnbuckle_protocol::pending::Patience;
