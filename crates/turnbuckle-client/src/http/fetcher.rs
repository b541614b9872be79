//! Small requests for authorization, to places that a stranger may have named.
//!
//! What a server says about where to log in is read before anybody trusts it. So nothing of what the user configured goes along,
//! and where a name leads is looked at before anything is sent there.

mod address;
mod network;

#[cfg(test)]
mod tests;

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::http::{HeaderName, HeaderValue, Method, header::LOCATION};
use bytes::Bytes;
use turnbuckle_auth::fetch::{self, Fetch, FetchError, Request};
use turnbuckle_protocol::guard::BoxFuture;

use self::network::{Forbidden, Network, is_this_machine};
use super::{
    BadUrl, HttpError,
    headers::Headers,
    url::Url,
    wire::{Limits, Redirects, Response, Wire, clean},
};

/// How long a request may take, from the name of the host to the last byte of the answer.
const TOTAL: Duration = Duration::from_secs(30);

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How many bytes an answer may have.
const BODY: usize = 1024 * 1024;

/// How many redirects of a `GET` are followed.
const REDIRECTS: usize = 3;

/// To how many origins connections are kept.
const ORIGINS: usize = 8;

/// Fetches what authorization needs, and goes only where it may.
///
/// - By `https`; by `http` only to this machine.
/// - Never to addresses of a link, such as those at which clouds hand out keys, nor to any that no server has. Into a private
///   network only if the server that sends us there is in one, and to this machine only if that server is on it. What counts
///   is the address that a name leads to, and that address is the one that is dialled.
/// - A `GET` follows three redirects within its origin, a `POST` none.
/// - An answer has at most 1 MiB, and takes at most 30 seconds.
///
/// ```
/// use turnbuckle_client::http::Fetcher;
///
/// let fetcher = Fetcher::for_server("https://api.example.com/mcp")?;
/// # Ok::<(), turnbuckle_client::http::BadUrl>(())
/// ```
pub struct Fetcher {
    network: Network,
    wires: Mutex<Vec<Arc<Wire>>>,
}

impl Fetcher {
    /// Fetches what the server at a URL names.
    pub fn for_server(url: &str) -> Result<Self, BadUrl> {
        Ok(Self::on(Network::seen_from(&url.parse()?)))
    }

    /// Fetches what the user names, such as the issuer of tokens that a server accepts: on this machine, and in private networks
    /// too.
    pub fn trusted() -> Self {
        Self::on(Network::of_the_user())
    }

    fn on(network: Network) -> Self {
        let wires = Mutex::default();
        Self { network, wires }
    }

    async fn exchange(&self, request: Request) -> Result<fetch::Response, FetchError> {
        let mut url = place(&request.url)?;
        let failed = |problem| failure(problem, &request.url);
        let wire = self.wire(&url).map_err(failed)?;
        let headers = headers(&request)?;
        let method = match request.method {
            fetch::Method::Get => Method::GET,
            fetch::Method::Post => Method::POST,
        };
        let body = Bytes::from(request.body);
        let mut redirects = Redirects::up_to(REDIRECTS);
        loop {
            let sent = wire.once(&method, &url, headers[..].into(), &body).await;
            let response = sent.map_err(failed)?;
            if !response.status().is_redirection() {
                return read(response).await.map_err(failed);
            }
            let next = match method == Method::GET {
                true => redirects.follow(&method, &response).ok(),
                false => None,
            };
            url = next.ok_or_else(|| leads_away(&response))?;
            response.skip().await;
        }
    }

    /// Finds the connections to an origin; those to one that was not asked for long are let go.
    fn wire(&self, url: &Url) -> Result<Arc<Wire>, HttpError> {
        let mut wires = self.lock();
        if let Some(wire) = wires.iter().find(|wire| wire.reaches(url)) {
            return Ok(Arc::clone(wire));
        }
        let limits = Limits {
            connect: CONNECT,
            body: BODY,
        };
        let dialer = self.network.dialer();
        let wire = Arc::new(Wire::new(url, dialer, Headers::new(), limits)?);
        if wires.len() == ORIGINS {
            wires.remove(0);
        }
        wires.push(Arc::clone(&wire));
        Ok(wire)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Wire>>> {
        self.wires.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch for Fetcher {
    fn fetch(&self, request: Request) -> BoxFuture<'_, Result<fetch::Response, FetchError>> {
        Box::pin(async move {
            match tokio::time::timeout(TOTAL, self.exchange(request)).await {
                Ok(answer) => answer,
                Err(_) => Err(FetchError::TimedOut { limit: TOTAL }),
            }
        })
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fetcher").field(&self.network).finish()
    }
}

/// Reads a URL that may be asked: by `https`, or on this machine.
fn place(text: &str) -> Result<Url, FetchError> {
    let refused = |reason: String| {
        let shown = text.split(['?', '#']).next().unwrap_or_default();
        // A password may be in it, and whoever reads the error has no use for it.
        let url = match shown.contains('@') {
            true => "***".to_owned(),
            false => clean(shown.as_bytes()),
        };
        FetchError::Url { url, reason }
    };
    let url: Url = text
        .parse()
        .map_err(|problem: BadUrl| refused(problem.to_string()))?;
    match url.origin().is_https() || is_this_machine(url.origin().host()) {
        true => Ok(url),
        false => Err(refused(
            "only `https` is safe to go by, except on this machine".to_owned(),
        )),
    }
}

fn headers(request: &Request) -> Result<Vec<(HeaderName, HeaderValue)>, FetchError> {
    let one = |(name, value): &(&'static str, turnbuckle_auth::Secret)| {
        let unsendable = || FetchError::Unreachable(format!("the header `{name}` cannot be sent"));
        let name: HeaderName = name.parse().map_err(|_| unsendable())?;
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| unsendable())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    request.headers.iter().map(one).collect()
}

async fn read(response: Response) -> Result<fetch::Response, HttpError> {
    let status = response.status().as_u16();
    let headers = response.headers().iter();
    // What is no text says nothing that authorization knows.
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.to_string(), value.to_str().ok()?.to_owned()))
    };
    let headers = headers.filter_map(text).collect();
    let body = response.bytes().await?;
    Ok(fetch::Response::new(status, headers, body))
}

fn leads_away(response: &Response) -> FetchError {
    let location = response.header(LOCATION).unwrap_or_default();
    FetchError::Redirect {
        to: clean(location.as_bytes()),
    }
}

/// Says in the words of authorization why there is no answer.
fn failure(problem: HttpError, url: &str) -> FetchError {
    if let Some(forbidden) = forbidden(&problem) {
        let host = url.parse::<Url>().map(|url| url.origin().host().to_owned());
        return FetchError::Address {
            host: host.unwrap_or_default(),
            address: forbidden.0,
        };
    }
    match problem {
        HttpError::ConnectTimedOut { limit, .. } => FetchError::TimedOut { limit },
        HttpError::TooLarge { limit } => FetchError::TooLarge { limit },
        problem => {
            let reasons: Vec<_> = reasons(&problem).map(ToString::to_string).collect();
            FetchError::Unreachable(clean(reasons.join(": ").as_bytes()))
        }
    }
}

fn forbidden(problem: &HttpError) -> Option<&Forbidden> {
    reasons(problem).find_map(|reason| reason.downcast_ref())
}

fn reasons(problem: &HttpError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = problem;
    std::iter::successors(Some(first), |&reason| reason.source())
}
