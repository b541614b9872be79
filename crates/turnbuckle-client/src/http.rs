//! Servers that are reached by HTTP.

mod answering;
mod endpoint;
mod fetcher;
mod headers;
mod http_sse;
mod pause;
mod reach;
mod url;
mod wire;

use std::{fmt, io, time::Duration};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use turnbuckle_auth::Authorize;

use self::{
    headers::Headers,
    url::Url,
    wire::{Authorization, Dialer, Limits, Wire},
};
use crate::{
    Client, ConnectError, TransportError,
    held::{Held, within},
};

pub(crate) use self::{endpoint::Endpoint, http_sse::HttpSse, reach::reach};
pub use self::{fetcher::Fetcher, headers::BadHeader, url::BadUrl, wire::HttpError};

/// Connects to the server at a URL.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = turnbuckle_client::http::connect("http://localhost:8080/mcp").await?;
/// # Ok(())
/// # }
/// ```
pub async fn connect(url: impl Into<String>) -> Result<Client, ConnectError> {
    Client::plain().connect(Http::new(url)).await
}

/// A server at a URL, and how to reach it.
///
/// Which of its transports a server has, Streamable HTTP or the older HTTP+SSE, is found out while connecting.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use turnbuckle_client::{Client, http::Http};
///
/// let server = Http::new("http://localhost:8080/mcp").header("X-Team", "weather");
/// let client = Client::builder("agent", "1.0").connect(server).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "nothing is reached before it is connected to"]
pub struct Http {
    url: String,
    headers: Vec<(String, String)>,
    connect_timeout: Duration,
    dialer: Dialer,
    authorization: Option<Authorization>,
    ways: Ways,
}

/// Which transports are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ways {
    Both,
    HttpSse,
}

impl Http {
    /// Names the endpoint: an `http` URL, or with the feature `tls` an `https` one.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            connect_timeout: Limits::default().connect,
            dialer: Dialer::tcp(),
            authorization: None,
            ways: Ways::Both,
        }
    }

    /// Sends a header with every request. Its value is never shown.
    ///
    /// It goes to the origin of the URL and nowhere else: a redirect that leads away is not followed.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sends a token with every request, as `Authorization: Bearer …`.
    pub fn bearer(self, token: impl AsRef<str>) -> Self {
        self.header("Authorization", format!("Bearer {}", token.as_ref()))
    }

    /// Asks for credentials before every request, and again whenever the server refuses one with 401 or 403.
    ///
    /// What was refused is sent again with other credentials, if there are any. Getting them may take as long as a person
    /// needs to log in: meanwhile no call runs out of patience, and neither does connecting. If there are none, calls and
    /// connecting fail with `Authorization`, which says at which step and what to do.
    ///
    /// Credentials go to the origin of the URL and nowhere else. A [`bearer`](Self::bearer), or any header `Authorization`
    /// that was set, wins: then nobody is asked.
    pub fn authorization(mut self, authorize: impl Authorize) -> Self {
        self.authorization = Some(Authorization::new(authorize));
        self
    }

    /// Bounds how long making a connection may take. Ten seconds by default.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Makes connections in another way than by TCP, for example to a Unix socket.
    ///
    /// The URL still names the host and says whether TLS is spoken.
    pub fn through<F, S>(mut self, dial: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        self.dialer = Dialer::through(dial);
        self
    }

    /// Makes a connection, TLS included, and leaves talking to you.
    ///
    /// For those who want to see the very bytes, such as a checker. Neither the configured headers nor any credentials are
    /// sent: nobody has asked anything yet.
    ///
    /// # Errors
    ///
    /// If the URL is none, or nobody can be reached there in time.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub async fn dial(
        &self,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, ConnectError> {
        let url: Url = self.url.parse()?;
        let limits = Limits {
            connect: self.connect_timeout,
            ..Limits::default()
        };
        let wire = Wire::new(&url, self.dialer.clone(), Headers::new(), limits)
            .map_err(TransportError::from)?;
        let connection = wire.dial(&url).await.map_err(TransportError::from)?;
        Ok(TokioIo::new(connection))
    }

    /// Speaks HTTP+SSE of 2024-11-05 at once, without trying Streamable HTTP first.
    pub fn only_http_sse(mut self) -> Self {
        self.ways = Ways::HttpSse;
        self
    }
}

/// Shows neither the query, in which people put keys, nor the values of headers.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Http")
            .field("url", &self.url.parse::<Url>())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// How long a server may take to say that it has a message.
const TAKING: Duration = Duration::from_secs(60);

/// Bounds sending what nobody answers: nobody else watches the clock.
async fn taken(
    held: Option<&Held>,
    sending: impl Future<Output = Result<(), TransportError>>,
) -> Result<(), TransportError> {
    match within(TAKING, held, sending).await {
        Ok(sent) => sent,
        Err(_) => Err(HttpError::NotTaken { limit: TAKING }.into()),
    }
}
