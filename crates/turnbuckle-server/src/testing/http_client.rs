//! An HTTP client without a socket.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ::http::{HeaderMap, Method, Request, Response, StatusCode, header::AUTHORIZATION};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service as _;
use turnbuckle_protocol::{
    Principal,
    codec::{
        headers,
        sse::{ParsedEvent, SseDecoder, SseLimits},
    },
    method::Method as McpMethod,
};

use super::DEFAULT_TIMEOUT;
use crate::{
    Server,
    http::{Http, HttpService, ResponseBody},
};

/// Creates an HTTP client for a server, without a socket. Takes a server, or [`Http`] with options.
///
/// ```
/// use serde_json::json;
/// use turnbuckle_server::{Server, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let client = testing::http(Server::new("clock", "1.0.0")).in_session("2025-11-25").await;
/// let response = client.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
/// assert_eq!(response.status(), 200);
/// assert_eq!(response.json().await["result"], json!({}));
/// assert_eq!(client.delete().await.status(), 204);
/// # }
/// ```
pub fn http(server: impl Into<Http>) -> TestHttpClient {
    client_of(vec![server.into()])
}

/// Creates an HTTP client for several instances of a server on one shared store. Takes a server, or [`Http`] with options.
///
/// Each request goes to the next instance, as behind a load balancer. [`TestHttpClient::at`] selects one. The instances
/// share the store of the server and its state keys; each has its own copy of the catalog.
///
/// ```
/// use serde_json::json;
/// use turnbuckle_server::{Server, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let client = testing::http_instances(Server::new("clock", "1.0.0"), 2).in_session("2025-11-25").await;
/// let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
/// for instance in [0, 1] {
///     assert_eq!(client.at(instance).post(&ping).await.status(), 200);
/// }
/// # }
/// ```
///
/// # Panics
///
/// If `count` is 0.
pub fn http_instances(server: impl Into<Http>, count: usize) -> TestHttpClient {
    assert!(count > 0, "there is at least one instance");
    let http = server.into();
    let mut store = http.server().store_ref().clone();
    if !store.is_shared() {
        store = store.shared();
    }
    let instance = || {
        let server = http.server().with_own_state("").store(store.clone());
        http.clone().with_server(server)
    };
    client_of(std::iter::repeat_with(instance).take(count).collect())
}

fn client_of(instances: Vec<Http>) -> TestHttpClient {
    let first = &instances[0];
    TestHttpClient {
        server: first.server().clone(),
        path: first.endpoint_path().to_owned(),
        services: instances
            .into_iter()
            .map(Http::into_unmounted_service)
            .collect(),
        next_service: Arc::default(),
        session: None,
        version: None,
        authorization: None,
        principal: None,
        timeout: DEFAULT_TIMEOUT,
    }
}

/// An HTTP client without a socket. Clones use the same service.
///
/// For tests of HTTP itself: status codes, headers, streams and resumption. Use [`Peer`](super::Peer) for everything
/// else.
#[derive(Clone, Debug)]
pub struct TestHttpClient {
    services: Vec<HttpService>,
    /// The number of requests sent to several instances, which take turns.
    next_service: Arc<AtomicUsize>,
    server: Server,
    path: String,
    /// The `Mcp-Session-Id` header, if set.
    pub session: Option<String>,
    /// The `MCP-Protocol-Version` header, if set. Stateless requests use the version from `_meta`.
    pub version: Option<String>,
    /// The `Authorization` header, if set, such as `Bearer …`.
    pub authorization: Option<String>,
    /// The authenticated caller, as set by an authorizing layer.
    pub principal: Option<Principal>,
    /// Timeout of each operation; 100 seconds by default.
    pub timeout: Duration,
}

impl TestHttpClient {
    /// Returns a client that sends all requests to one of several instances.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    #[must_use]
    pub fn at(&self, instance: usize) -> Self {
        Self {
            services: vec![self.services[instance].clone()],
            ..self.clone()
        }
    }

    /// Initializes a session. Later requests belong to it.
    ///
    /// # Panics
    ///
    /// If the server does not create a session.
    pub async fn in_session(mut self, revision: &str) -> Self {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": super::all_capabilities(),
            "clientInfo": { "name": "test", "version": "0" },
        });
        let message =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let response = self.post(&message).await;
        self.session = response.header("mcp-session-id").map(str::to_owned);
        assert!(
            self.session.is_some(),
            "the server created no session: {response:?}"
        );
        let response = response.json().await;
        let negotiated = response["result"]["protocolVersion"].as_str();
        self.version = negotiated.map(str::to_owned);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let status = self.post(&initialized).await.status();
        assert_eq!(status, 202, "`notifications/initialized` was not accepted");
        self
    }

    /// Posts a message with the required headers: those of the session, or the MCP headers of a stateless request.
    pub async fn post(&self, message: &Value) -> TestHttpResponse {
        let request = self.post_builder(message);
        self.send(request, message.to_string()).await
    }

    /// Opens the GET stream of a session, or resumes a stream after an event.
    pub async fn get(&self, last_event_id: Option<&str>) -> TestHttpResponse {
        let mut request = self.request(Method::GET);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        self.send(request, "").await
    }

    /// Ends the session.
    pub async fn delete(&self) -> TestHttpResponse {
        self.send(self.request(Method::DELETE), "").await
    }

    /// Creates a valid request to the endpoint, with the session's headers.
    pub fn request(&self, method: Method) -> ::http::request::Builder {
        let mut request = self.request_builder(method, &self.path);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = &self.version {
            request = request.header("mcp-protocol-version", version);
        }
        request
    }

    /// Sends a custom request.
    ///
    /// # Panics
    ///
    /// If the request is invalid, or the response does not start in time.
    pub async fn send(
        &self,
        request: ::http::request::Builder,
        body: impl Into<Bytes>,
    ) -> TestHttpResponse {
        let response = timeout(self.timeout, self.call(request, body.into())).await;
        TestHttpResponse::new(response.expect("a response begins in time"), self.timeout)
    }

    /// Creates the request of a message.
    pub(super) fn post_builder(&self, message: &Value) -> ::http::request::Builder {
        match mcp_headers(&self.server, message) {
            Some(mcp_headers) => {
                let request = self.request_builder(Method::POST, &self.path);
                let add = |request: ::http::request::Builder, (name, value)| {
                    ::http::request::Builder::header::<String, String>(request, name, value)
                };
                mcp_headers.into_iter().fold(request, add)
            }
            None => self.request(Method::POST),
        }
    }

    /// Creates a request to any path.
    pub(super) fn request_builder(&self, method: Method, path: &str) -> ::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost:8080")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// Returns the response, without a timeout.
    pub(super) fn call(
        &self,
        request: ::http::request::Builder,
        body: Bytes,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + use<> {
        let mut request = request
            .body(Full::new(body))
            .expect("a test sends valid requests");
        if let Some(authorization) = &self.authorization {
            let value = authorization.parse().expect("a test sends valid headers");
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        if let Some(principal) = &self.principal {
            request.extensions_mut().insert(principal.clone());
        }
        let turn = self.next_service.fetch_add(1, Ordering::Relaxed);
        let mut service = self.services[turn % self.services.len()].clone();
        let response = service.call(request);
        async move { response.await.unwrap_or_else(|never| match never {}) }
    }
}

/// Returns the MCP headers of a stateless request, or `None` for other messages.
fn mcp_headers(server: &Server, message: &Value) -> Option<Vec<(String, String)>> {
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str()?;
    let method = message["method"].as_str()?;
    let mut mcp_headers = vec![
        ("mcp-protocol-version".to_owned(), version.to_owned()),
        ("mcp-method".to_owned(), method.to_owned()),
    ];
    let named = McpMethod::from_name(method).and_then(|method| method.name_member);
    if let Some(name) = named.and_then(|member| params[member].as_str()) {
        mcp_headers.push(("mcp-name".to_owned(), headers::encode(name).into_owned()));
    }
    if method == "tools/call" {
        mcp_headers.extend(arguments(server, params));
    }
    Some(mcp_headers)
}

/// Returns the parameter headers of a tool call.
fn arguments(server: &Server, params: &Value) -> Vec<(String, String)> {
    let catalog = server.catalog();
    let name = params["name"].as_str().unwrap_or_default();
    let param_headers = catalog.tools.find(name).map(|tool| &tool.param_headers);
    let header = |path: &[String]| {
        let mut argument = &params["arguments"];
        for member in path {
            argument = argument.get(member)?;
        }
        let argument = argument.to_string();
        let value = headers::encode_argument(&argument).ok()??;
        Some(value.into_owned())
    };
    param_headers
        .into_iter()
        .flatten()
        .filter_map(|param_headers| {
            Some((param_headers.header.clone(), header(&param_headers.path)?))
        })
        .collect()
}

/// An HTTP response.
pub struct TestHttpResponse {
    response: Response<ResponseBody>,
    timeout: Duration,
}

impl TestHttpResponse {
    pub(super) fn new(response: Response<ResponseBody>, timeout: Duration) -> Self {
        Self { response, timeout }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// All headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Returns a header, if present and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// Returns whether the body is an event stream.
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body.
    ///
    /// # Panics
    ///
    /// If it does not end in time.
    pub async fn bytes(self) -> Bytes {
        let body = timeout(self.timeout, self.response.into_body().collect()).await;
        let Ok(body) = body.expect("the body ends in time");
        body.to_bytes()
    }

    /// Returns the body as one JSON message.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub async fn json(self) -> Value {
        let summary = format!("{self:?}");
        let is_json = self.header("content-type") == Some("application/json");
        let body = self.bytes().await;
        match serde_json::from_slice(&body) {
            Ok(json) if is_json => json,
            _ => panic!(
                "this is not JSON: {summary} {}",
                String::from_utf8_lossy(&body)
            ),
        }
    }

    /// Returns the body as an event stream.
    ///
    /// # Panics
    ///
    /// If it is not an event stream.
    #[track_caller]
    pub fn events(self) -> TestEventStream {
        assert!(self.is_stream(), "this is not an event stream: {self:?}");
        TestEventStream {
            body: self.response.into_body(),
            decoder: SseDecoder::new(SseLimits::default()),
            chunk: Bytes::new(),
            timeout: self.timeout,
        }
    }
}

impl std::fmt::Debug for TestHttpResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.status(), self.headers())
    }
}

/// An SSE stream. Dropping it closes the connection.
pub struct TestEventStream {
    body: ResponseBody,
    decoder: SseDecoder,
    chunk: Bytes,
    timeout: Duration,
}

impl TestEventStream {
    /// Returns the next event, or `None` at the end.
    ///
    /// # Panics
    ///
    /// On a timeout.
    pub async fn next(&mut self) -> Option<ParsedEvent> {
        let event = timeout(self.timeout, self.read()).await;
        event.expect("the stream continues or ends in time")
    }

    /// Returns the next message, skipping events without data. `None` at the end.
    ///
    /// # Panics
    ///
    /// On a timeout, or if an event is not a message.
    pub async fn message(&mut self) -> Option<Value> {
        let message = timeout(self.timeout, self.read_message()).await;
        message.expect("the stream continues or ends in time")
    }

    /// Returns the next raw bytes, including comments. `None` at the end.
    ///
    /// # Panics
    ///
    /// On a timeout.
    pub async fn bytes(&mut self) -> Option<Bytes> {
        let bytes = timeout(self.timeout, self.read_bytes()).await;
        bytes.expect("the stream continues or ends in time")
    }

    /// The `Last-Event-ID` to resume from, or empty.
    pub fn last_event_id(&self) -> &str {
        self.decoder.last_event_id()
    }

    /// The retry delay that the stream requested.
    pub fn retry(&self) -> Option<Duration> {
        self.decoder.retry()
    }

    pub(super) async fn read_message(&mut self) -> Option<Value> {
        loop {
            let event = self.read().await?;
            if !event.data.is_empty() {
                let message = serde_json::from_str(&event.data);
                return Some(message.expect("an event is a message"));
            }
        }
    }

    /// Returns the next event, without a timeout. Cancel safe.
    pub(super) async fn read(&mut self) -> Option<ParsedEvent> {
        loop {
            let mut rest = &self.chunk[..];
            let event = self.decoder.next(&mut rest);
            self.chunk = self.chunk.slice(self.chunk.len() - rest.len()..);
            match event.expect("the event is within the size limit") {
                Some(event) => return Some(event),
                None => self.chunk = self.read_bytes().await?,
            }
        }
    }

    async fn read_bytes(&mut self) -> Option<Bytes> {
        loop {
            let Ok(frame) = self.body.frame().await?;
            if let Ok(bytes) = frame.into_data() {
                return Some(bytes);
            }
        }
    }
}

impl std::fmt::Debug for TestEventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestEventStream")
            .field("last_event_id", &self.last_event_id())
            .finish_non_exhaustive()
    }
}
