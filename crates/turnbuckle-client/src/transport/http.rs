//! Servers at a URL: Streamable HTTP, and HTTP+SSE of 2024-11-05.

pub(crate) mod headers;
mod http_sse;
mod streamable;
pub(crate) mod url;

use std::{fmt, io, sync::Arc, time::Duration};

use ::http::StatusCode;
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle_auth::CredentialProvider;
use turnbuckle_protocol::{RequestId, RpcError, recording::OpenEntry};

pub(crate) use crate::transport::http::{http_sse::HttpSse, streamable::StreamableHttp};
use crate::{
    builder::{ClientBuilder, LifecycleMode},
    client::{
        Client, ClientInner,
        timeout::{AuthWait, within},
    },
    error::{ConnectError, HttpErrorResponse, TransportError},
    inbound::{
        InboundRouter,
        message::{self, HttpMetadata, InboundMessage, RawResponse},
        observers::MessageDirection,
    },
    lifecycle::is_modern_error,
    transport::{
        Transport,
        http::{headers::BaseHeaders, url::Url},
        http_client::{Authorization, Dialer, ErrorResponse, HttpClient, HttpClientLimits},
    },
};
pub use crate::{
    fetcher::HttpFetcher,
    transport::{
        http::{headers::InvalidRequestHeader, url::InvalidHttpUrl},
        http_client::HttpError,
    },
};

/// Connects to the server at a URL.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = turnbuckle_client::http::connect("http://localhost:8080/mcp").await?;
/// # Ok(())
/// # }
/// ```
pub async fn connect(url: impl Into<String>) -> Result<Client, ConnectError> {
    Client::default_builder()
        .connect(HttpTarget::new(url))
        .await
}

/// A server at a URL.
///
/// The transport, Streamable HTTP or the older HTTP+SSE, is detected while connecting.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use turnbuckle_client::{Client, http::HttpTarget};
///
/// let server = HttpTarget::new("http://localhost:8080/mcp").header("X-Team", "weather");
/// let client = Client::builder("agent", "1.0").connect(server).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a target does nothing until it is connected to"]
pub struct HttpTarget {
    url: String,
    headers: Vec<(String, String)>,
    connect_timeout: Duration,
    dialer: Dialer,
    authorization: Option<Authorization>,
    preference: TransportPreference,
}

/// The transports to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransportPreference {
    Auto,
    HttpSseOnly,
}

impl HttpTarget {
    /// Creates a target from an `http` URL, or with the feature `tls` an `https` URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            connect_timeout: HttpClientLimits::default().connect,
            dialer: Dialer::tcp(),
            authorization: None,
            preference: TransportPreference::Auto,
        }
    }

    /// Sends a header with every request. Its value is never printed.
    ///
    /// It is sent to the origin of the URL only: redirects to another origin are not followed.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends a token with every request, as `Authorization: Bearer …`.
    pub fn bearer(self, token: impl AsRef<str>) -> Self {
        self.header("Authorization", format!("Bearer {}", token.as_ref()))
    }

    /// Obtains credentials before every request, and again when the server rejects one with 401 or 403.
    ///
    /// A rejected request is sent again with new credentials, if there are any. Obtaining them may take as long as a
    /// user needs to log in; that time does not count against timeouts. Without credentials, calls and connecting fail
    /// with `Authorization`, which names the failed step and a hint.
    ///
    /// Credentials are sent to the origin of the URL only. A [`bearer`](Self::bearer) token, or any configured
    /// `Authorization` header, takes precedence: then the provider is not called.
    pub fn authorization(mut self, authorize: impl CredentialProvider) -> Self {
        self.authorization = Some(Authorization::new(authorize));
        self
    }

    /// Sets the maximum time to connect. Ten seconds by default.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Sets a function that makes connections in place of TCP, for example to a unix socket.
    ///
    /// The URL still determines the host, and whether TLS is used.
    pub fn connector<F, S>(mut self, dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.dialer = Dialer::from_fn(dial);
        self
    }

    /// Makes a raw connection, including TLS.
    ///
    /// For programs that need the raw bytes, such as a checker. No request is sent, so neither are headers or
    /// credentials.
    ///
    /// # Errors
    ///
    /// If the URL is invalid, or connecting fails or takes too long.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub async fn dial(
        &self,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, ConnectError> {
        let url: Url = self.url.parse()?;
        let limits = HttpClientLimits {
            connect: self.connect_timeout,
            ..HttpClientLimits::default()
        };
        let http_client = HttpClient::new(&url, self.dialer.clone(), BaseHeaders::new(), limits)
            .map_err(TransportError::from)?;
        let connection = http_client.dial(&url).await.map_err(TransportError::from)?;
        Ok(TokioIo::new(connection))
    }

    /// Uses HTTP+SSE of 2024-11-05 without trying Streamable HTTP first.
    pub fn http_sse_only(mut self) -> Self {
        self.preference = TransportPreference::HttpSseOnly;
        self
    }
}

/// Prints neither the query, which may contain keys, nor the values of headers.
impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Http")
            .field("url", &self.url.parse::<Url>())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Maximum time to send a message without a response.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);

/// Limits the time to send a message without a response, which is not covered by another timeout.
async fn with_send_timeout(
    auth_wait: Option<&AuthWait>,
    sending: impl Future<Output = Result<(), TransportError>>,
) -> Result<(), TransportError> {
    match within(SEND_TIMEOUT, auth_wait, sending).await {
        Ok(sent) => sent,
        Err(_) => Err(HttpError::SendTimedOut {
            limit: SEND_TIMEOUT,
        }
        .into()),
    }
}

/// Detects the transport of the server, and negotiates a revision.
pub(crate) async fn connect_http(
    http: HttpTarget,
    mut settings: ClientBuilder,
    router: Arc<InboundRouter>,
) -> Result<Arc<ClientInner>, ConnectError> {
    let url: Url = http.url.parse()?;
    let name = Some(url.origin().to_string());
    if let Some(authorization) = &http.authorization {
        settings.declare(authorization.extensions());
    }
    let mut first_error = None;
    if http.preference == TransportPreference::Auto {
        let endpoint = StreamableHttp::new(http.http_client(&url, &router)?, url.clone());
        let transport = Transport::Http(endpoint);
        let router = Arc::clone(&router);
        match ClientInner::negotiate(settings.clone(), transport, name.clone(), router).await {
            Err(error)
                if settings.lifecycle_mode != LifecycleMode::Modern
                    && suggests_http_sse(&error) =>
            {
                first_error = Some(error);
            }
            outcome => return outcome,
        }
    }
    // HTTP+SSE has only legacy revisions.
    settings.lifecycle_mode = LifecycleMode::Legacy;
    let server = HttpSse::new(http.http_client(&url, &router)?, url);
    let outcome = ClientInner::negotiate(settings, Transport::HttpSse(server), name, router).await;
    // If HTTP+SSE fails too, the first error is more helpful.
    outcome.map_err(|error| first_error.unwrap_or(error))
}

impl HttpTarget {
    fn http_client(&self, url: &Url, router: &InboundRouter) -> Result<HttpClient, ConnectError> {
        let mut headers = BaseHeaders::new();
        for (name, value) in &self.headers {
            headers.add(name, value)?;
        }
        let limits = HttpClientLimits {
            connect: self.connect_timeout,
            body: router.limits.max_message_bytes,
        };
        let http_client = HttpClient::new(url, self.dialer.clone(), headers, limits);
        let http_client = http_client.map_err(TransportError::from)?;
        let recorder = router.recorder();
        let recorder = recorder.map(|recorder| recorder.open(OpenEntry::url(self.url.as_str())));
        Ok(http_client
            .with_auth(self.authorization.clone())
            .with_recorder(recorder))
    }
}

/// Returns whether the server rejected the handshake like a server without POST at this URL.
fn suggests_http_sse(error: &ConnectError) -> bool {
    let status = match error {
        ConnectError::Unreachable(TransportError::ErrorResponse(response)) => Some(response.status),
        ConnectError::Rejected { source, status, .. } if !is_modern_error(source) => *status,
        _ => None,
    };
    matches!(
        status,
        Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
    )
}

/// Converts an HTTP error response into the response to a request, if its body contains one.
pub(super) fn to_response(
    response: ErrorResponse,
    id: &RequestId,
    router: &Arc<InboundRouter>,
) -> Result<RawResponse, TransportError> {
    // With a challenge, the body only repeats that authorization is required.
    let error = if response.challenges.is_empty() {
        response
            .json
            .as_ref()
            .and_then(|json| find_error(json, id, router))
    } else {
        None
    };
    match error {
        Some(error) => Ok(RawResponse {
            http: Some(HttpMetadata {
                status: response.status,
                retry_after: response.retry_after,
            }),
            outcome: Err(error),
        }),
        None => Err(to_transport_error(response)),
    }
}

/// Converts an HTTP error response into a transport error.
pub(super) fn to_transport_error(response: ErrorResponse) -> TransportError {
    let challenge = response.challenges.join(", ");
    TransportError::ErrorResponse(Box::new(HttpErrorResponse {
        status: response.status,
        retry_after: response.retry_after,
        challenge: Some(challenge).filter(|challenge| !challenge.is_empty()),
        excerpt: response.excerpt,
    }))
}

/// Returns the error that belongs to a request; an error without an id belongs to the posted request.
fn find_error(json: &Bytes, id: &RequestId, router: &Arc<InboundRouter>) -> Option<RpcError> {
    router.trace(MessageDirection::Received, json);
    let mut found = None;
    message::read(json, |received| match received {
        InboundMessage::Response {
            id: named,
            outcome: Err(error),
        } if named == *id => found = Some(error),
        InboundMessage::ErrorWithoutId(error) => found = Some(error),
        _ => {}
    });
    found
}
