//! In-memory testing of servers: a test client for every transport and revision.
//!
//! [`Peer`] is a client under control of the test. It connects without a socket, records every message, and prints the
//! transcript when an expectation fails.
//!
//! ```
//! use serde_json::json;
//! use turnbuckle_server::{Server, Tool, testing::Peer};
//!
//! fn server() -> Server {
//!     Server::new("clock", "1.0.0")
//!         .tool(Tool::new("now", async || Ok("half past nine".to_owned())))
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
//! - [`Peer`] and [`PeerBuilder`]: the client, its capabilities, and its responses to client requests.
//! - [`all_combinations`]: every transport with each of its revisions, to run one test on all of them;
//!   [`combinations_with`]: those in which the client can be asked for something.
//! - [`http()`]: one level below, HTTP requests and responses without a socket. [`http_instances`] does the same with several
//!   servers on one store.
//! - [`assert_equivalent`]: one tool call as a call and as a task, in both eras, which must all have the same result.
//! - [`SideEffects`] and [`ChangeRecorder`]: what handlers did, and which changes were published.
//!
//! # Time
//!
//! Use `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`): time then advances only when everything
//! waits, so tests of sleeps and timeouts finish immediately. Without it tests run in real time.

mod equivalence;
mod http_client;
mod matrix;
mod peer;
mod peer_builder;
mod recorders;
mod recording;
mod response;
mod transport;

use std::time::Duration;

pub use equivalence::{CallTrace, ToolCase, assert_equivalent};
pub use http_client::{TestEventStream, TestHttpClient, TestHttpResponse, http, http_instances};
pub use matrix::{ClientFeature, Combination, TransportKind, all_combinations, combinations_with};
pub use peer::{ClientRequest, Peer};
pub use peer_builder::PeerBuilder;
pub use recorders::{ChangeRecorder, SideEffects};
pub use recording::{MessageDirection, RecordedMessage};
pub use response::PeerResponse;
use serde_json::{Value, json};

/// Default timeout of expectations.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(100);

/// Time without a message that counts as no message.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of round trips of a call.
const MAX_ROUND_TRIPS: usize = 32;

/// Responds to client requests: takes the method and parameters, returns the result.
type Responder = Box<dyn FnMut(&str, &Value) -> Value + Send>;

/// Capabilities that allow every client request.
fn all_capabilities() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} }, "roots": {} })
}
