//! Hearing from the browser, on this machine.

mod answer;
mod page;

#[cfg(test)]
mod tests;

use std::{
    io,
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{net::TcpListener, time};
use turnbuckle_protocol::guard::BoxFuture;

use super::{device::DeviceCode, form, interact::Interact};
use crate::{Failure, Secret, Step, place::Place};
use answer::Expected;

/// The person at this machine: opens a browser, and hears from it at a port of `127.0.0.1`.
///
/// The port is open from the moment on that a login begins until its answer has come, and nothing but that answer is
/// heard: what does not have the `state` of the login is turned away. The browser then shows a small page that says that the
/// window can be closed.
///
/// Opening the browser is left to a function, since only the program knows how, and whether to print the URL as well. It
/// must not hand the URL to a shell.
pub struct Loopback {
    open: Open,
    tell: Option<Tell>,
    fixed: Option<String>,
    patience: Duration,
    listening: Mutex<Vec<Listening>>,
}

type Open = Box<dyn Fn(&str) -> io::Result<()> + Send + Sync>;
type Tell = Box<dyn Fn(&DeviceCode) + Send + Sync>;

/// A port that is open, and what the browser will be told to come back to.
struct Listening {
    redirect_uri: String,
    listener: TcpListener,
}

impl Loopback {
    /// How long somebody has to log in.
    pub const PATIENCE: Duration = Duration::from_secs(5 * 60);

    /// How many ports wait for a browser at one time; of more, the oldest is closed.
    const MOST_PORTS: usize = 8;

    /// Opens browsers with a function.
    pub fn new(open: impl Fn(&str) -> io::Result<()> + Send + Sync + 'static) -> Loopback {
        Loopback {
            open: Box::new(open),
            tell: None,
            fixed: None,
            patience: Loopback::PATIENCE,
            listening: Mutex::default(),
        }
    }

    /// Always comes back to this URI, as it was registered for the client: `http://127.0.0.1:8976/callback`.
    ///
    /// Its host is `127.0.0.1` or `localhost`, and it names its port. Without it, any port that is free is used, and the one of
    /// the login before if that is free.
    #[must_use]
    pub fn at(mut self, uri: impl Into<String>) -> Loopback {
        self.fixed = Some(uri.into());
        self
    }

    /// Shows codes for logins on another device with a function.
    #[must_use]
    pub fn show_codes(mut self, tell: impl Fn(&DeviceCode) + Send + Sync + 'static) -> Loopback {
        self.tell = Some(Box::new(tell));
        self
    }

    /// Waits this long for a login, instead of [`PATIENCE`](Loopback::PATIENCE).
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Loopback {
        self.patience = patience;
        self
    }

    async fn listen(&self, wanted: Option<&str>) -> Result<String, Failure> {
        if let Some(fixed) = &self.fixed {
            return self.listen_exactly(fixed).await;
        }
        if let Some(wanted) = wanted.filter(|wanted| is_ours(wanted))
            && let Ok(uri) = self.listen_exactly(wanted).await
        {
            return Ok(uri);
        }
        let listener = bind(0).await?;
        let port = listener.local_addr().map_err(no_port)?.port();
        Ok(self.keep(format!("http://127.0.0.1:{port}/callback"), listener))
    }

    async fn listen_exactly(&self, uri: &str) -> Result<String, Failure> {
        // Left open by a login that ended before the browser was asked.
        let before = self.take(uri);
        let listener = match before {
            Some(listener) => listener,
            None => bind(port_of(uri)?).await?,
        };
        Ok(self.keep(uri.to_owned(), listener))
    }

    fn keep(&self, redirect_uri: String, listener: TcpListener) -> String {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if listening.len() == Loopback::MOST_PORTS {
            listening.remove(0);
        }
        listening.push(Listening {
            redirect_uri: redirect_uri.clone(),
            listener,
        });
        redirect_uri
    }

    fn take(&self, redirect_uri: &str) -> Option<TcpListener> {
        let mut listening = self
            .listening
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let at = listening
            .iter()
            .position(|open| open.redirect_uri == redirect_uri)?;
        Some(listening.remove(at).listener)
    }

    async fn ask(&self, url: &str) -> Result<String, Failure> {
        let (listener, expected) = self.expected(url).ok_or_else(|| {
            Failure::new(
                Step::Authorization,
                "the login does not come back to a port that is open",
            )
        })?;
        (self.open)(url).map_err(|error| {
            Failure::new(
                Step::Authorization,
                format!("the browser could not be opened: {error}"),
            )
            .cure("open the URL of the login yourself, in a browser on this machine")
        })?;
        let answered = answer::wait(listener, Arc::new(expected));
        match time::timeout(self.patience, answered).await {
            Ok(url) => Ok(url),
            Err(_) => Err(self.nobody_came()),
        }
    }

    /// Where the browser will come back to, and what it will bring along: both stand in the URL that it is sent to.
    fn expected(&self, url: &str) -> Option<(TcpListener, Expected)> {
        let place = Place::parse(url)?;
        let query = place.query.strip_prefix('?')?;
        let value = |name: &str| form::pairs(query).find(|(own, _)| own == name);
        let (_, redirect_uri) = value("redirect_uri")?;
        let (_, state) = value("state")?;
        let listener = self.take(&redirect_uri)?;
        let expected = Expected {
            redirect_uri,
            state: Secret::new(state),
        };
        Some((listener, expected))
    }

    fn nobody_came(&self) -> Failure {
        let reason = format!("no answer from the browser within {:?}", self.patience);
        Failure::new(Step::Callback, reason).cure(
            "log in again, and finish in the browser on this machine; if it showed an error instead of a login, \
             the authorization server does not know this client or its redirect URI",
        )
    }
}

impl Interact for Loopback {
    fn redirect_uri<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.listen(wanted))
    }

    fn visit<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, Failure>> {
        Box::pin(self.ask(url))
    }

    fn device<'a>(&'a self, code: &'a DeviceCode) -> BoxFuture<'a, Result<(), Failure>> {
        let page = code.verification_uri_complete.as_ref();
        let page = page.unwrap_or(&code.verification_uri);
        let told = match &self.tell {
            Some(tell) => {
                tell(code);
                Ok(())
            }
            None => (self.open)(page).map_err(|error| {
                Failure::new(
                    Step::DeviceCode,
                    format!("the browser could not be opened: {error}"),
                )
            }),
        };
        Box::pin(std::future::ready(told))
    }
}

async fn bind(port: u16) -> Result<TcpListener, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(no_port)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is the function of a `map_err`"
)]
fn no_port(error: io::Error) -> Failure {
    Failure::new(
        Step::Authorization,
        format!("no port of this machine is open for the answer of the browser: {error}"),
    )
    .cure("close the program that has the port, or let another one be chosen")
}

/// Whether a URI is one that we choose ourselves, and not one of another program with the same registration.
fn is_ours(uri: &str) -> bool {
    port_of(uri).is_ok_and(|port| uri == format!("http://127.0.0.1:{port}/callback"))
}

fn port_of(uri: &str) -> Result<u16, Failure> {
    let port = Place::parse(uri).and_then(|place| {
        let origin = place.origin.to_ascii_lowercase();
        let hosts = ["http://127.0.0.1:", "http://localhost:"];
        let port = hosts.iter().find_map(|host| origin.strip_prefix(host))?;
        port.parse().ok().filter(|port| *port != 0)
    });
    port.ok_or_else(|| {
        Failure::new(
            Step::Authorization,
            format!("{uri:?} is no place on this machine that a browser could come back to"),
        )
        .cure("use a redirect URI as `http://127.0.0.1:8976/callback`")
    })
}
