//! A client of the service without a socket, and the server of most tests.

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

/// A server with a tool for each kind of response.
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

/// The client of the test kit, with shorthands for these tests.
#[derive(Clone)]
pub(crate) struct HttpTestClient {
    client: TestHttpClient,
}

impl Deref for HttpTestClient {
    type Target = TestHttpClient;

    fn deref(&self) -> &TestHttpClient {
        &self.client
    }
}

impl DerefMut for HttpTestClient {
    fn deref_mut(&mut self) -> &mut TestHttpClient {
        &mut self.client
    }
}

/// The variable with the number of instances that take turns in these tests. One by default, on a store that is not shared.
const INSTANCES: &str = "TURNBUCKLE_TEST_INSTANCES";

impl HttpTestClient {
    /// Creates a client for two instances on one shared store. Each request goes to the other one.
    pub(crate) fn of_two(http: impl Into<Http>) -> Self {
        Self::from_client(testing::http_instances(http, 2))
    }

    /// Returns a client of one of several instances.
    pub(crate) fn at(&self, instance: usize) -> Self {
        Self {
            client: self.client.at(instance),
        }
    }

    pub(crate) fn new(server: Server) -> Self {
        Self::with_options(Http::new(server))
    }

    pub(crate) fn with_options(http: Http) -> Self {
        match std::env::var(INSTANCES) {
            Ok(count) => Self::from_client(testing::http_instances(http, count.parse().unwrap())),
            Err(_) => Self::single(http),
        }
    }

    /// Creates a client for one instance.
    pub(crate) fn single(http: Http) -> Self {
        Self::from_client(testing::http(http))
    }

    fn from_client(mut client: TestHttpClient) -> Self {
        // Some of these tests wait for hours to pass.
        client.timeout = Duration::from_secs(7 * 24 * 60 * 60);
        Self { client }
    }

    pub(crate) async fn send(
        &self,
        builder: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> HttpTestResponse {
        let body = body.into();
        saw_message(&String::from_utf8_lossy(&body));
        HttpTestResponse(self.client.send(builder, body).await)
    }

    /// Posts a message as it is.
    pub(crate) async fn post(&self, message: &Value) -> HttpTestResponse {
        self.send(self.request(Method::POST), message.to_string())
            .await
    }

    /// Posts a stateless request with its headers.
    pub(crate) async fn modern(&self, method: &str, params: Value) -> HttpTestResponse {
        let message = modern(method, params);
        self.send(
            modern_headers(self.request(Method::POST), &message),
            message.to_string(),
        )
        .await
    }

    /// Calls a tool with a stateless request.
    pub(crate) async fn modern_tool(&self, name: &str, arguments: Value) -> HttpTestResponse {
        self.modern(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
        )
        .await
    }

    /// Initializes a session.
    pub(crate) async fn in_session(self, version: &str) -> Self {
        let capabilities = json!({ "sampling": {}, "elicitation": {} });
        self.in_session_with(version, capabilities).await
    }

    /// Initializes a session of a client with these capabilities.
    pub(crate) async fn in_session_with(mut self, version: &str, capabilities: Value) -> Self {
        let mut message = initialize(version);
        message["params"]["capabilities"] = capabilities;
        let http_response = self.post(&message).await;
        assert_eq!(http_response.status(), 200);
        self.session = Some(
            http_response
                .header("mcp-session-id")
                .expect("a session id")
                .to_owned(),
        );
        let negotiated = http_response.json().await["result"]["protocolVersion"].clone();
        self.version = Some(negotiated.as_str().unwrap().to_owned());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&initialized).await.status(), 202);
        self
    }

    /// Calls a tool in a session.
    pub(crate) async fn tool(&self, id: i64, name: &str, arguments: Value) -> HttpTestResponse {
        self.post(&tool(id, name, &arguments)).await
    }

    /// Opens a stream.
    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> HttpTestResponse {
        HttpTestResponse(self.client.get(last_event_id).await)
    }

    /// Opens a stream, and returns it with the id of its priming event, or of a change in revisions without one.
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

    pub(crate) async fn delete(&self) -> HttpTestResponse {
        HttpTestResponse(self.client.delete().await)
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

/// A stateless request with its `_meta`.
pub(crate) fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 7,
    });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// Adds the headers of a stateless request.
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

/// A response.
pub(crate) struct HttpTestResponse(TestHttpResponse);

impl Deref for HttpTestResponse {
    type Target = TestHttpResponse;

    fn deref(&self) -> &TestHttpResponse {
        &self.0
    }
}

impl HttpTestResponse {
    pub(crate) async fn bytes(self) -> Bytes {
        self.0.bytes().await
    }

    pub(crate) async fn json(self) -> Value {
        let json = self.0.json().await;
        saw_message(&json.to_string());
        json
    }

    /// Status and code of an error.
    pub(crate) async fn status_and_code(self) -> (u16, i64) {
        let status = self.status().as_u16();
        (status, self.json().await["error"]["code"].as_i64().unwrap())
    }

    pub(crate) fn stream(self) -> Stream {
        Stream(self.0.events())
    }
}

/// An event stream.
pub(crate) struct Stream(TestEventStream);

impl Stream {
    /// The next event with data; `None` at the end.
    pub(crate) async fn event(&mut self) -> Option<ParsedEvent> {
        let event = self.0.next().await?;
        saw_message(&event.data);
        Some(event)
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn bytes(&mut self) -> Option<Bytes> {
        self.0.bytes().await
    }

    /// The reconnection delay that the stream sent.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.0.retry()
    }

    /// Reads the priming event, and returns its id.
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

    /// All messages after the priming event.
    pub(crate) async fn messages_after_prime(mut self) -> Vec<Value> {
        self.prime().await;
        self.messages().await
    }

    /// All messages until the end, without empty events.
    pub(crate) async fn remaining_messages(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(event) = self.event().await {
            if !event.data.is_empty() {
                messages.push(serde_json::from_str(&event.data).unwrap());
            }
        }
        messages
    }

    /// All messages until the end.
    pub(crate) async fn messages(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        messages
    }
}
