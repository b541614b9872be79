//! HTTP client with limits on time and size.

use std::{fmt, pin::Pin, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connect, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use turnbuckle_text::{Secret, sanitize::excerpt, url::HttpUrl};

use super::EmbeddingError;
use crate::Redactor;

/// Maximum size of a response: five times a hundred embeddings of the largest models.
const MAX_RESPONSE_BYTES: usize = 32 * 1024 * 1024;
/// Maximum number of bytes read from an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;
/// Maximum number of characters of an error message.
const MAX_ERROR_MESSAGE_CHARS: usize = 200;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);

type ResponseFuture = Pin<
    Box<dyn Future<Output = Result<Response<Incoming>, hyper_util::client::legacy::Error>> + Send>,
>;

/// Sends requests, with or without TLS.
pub(super) struct EmbeddingHttpClient(
    Box<dyn Fn(Request<Full<Bytes>>) -> ResponseFuture + Send + Sync>,
);

/// Outcome of one request.
pub(super) enum HttpReply {
    /// The complete body.
    Body(Bytes),
    /// A transient error, with `Retry-After` if the server sent it.
    RetryLater {
        error: EmbeddingError,
        after: Option<Duration>,
    },
}

impl EmbeddingHttpClient {
    /// Creates a client for `http` URLs.
    pub(super) fn http() -> Self {
        Self::with_connector(tcp_connector())
    }

    fn with_connector<C: Connect + Clone + Send + Sync + 'static>(connector: C) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .build(connector);
        Self(Box::new(move |request| Box::pin(client.request(request))))
    }

    pub(super) async fn post(
        &self,
        url: &EndpointUrl,
        key: Option<&Secret>,
        body: Bytes,
    ) -> Result<HttpReply, EmbeddingError> {
        let response = (self.0)(request(url, key, body))
            .await
            .map_err(|error| EmbeddingError::Unreachable(error.into()))?;
        let status = response.status();
        if status.is_success() {
            let body = read(response.into_body(), MAX_RESPONSE_BYTES).await?;
            return Ok(HttpReply::Body(body));
        }
        if status.is_redirection() {
            return Err(EmbeddingError::Redirect(status));
        }
        let after = retry_after(&response);
        let body = read(response.into_body(), MAX_ERROR_BODY_BYTES).await;
        let message = error_message(&body.unwrap_or_default(), key);
        let error = EmbeddingError::ErrorResponse { status, message };
        if is_transient(status) {
            Ok(HttpReply::RetryLater { error, after })
        } else {
            Err(error)
        }
    }
}

impl fmt::Debug for EmbeddingHttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EmbeddingHttpClient")
    }
}

/// Returns the TCP connector, which TLS wraps if used.
fn tcp_connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.enforce_http(false);
    connector
}

fn request(url: &EndpointUrl, key: Option<&Secret>, body: Bytes) -> Request<Full<Bytes>> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.uri();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    // A small compressed body could decompress to a huge one and bypass the limit.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(value) = key.and_then(authorization) {
        headers.insert(AUTHORIZATION, value);
    }
    request
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, EmbeddingError> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(EmbeddingError::ResponseTooLarge(limit))
        }
        Err(error) => Err(EmbeddingError::Unreachable(error)),
    }
}

/// Returns the value of the `Authorization` header, or `None` if a header cannot contain the key.
pub(super) fn authorization(key: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns the start of an error message, redacted: the server may repeat the request, including the key.
fn error_message(body: &[u8], key: Option<&Secret>) -> String {
    let text = String::from_utf8_lossy(body);
    let text = match key {
        Some(key) => text.replace(key.expose(), "***"),
        None => text.into_owned(),
    };
    excerpt(
        &Redactor::standard().redact(&text).text,
        MAX_ERROR_MESSAGE_CHARS,
    )
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 500 | 502 | 503 | 504)
}

fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// The URL of an endpoint, `…/embeddings`.
#[derive(Clone, Debug)]
pub(super) struct EndpointUrl(Uri);

impl EndpointUrl {
    pub(super) fn new(base: &str) -> Result<Self, EmbeddingError> {
        let base = base.trim().trim_end_matches('/');
        let base = base.strip_suffix("/embeddings").unwrap_or(base);
        let parsed = HttpUrl::parse(base).map_err(|_| EmbeddingError::InvalidUrl)?;
        if !parsed.query.is_empty() {
            return Err(EmbeddingError::InvalidUrl);
        }
        let uri = format!("{base}/embeddings").parse();
        uri.map(Self).map_err(|_| EmbeddingError::InvalidUrl)
    }

    pub(super) fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    pub(super) fn uri(&self) -> Uri {
        self.0.clone()
    }
}

#[cfg(feature = "tls")]
pub(super) mod tls {
    //! TLS with the platform's certificate verifier.

    use std::sync::Arc;

    use hyper_rustls::{ConfigBuilderExt as _, HttpsConnectorBuilder};
    use rustls::{ClientConfig, crypto::ring};

    use super::{EmbeddingError, EmbeddingHttpClient, tcp_connector};

    pub(in super::super) const IS_AVAILABLE: bool = true;

    /// Creates a client that only connects to `https` URLs.
    pub(in super::super) fn https_client() -> Result<EmbeddingHttpClient, EmbeddingError> {
        // Set the crypto provider explicitly: the program may have installed none, or another one.
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| EmbeddingError::TlsSetup(error.into()))?
            .try_with_platform_verifier()
            .map_err(|error| EmbeddingError::TlsSetup(error.into()))?
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp_connector());
        Ok(EmbeddingHttpClient::with_connector(connector))
    }
}

#[cfg(not(feature = "tls"))]
pub(super) mod tls {
    //! Replacement for TLS in builds without it.

    use super::{EmbeddingError, EmbeddingHttpClient};

    pub(in super::super) const IS_AVAILABLE: bool = false;

    /// Fails: this build supports `http` URLs only.
    pub(in super::super) fn https_client() -> Result<EmbeddingHttpClient, EmbeddingError> {
        Err(EmbeddingError::TlsUnavailable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_url_may_end_with_a_slash_or_the_endpoint() {
        for base in [
            "http://localhost:1/v1",
            "http://localhost:1/v1/",
            " http://localhost:1/v1/embeddings ",
        ] {
            let url = EndpointUrl::new(base).unwrap();
            assert_eq!(url.uri().to_string(), "http://localhost:1/v1/embeddings");
        }
        assert!(
            EndpointUrl::new("https://api.internal/v1")
                .unwrap()
                .is_https()
        );
    }

    #[test]
    fn an_invalid_url_is_rejected() {
        for base in [
            "",
            "localhost:1",
            "ftp://host/v1",
            "http://",
            "http://ada:pw@host/v1",
            "http://host/v1?key=1",
            "http://ho st/",
        ] {
            assert!(
                matches!(EndpointUrl::new(base), Err(EmbeddingError::InvalidUrl)),
                "{base}"
            );
        }
    }
}
