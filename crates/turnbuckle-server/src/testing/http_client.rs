//! A client of HTTP without a socket: requests go to the service, and responses come back.

mod headers;
mod response;

use std::time::Duration;

use ::http::{Method, Request, Response, header::AUTHORIZATION};
use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service as _;
use turnbuckle_protocol::Principal;

pub use response::{Events, HttpResponse};

use super::PATIENCE;
use crate::{
    Server,
    http::{Body, Http, Service},
};

/// Makes a client that speaks HTTP to a server, without a socket. It takes a server, or [`Http`] with options.
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
pub fn http(server: impl Into<Http>) -> HttpClient {
    let http = server.into();
    HttpClient {
        server: http.server().clone(),
        path: http.endpoint_path().to_owned(),
        service: http.into_service(),
        session: None,
        version: None,
        authorization: None,
        principal: None,
        patience: PATIENCE,
    }
}

/// A client of HTTP without a socket. Clones speak to the same service.
///
/// For what is peculiar to HTTP: status codes, headers, streams and their resumption. [`Peer`](super::Peer) is for
/// everything else.
#[derive(Clone, Debug)]
pub struct HttpClient {
    service: Service,
    server: Server,
    path: String,
    /// What `Mcp-Session-Id` says, if it is sent.
    pub session: Option<String>,
    /// What `MCP-Protocol-Version` says, if it is sent; requests that name their version in `_meta` repeat that one.
    pub version: Option<String>,
    /// What `Authorization` says, if it is sent, as `Bearer …`; on whatever path.
    pub authorization: Option<String>,
    /// Who the client is, as an authorizing layer would have found out.
    pub principal: Option<Principal>,
    /// How long it waits for anything before the test fails; 100 seconds unless set.
    pub patience: Duration,
}

impl HttpClient {
    /// Begins a session, and says that the handshake is done. Later requests belong to it.
    ///
    /// # Panics
    ///
    /// If the server does not begin a session.
    pub async fn in_session(mut self, revision: &str) -> Self {
        let params = json!({
            "protocolVersion": revision,
            "capabilities": super::anything(),
            "clientInfo": { "name": "test", "version": "0" },
        });
        let message =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let response = self.post(&message).await;
        self.session = response.header("mcp-session-id").map(str::to_owned);
        assert!(self.session.is_some(), "there is no session: {response:?}");
        let answer = response.json().await;
        let negotiated = answer["result"]["protocolVersion"].as_str();
        self.version = negotiated.map(str::to_owned);
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let status = self.post(&initialized).await.status();
        assert_eq!(status, 202, "the handshake is not taken");
        self
    }

    /// Posts a message, with the headers that it needs: those of the session, or those that repeat what a request
    /// says which stands on its own.
    pub async fn post(&self, message: &Value) -> HttpResponse {
        let request = self.posting(message);
        self.send(request, message.to_string()).await
    }

    /// Opens the stream of a session, or goes on with a broken one after an event.
    pub async fn get(&self, last_event_id: Option<&str>) -> HttpResponse {
        let mut request = self.request(Method::GET);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        self.send(request, "").await
    }

    /// Ends the session.
    pub async fn delete(&self) -> HttpResponse {
        self.send(self.request(Method::DELETE), "").await
    }

    /// Begins a request to the endpoint that lacks nothing, with the headers of the session.
    pub fn request(&self, method: Method) -> ::http::request::Builder {
        let mut request = self.bare(method, &self.path);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(version) = &self.version {
            request = request.header("mcp-protocol-version", version);
        }
        request
    }

    /// Sends a request of your own making.
    ///
    /// # Panics
    ///
    /// If it is no valid request, or if no response begins in time.
    pub async fn send(
        &self,
        request: ::http::request::Builder,
        body: impl Into<Bytes>,
    ) -> HttpResponse {
        let response = timeout(self.patience, self.call(request, body.into())).await;
        HttpResponse::new(response.expect("a response begins in time"), self.patience)
    }

    /// A request for one message.
    pub(super) fn posting(&self, message: &Value) -> ::http::request::Builder {
        match headers::mirrored(&self.server, message) {
            Some(mirrored) => {
                let request = self.bare(Method::POST, &self.path);
                let add = |request: ::http::request::Builder, (name, value)| {
                    ::http::request::Builder::header::<String, String>(request, name, value)
                };
                mirrored.into_iter().fold(request, add)
            }
            None => self.request(Method::POST),
        }
    }

    /// A request to any path, as every client sends it.
    pub(super) fn bare(&self, method: Method, path: &str) -> ::http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost:8080")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// The response, however long it takes.
    pub(super) fn call(
        &self,
        request: ::http::request::Builder,
        body: Bytes,
    ) -> impl Future<Output = Response<Body>> + Send + use<> {
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
        let response = self.service.clone().call(request);
        async move { response.await.unwrap_or_else(|never| match never {}) }
    }
}
