//! A client of the service without a socket, and the server that most tests ask.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use bytes::Bytes;
use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_protocol::codec::sse::ParsedEvent;
use turnbuckle_server::{
    Context, Resource, Server, Tool,
    http::Http,
    testing::{self, TestEventStream, TestHttpClient, TestHttpResponse},
};
use turnbuckle_spec_coverage::saw_message;

pub(crate) const MODERN: &str = "2026-07-28";

/// The revisions with sessions on Streamable HTTP.
pub(crate) const SESSIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Steps {
    steps: u32,
}

/// A server with a tool for each way to answer.
pub(crate) fn server() -> Server {
    Server::new("test", "1.0.0")
        .tool(Tool::new("echo", async |args: Echo| Ok(args.message)))
        .tool(Tool::new("progress", async |args: Steps, cx: Context| {
            for step in 1..=args.steps {
                cx.progress(step, args.steps).await;
                tokio::task::yield_now().await;
            }
            Ok("done".to_owned())
        }))
        .tool(Tool::new("sleep", async |_: Empty| {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok("awake".to_owned())
        }))
        .tool(Tool::new("change", async |_: Empty, cx: Context| {
            cx.tools_changed();
            Ok("changed".to_owned())
        }))
        .resource(Resource::text("test://a", "a", "content"))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Empty {}

/// The client of the test kit, and what these tests say again and again.
#[derive(Clone)]
pub(crate) struct Caller {
    client: TestHttpClient,
}

impl Deref for Caller {
    type Target = TestHttpClient;

    fn deref(&self) -> &TestHttpClient {
        &self.client
    }
}

impl DerefMut for Caller {
    fn deref_mut(&mut self) -> &mut TestHttpClient {
        &mut self.client
    }
}

impl Caller {
    pub(crate) fn new(server: Server) -> Self {
        Self::of(Http::new(server))
    }

    pub(crate) fn of(http: Http) -> Self {
        let mut client = testing::http(http);
        // Some of these tests wait for hours to pass.
        client.timeout = Duration::from_secs(7 * 24 * 60 * 60);
        Self { client }
    }

    pub(crate) async fn send(
        &self,
        builder: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Answered {
        let body = body.into();
        saw_message(&String::from_utf8_lossy(&body));
        Answered(self.client.send(builder, body).await)
    }

    /// Posts a message as it is.
    pub(crate) async fn post(&self, message: &Value) -> Answered {
        self.send(self.request(Method::POST), message.to_string())
            .await
    }

    /// Posts a modern request with all its headers.
    pub(crate) async fn modern(&self, method: &str, params: Value) -> Answered {
        let message = modern(method, params);
        self.send(
            modern_headers(self.request(Method::POST), &message),
            message.to_string(),
        )
        .await
    }

    /// Calls a tool the modern way.
    pub(crate) async fn modern_tool(&self, name: &str, arguments: Value) -> Answered {
        self.modern(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
        .await
    }

    /// Begins a session and says that the handshake is done.
    pub(crate) async fn in_session(mut self, version: &str) -> Self {
        let answered = self.post(&initialize(version)).await;
        assert_eq!(answered.status(), 200);
        self.session = Some(
            answered
                .header("mcp-session-id")
                .expect("a session id")
                .to_owned(),
        );
        let negotiated = answered.json().await["result"]["protocolVersion"].clone();
        self.version = Some(negotiated.as_str().unwrap().to_owned());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&initialized).await.status(), 202);
        self
    }

    /// Calls a tool in a session.
    pub(crate) async fn tool(&self, id: i64, name: &str, arguments: Value) -> Answered {
        self.post(&tool(id, name, &arguments)).await
    }

    /// Opens a stream.
    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> Answered {
        Answered(self.client.get(last_event_id).await)
    }

    /// Opens a stream, and returns it with the id of an event on it: the one that it begins with, or where the revision has
    /// none, that of a change.
    pub(crate) async fn opened(&self) -> (Stream, String) {
        let mut stream = self.get(None).await.stream();
        if self.version.as_deref() == Some("2025-11-25") {
            let id = stream.prime().await;
            return (stream, id);
        }
        self.tool(90, "change", json!({})).await;
        let event = stream.event().await.unwrap();
        (stream, event.last_event_id)
    }

    pub(crate) async fn delete(&self) -> Answered {
        Answered(self.client.delete().await)
    }
}

/// A call of a tool, with progress.
pub(crate) fn tool(id: i64, name: &str, arguments: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "_meta": { "progressToken": id }, "name": name, "arguments": arguments },
    })
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": { "sampling": {}, "elicitation": {} },
            "clientInfo": { "name": "tests", "version": "1" },
        },
    })
}

/// A modern request with the `_meta` that it needs.
pub(crate) fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 7,
    });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// Repeats in headers what a modern request says.
pub(crate) fn modern_headers(
    mut builder: http::request::Builder,
    message: &Value,
) -> http::request::Builder {
    builder = builder
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", message["method"].as_str().unwrap());
    for member in ["name", "uri", "taskId"] {
        if let Some(name) = message["params"][member].as_str() {
            builder = builder.header("mcp-name", name);
        }
    }
    builder
}

/// What came back.
pub(crate) struct Answered(TestHttpResponse);

impl Deref for Answered {
    type Target = TestHttpResponse;

    fn deref(&self) -> &TestHttpResponse {
        &self.0
    }
}

impl Answered {
    pub(crate) async fn bytes(self) -> Bytes {
        self.0.bytes().await
    }

    pub(crate) async fn json(self) -> Value {
        let json = self.0.json().await;
        saw_message(&json.to_string());
        json
    }

    /// Status and code of an error.
    pub(crate) async fn refusal(self) -> (u16, i64) {
        let status = self.status().as_u16();
        (status, self.json().await["error"]["code"].as_i64().unwrap())
    }

    pub(crate) fn stream(self) -> Stream {
        Stream(self.0.events())
    }
}

/// A stream that is read event by event; each of them counts.
pub(crate) struct Stream(TestEventStream);

impl Stream {
    /// The next event with data; `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<ParsedEvent> {
        let event = self.0.next().await?;
        saw_message(&event.data);
        Some(event)
    }

    /// The next bytes as they come; `None` at the end.
    pub(crate) async fn bytes(&mut self) -> Option<Bytes> {
        self.0.bytes().await
    }

    /// How long the stream asked to wait before coming back.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.0.retry()
    }

    /// Reads the event without a message that a stream may begin with, and returns its id.
    pub(crate) async fn prime(&mut self) -> String {
        let event = self.event().await.unwrap();
        assert_eq!(event.data, "");
        event.last_event_id
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        let event = self.event().await?;
        Some(serde_json::from_str(&event.data).unwrap())
    }

    /// Everything until the end, after an event without a message.
    pub(crate) async fn messages_after_prime(mut self) -> Vec<Value> {
        self.prime().await;
        self.messages().await
    }

    /// Everything until the end.
    pub(crate) async fn messages(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }
}
