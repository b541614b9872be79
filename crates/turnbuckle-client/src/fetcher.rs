//! HTTP requests for authorization, to URLs that an untrusted server may have named.
//!
//! The metadata of a server is fetched before the server is trusted. So these requests carry none of the configured
//! headers, and the resolved IP address is checked before a connection is made.

mod ip_class;
mod network;
#[cfg(test)]
mod tests;

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use ::http::{HeaderName, HeaderValue, Method, header::LOCATION};
use bytes::Bytes;
use turnbuckle_auth::fetch::{self, Fetch, FetchError, FetchRequest};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::error_chain;

use crate::{
    fetcher::network::{ForbiddenAddress, NetworkPolicy, is_this_machine},
    sync::lock,
    transport::{
        http::{HttpError, InvalidHttpUrl, headers::BaseHeaders, url::Url},
        http_client::{HttpClient, HttpClientLimits, HttpResponse, RedirectPolicy, sanitize},
    },
};

/// Maximum time of a request, from name resolution to the last byte of the response.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a response body in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Maximum number of redirects of a `GET`.
const MAX_REDIRECTS: usize = 3;

/// Maximum number of origins with pooled connections.
const MAX_ORIGINS: usize = 8;

/// Fetches documents for authorization, within a network policy.
///
/// - Uses `https`; `http` only to this machine.
/// - Never connects to link-local addresses, such as those of cloud metadata services, nor to unassigned ones. Connects
///   to a private network only if the server that named the URL is in one, and to this machine only if that server runs
///   on it. The policy applies to the resolved address, and the connection is made to that address.
/// - Follows three redirects of a `GET` within its origin, and none of a `POST`.
/// - Accepts at most 1 MiB, within 30 seconds.
///
/// ```
/// use turnbuckle_client::http::HttpFetcher;
///
/// let fetcher = HttpFetcher::for_server("https://api.example.com/mcp")?;
/// # Ok::<(), turnbuckle_client::http::InvalidHttpUrl>(())
/// ```
pub struct HttpFetcher {
    network: NetworkPolicy,
    http_clients: Mutex<Vec<Arc<HttpClient>>>,
}

impl HttpFetcher {
    /// Creates a fetcher for URLs that the server at `url` names.
    pub fn for_server(url: &str) -> Result<Self, InvalidHttpUrl> {
        Ok(Self::on(NetworkPolicy::from_server(&url.parse()?)))
    }

    /// Creates a fetcher for URLs that the user configured, such as the issuer of accepted tokens: also on this
    /// machine, and in private networks.
    pub fn trusted() -> Self {
        Self::on(NetworkPolicy::user_configured())
    }

    fn on(network: NetworkPolicy) -> Self {
        let http_clients = Mutex::default();
        Self {
            network,
            http_clients,
        }
    }

    async fn fetch_once(&self, request: FetchRequest) -> Result<fetch::FetchResponse, FetchError> {
        let mut url = parse_url(&request.url)?;
        let failed = |error| failure(error, &request.url);
        let http_client = self.client_for(&url).map_err(failed)?;
        let headers = headers(&request)?;
        let method = match request.method {
            fetch::FetchMethod::Get => Method::GET,
            fetch::FetchMethod::Post => Method::POST,
        };
        let body = Bytes::from(request.body);
        let mut redirects = RedirectPolicy::up_to(MAX_REDIRECTS);
        loop {
            let sent = http_client
                .send_once(&method, &url, headers[..].into(), &body)
                .await;
            let response = sent.map_err(failed)?;
            if !response.status().is_redirection() {
                return read(response).await.map_err(failed);
            }
            let next = if method == Method::GET {
                redirects.follow(&method, &response).ok()
            } else {
                None
            };
            url = next.ok_or_else(|| changes_origin(&response))?;
            response.drain().await;
        }
    }

    /// Returns the HTTP client for an origin; the least recently created one is dropped if there are too many.
    fn client_for(&self, url: &Url) -> Result<Arc<HttpClient>, HttpError> {
        let mut http_clients = lock(&self.http_clients);
        if let Some(http_client) = http_clients
            .iter()
            .find(|http_client| http_client.is_same_origin(url))
        {
            return Ok(Arc::clone(http_client));
        }
        let limits = HttpClientLimits {
            connect: CONNECT_TIMEOUT,
            body: MAX_BODY_BYTES,
        };
        let dialer = self.network.dialer();
        let http_client = Arc::new(HttpClient::new(url, dialer, BaseHeaders::new(), limits)?);
        if http_clients.len() == MAX_ORIGINS {
            http_clients.remove(0);
        }
        http_clients.push(Arc::clone(&http_client));
        Ok(http_client)
    }
}

impl Fetch for HttpFetcher {
    fn fetch(
        &self,
        request: FetchRequest,
    ) -> BoxFuture<'_, Result<fetch::FetchResponse, FetchError>> {
        Box::pin(async move {
            match tokio::time::timeout(TOTAL_TIMEOUT, self.fetch_once(request)).await {
                Ok(result) => result,
                Err(_) => Err(FetchError::TimedOut {
                    limit: TOTAL_TIMEOUT,
                }),
            }
        })
    }
}

impl fmt::Debug for HttpFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpFetcher").field(&self.network).finish()
    }
}

/// Parses a URL that may be fetched: with `https`, or on this machine.
fn parse_url(text: &str) -> Result<Url, FetchError> {
    let rejected = |reason: String| {
        let without_query = text.split(['?', '#']).next().unwrap_or_default();
        // It may contain a password, which must not appear in the error.
        let url = if without_query.contains('@') {
            "***".to_owned()
        } else {
            sanitize(without_query.as_bytes())
        };
        FetchError::Url { url, reason }
    };
    let url: Url = text
        .parse()
        .map_err(|error: InvalidHttpUrl| rejected(error.to_string()))?;
    if url.origin().is_https() || is_this_machine(url.origin().host()) {
        Ok(url)
    } else {
        Err(rejected(
            "only `https` is allowed, except on this machine".to_owned(),
        ))
    }
}

fn headers(request: &FetchRequest) -> Result<Vec<(HeaderName, HeaderValue)>, FetchError> {
    let one = |(name, value): &(&'static str, turnbuckle_auth::Secret)| {
        let unsendable = || FetchError::Unreachable(format!("the header `{name}` cannot be sent"));
        let name: HeaderName = name.parse().map_err(|_| unsendable())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| unsendable())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    request.headers.iter().map(one).collect()
}

async fn read(response: HttpResponse) -> Result<fetch::FetchResponse, HttpError> {
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    // Headers that are not text are not used by authorization.
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.to_string(), value.to_str().ok()?.to_owned()))
    };
    let headers = headers.filter_map(text).collect();
    let body = response.bytes().await?;
    Ok(fetch::FetchResponse::new(status, headers, body))
}

fn changes_origin(response: &HttpResponse) -> FetchError {
    let location = response.header(LOCATION).unwrap_or_default();
    FetchError::Redirect {
        to: sanitize(location.as_bytes()),
    }
}

/// Converts an HTTP error.
fn failure(error: HttpError, url: &str) -> FetchError {
    if let Some(forbidden) = forbidden(&error) {
        let host = url.parse::<Url>().map(|url| url.origin().host().to_owned());
        return FetchError::Address {
            host: host.unwrap_or_default(),
            address: forbidden.0,
        };
    }
    match error {
        HttpError::ConnectTimedOut { limit, .. } => FetchError::TimedOut { limit },
        HttpError::TooLarge { limit } => FetchError::TooLarge { limit },
        error => FetchError::Unreachable(sanitize(error_chain(&error).as_bytes())),
    }
}

fn forbidden(error: &HttpError) -> Option<&ForbiddenAddress> {
    reasons(error).find_map(|reason| reason.downcast_ref())
}

fn reasons(error: &HttpError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |&reason| reason.source())
}
