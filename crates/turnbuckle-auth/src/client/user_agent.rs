//! The user and the browser: the interface for logins, and its implementation with a loopback redirect (RFC 8252).

#[cfg(test)]
mod tests;

use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{net::TcpListener, time};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::{
    percent::form_pairs,
    url::{HttpScheme, HttpUrl},
};

use super::{
    callback_server::{self, ExpectedCallback},
    device::DeviceCode,
};
use crate::{AuthorizationError, AuthorizationStep, Secret, sync::lock};

/// Lets the user log in, in a browser or on another device.
///
/// [`LoopbackUserAgent`] uses the browser of this machine.
pub trait UserAgent: Send + Sync + 'static {
    /// Returns the redirect URI of the login, and starts to listen there.
    ///
    /// `preferred` is the URI that the client is registered with. If another one is returned, the client registers
    /// again.
    fn redirect_uri<'a>(
        &'a self,
        preferred: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>>;

    /// Opens a URL in the browser, and returns the URL (or its query) that the browser was redirected to.
    ///
    /// The URL contains the `redirect_uri` and the `state` of the login. The caller validates the result.
    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>>;

    /// Shows a code to enter on another device. The caller waits for the login.
    fn show_device_code<'a>(
        &'a self,
        code: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>>;
}

/// Opens the browser of this machine, and receives the authorization response at a port of `127.0.0.1`.
///
/// The port is open from the start of a login until its response; requests without the `state` of the login are
/// rejected. The browser then shows a page that asks the user to close the window.
///
/// The program supplies the function that opens the browser. It must not pass the URL to a shell.
pub struct LoopbackUserAgent {
    open_browser: OpenUrlFn,
    show_code: Option<ShowCodeFn>,
    redirect_uri: Option<String>,
    timeout: Duration,
    listeners: Mutex<Vec<RedirectListener>>,
}

type OpenUrlFn = Box<dyn Fn(&str) -> io::Result<()> + Send + Sync>;
type ShowCodeFn = Box<dyn Fn(&DeviceCode) + Send + Sync>;

/// An open port and its redirect URI.
struct RedirectListener {
    redirect_uri: String,
    listener: TcpListener,
}

impl LoopbackUserAgent {
    /// Default time for a login.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);

    /// Maximum number of open ports; beyond it the oldest is closed.
    const MAX_OPEN_PORTS: usize = 8;

    /// Opens browsers with a function.
    pub fn new(open: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> LoopbackUserAgent {
        LoopbackUserAgent {
            open_browser: Box::new(open),
            show_code: None,
            redirect_uri: None,
            timeout: LoopbackUserAgent::DEFAULT_TIMEOUT,
            listeners: Mutex::default(),
        }
    }

    /// Always uses this redirect URI, which must be registered for the client, such as
    /// `http://127.0.0.1:8976/callback`.
    ///
    /// The host must be `127.0.0.1` or `localhost`, with a port. Without it, the port of the previous login or any free
    /// port is used.
    #[must_use]
    pub fn with_redirect_uri(mut self, uri: impl Into<String>) -> LoopbackUserAgent {
        self.redirect_uri = Some(uri.into());
        self
    }

    /// Shows device codes with a function.
    #[must_use]
    pub fn on_device_code(
        mut self,
        show_code: impl Fn(&DeviceCode) + Send + Sync + 'static,
    ) -> LoopbackUserAgent {
        self.show_code = Some(Box::new(show_code));
        self
    }

    /// Sets the time for a login; by default [`DEFAULT_TIMEOUT`](LoopbackUserAgent::DEFAULT_TIMEOUT).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> LoopbackUserAgent {
        self.timeout = timeout;
        self
    }

    async fn listen(&self, preferred: Option<&str>) -> Result<String, AuthorizationError> {
        if let Some(uri) = &self.redirect_uri {
            return self.listen_exactly(uri).await;
        }
        if let Some(preferred) = preferred.filter(|preferred| is_default_redirect_uri(preferred))
            && let Ok(uri) = self.listen_exactly(preferred).await
        {
            return Ok(uri);
        }
        let listener = bind(0).await?;
        let port = listener.local_addr().map_err(bind_error)?.port();
        Ok(self.add_listener(format!("http://127.0.0.1:{port}/callback"), listener))
    }

    async fn listen_exactly(&self, uri: &str) -> Result<String, AuthorizationError> {
        // Left open by a login that ended before the browser was opened.
        let before = self.take_listener(uri);
        let listener = match before {
            Some(listener) => listener,
            None => bind(port_of(uri)?).await?,
        };
        Ok(self.add_listener(uri.to_owned(), listener))
    }

    fn add_listener(&self, redirect_uri: String, listener: TcpListener) -> String {
        let mut listeners = lock(&self.listeners);
        if listeners.len() == LoopbackUserAgent::MAX_OPEN_PORTS {
            listeners.remove(0);
        }
        listeners.push(RedirectListener {
            redirect_uri: redirect_uri.clone(),
            listener,
        });
        redirect_uri
    }

    fn take_listener(&self, redirect_uri: &str) -> Option<TcpListener> {
        let mut listeners = lock(&self.listeners);
        let at = listeners
            .iter()
            .position(|open| open.redirect_uri == redirect_uri)?;
        Some(listeners.remove(at).listener)
    }

    async fn run_login(&self, url: &str) -> Result<String, AuthorizationError> {
        let (listener, expected) = self.expected_callback(url).ok_or_else(|| {
            AuthorizationError::new(
                AuthorizationStep::Authorization,
                "the redirect URI of the login is not an open port",
            )
        })?;
        (self.open_browser)(url).map_err(|error| {
            AuthorizationError::new(
                AuthorizationStep::Authorization,
                format!("cannot open the browser: {error}"),
            )
            .with_hint("open the login URL yourself, in a browser on this machine")
        })?;
        let callback = callback_server::wait_for_callback(listener, Arc::new(expected));
        match time::timeout(self.timeout, callback).await {
            Ok(url) => Ok(url),
            Err(_) => Err(self.timed_out()),
        }
    }

    /// Returns the listener of a login, and the redirect to expect. Both follow from the URL of the login.
    fn expected_callback(&self, url: &str) -> Option<(TcpListener, ExpectedCallback)> {
        let url = HttpUrl::parse(url).ok()?;
        let query = url.query.strip_prefix('?')?;
        let value = |name: &str| form_pairs(query).find(|(own, _)| own == name);
        let (_, redirect_uri) = value("redirect_uri")?;
        let (_, state) = value("state")?;
        let listener = self.take_listener(&redirect_uri)?;
        let expected = ExpectedCallback {
            redirect_uri,
            state: Secret::new(state),
        };
        Some((listener, expected))
    }

    fn timed_out(&self) -> AuthorizationError {
        let reason = format!("no response from the browser within {:?}", self.timeout);
        AuthorizationError::new(AuthorizationStep::Callback, reason).with_hint(
            "log in again, and finish in the browser on this machine; if it showed an error instead of a login page, \
             the authorization server does not know this client or its redirect URI",
        )
    }
}

impl UserAgent for LoopbackUserAgent {
    fn redirect_uri<'a>(
        &'a self,
        preferred: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(self.listen(preferred))
    }

    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(self.run_login(url))
    }

    fn show_device_code<'a>(
        &'a self,
        code: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        let page = code.verification_uri_complete.as_ref();
        let page = page.unwrap_or(&code.verification_uri);
        let result = match &self.show_code {
            Some(show_code) => {
                show_code(code);
                Ok(())
            }
            None => (self.open_browser)(page).map_err(|error| {
                AuthorizationError::new(
                    AuthorizationStep::DeviceCode,
                    format!("cannot open the browser: {error}"),
                )
            }),
        };
        Box::pin(std::future::ready(result))
    }
}

async fn bind(port: u16) -> Result<TcpListener, AuthorizationError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(bind_error)
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn bind_error(error: io::Error) -> AuthorizationError {
    AuthorizationError::new(
        AuthorizationStep::Authorization,
        format!("cannot open a local port for the response of the browser: {error}"),
    )
    .with_hint("stop the program that uses the port, or do not configure a port")
}

/// Returns whether the URI is one chosen here, not one of another program with the same registration.
fn is_default_redirect_uri(uri: &str) -> bool {
    port_of(uri).is_ok_and(|port| uri == format!("http://127.0.0.1:{port}/callback"))
}

fn port_of(uri: &str) -> Result<u16, AuthorizationError> {
    let is_ours = |url: &HttpUrl<'_>| {
        let host = url.authority.host.to_string();
        url.scheme == HttpScheme::Http && matches!(&*host, "127.0.0.1" | "localhost")
    };
    let url = HttpUrl::parse(uri).ok().filter(is_ours);
    let port = url.and_then(|url| url.authority.port.filter(|port| *port != 0));
    port.ok_or_else(|| {
        AuthorizationError::new(
            AuthorizationStep::Authorization,
            format!("{uri:?} is not a valid loopback redirect URI"),
        )
        .with_hint("use a redirect URI such as `http://127.0.0.1:8976/callback`")
    })
}
