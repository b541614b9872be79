//! Testing a server in memory: a client by hand, on every transport and in every revision.
//!
//! [`Peer`] is a client that a test plays. It joins a server without a socket, writes down every message, and fails
//! with the whole exchange when something is not as expected.
//!
//! ```
//! use serde_json::json;
//! use turnbuckle_server::{Server, Tool, ToolError, testing::Peer};
//!
//! fn server() -> Server {
//!     Server::new("clock", "1.0.0")
//!         .tool(Tool::new("now", async || Ok::<_, ToolError>("half past nine".to_owned())))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let mut peer = Peer::connect(server()).await;
//! let answer = peer.call_tool("now", json!({})).await;
//! assert_eq!(answer.text(), "half past nine");
//! # }
//! ```
//!
//! - [`Peer`] and [`Connect`]: who the client is, what it says, and how it answers questions.
//! - [`edges`]: every transport in every revision it has, so that one test runs on all of them.
//! - [`http()`]: one level below, requests and responses of HTTP without a socket.
//! - [`every_way`]: one tool call, as a call and as a task, in the old ways and the new ones; all must give the same.
//! - [`Effects`] and [`Changes`]: what handlers did, and what clients would be told of it.
//!
//! # Time
//!
//! Write `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`): time then stands still while anything
//! runs and leaps ahead when everything waits, so that a tool that sleeps for a minute is tested at once, and so is a
//! message that never comes. Without it everything works too, in real time.

mod answer;
mod changes;
mod connect;
mod edge;
mod effects;
mod every_way;
mod http_client;
mod peer;
mod recording;
mod wire;

pub use answer::Answer;
pub use changes::Changes;
pub use connect::Connect;
pub use edge::{Edge, Transport, edges};
pub use effects::Effects;
pub use every_way::{Trace, Trial, every_way};
pub use http_client::{Events, HttpClient, HttpResponse, http};
pub use peer::{Peer, Question};
pub use recording::{Direction, Message};

use std::time::Duration;

use serde_json::{Value, json};

/// How long a test waits for anything, unless it says otherwise.
const PATIENCE: Duration = Duration::from_secs(100);

/// How long it has to be silent to count as silence.
const SILENCE: Duration = Duration::from_secs(1);

/// Rounds after which a call that asks again and again is given up.
const MOST_ROUNDS: usize = 32;

/// Whoever answers questions in place of a client: method and parameters in, the result back.
type Player = Box<dyn FnMut(&str, &Value) -> Value + Send>;

/// What a client says it can do if it can be asked anything.
fn anything() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}
