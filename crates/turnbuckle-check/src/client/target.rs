//! The client that is checked, and how it is run.

use std::{fmt, io, pin::Pin, sync::Arc};

use tokio::{
    io::{DuplexStream, duplex},
    sync::mpsc,
};

use turnbuckle_client::stdio::ProcessObserver;

use super::command::{BadCommand, Command};
use crate::rule::On;

/// How many bytes a direction of a connection within this process holds.
const BUFFER: usize = 256 * 1024;

/// A client to check.
///
/// It is run many times, against servers that are played for it: it connects, and does what it does with a server.
#[derive(Clone)]
pub struct ClientTarget {
    pub(crate) label: String,
    pub(crate) way: Way,
}

/// How a client is run.
#[derive(Clone)]
pub(crate) enum Way {
    /// As a program.
    Command(Command),
    /// Within this process.
    Within(Carrier, Runner),
}

/// What carries messages between a client and us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Streamable HTTP, or HTTP+SSE where the revision has nothing else.
    Http,
    /// A line for each message.
    Lines,
}

pub(crate) type Runner = Arc<dyn Fn(Dial) -> Running + Send + Sync>;
pub(crate) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The way to the server that is played for a client within this process.
#[derive(Clone, Debug)]
pub struct Dial {
    pub(crate) url: String,
    pub(crate) door: mpsc::Sender<DuplexStream>,
}

impl ClientTarget {
    /// A program: the words of its command line, in which `{url}` stands for the server's address, or `{server}` for
    /// the command that starts the server.
    ///
    /// `play` is a command that takes an address as its last word, and does what
    /// [`stdio_bridge`](crate::stdio_bridge) does.
    ///
    /// # Errors
    ///
    /// If the words name no program, or neither place or both.
    pub fn command(
        words: impl IntoIterator<Item = impl Into<String>>,
        play: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, BadCommand> {
        let command = Command::new(
            words.into_iter().map(Into::into).collect(),
            play.into_iter().map(Into::into).collect(),
        )?;
        Ok(Self {
            label: command.label(),
            way: Way::Command(command),
        })
    }

    /// Reports the start and the end of each process, if the client is a program.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn ProcessObserver>) -> Self {
        if let Way::Command(command) = &mut self.way {
            command.observer = Some(observer);
        }
        self
    }

    /// A client within this process that speaks HTTP.
    pub fn on_http<F>(
        label: impl Into<String>,
        run: impl Fn(Dial) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::within(label.into(), Carrier::Http, run)
    }

    /// A client within this process that speaks lines.
    pub fn on_lines<F>(
        label: impl Into<String>,
        run: impl Fn(Dial) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::within(label.into(), Carrier::Lines, run)
    }

    fn within<F>(
        label: String,
        carrier: Carrier,
        run: impl Fn(Dial) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runner: Runner = Arc::new(move |dial| Box::pin(run(dial)));
        Self {
            label,
            way: Way::Within(carrier, runner),
        }
    }

    pub(crate) fn carrier(&self) -> Carrier {
        match &self.way {
            Way::Command(command) => command.carrier(),
            Way::Within(carrier, _) => *carrier,
        }
    }

    /// Says whether a rule can be seen on the client's transport.
    pub(crate) fn shows(&self, on: On, http_sse: bool) -> bool {
        let (http, lines) = match self.carrier() {
            Carrier::Http => (true, false),
            Carrier::Lines => (false, true),
        };
        match on {
            On::Any => true,
            On::Http => http && !http_sse,
            On::HttpSse => http && http_sse,
            On::Lines => lines,
            On::Stdio => lines && matches!(self.way, Way::Command(_)),
        }
    }

    /// Returns the name of the transport, as reports show it.
    pub(crate) fn transport(&self, http_sse: bool) -> &'static str {
        match (self.carrier(), &self.way) {
            (Carrier::Http, _) if http_sse => "http+sse",
            (Carrier::Http, _) => "http",
            (Carrier::Lines, Way::Command(_)) => "stdio",
            (Carrier::Lines, Way::Within(..)) => "lines",
        }
    }
}

impl Dial {
    /// The way to a server within this process, and where its connections arrive.
    pub(crate) fn new(url: String) -> (Self, mpsc::Receiver<DuplexStream>) {
        let (door, arriving) = mpsc::channel(64);
        (Self { url, door }, arriving)
    }

    /// Returns the address of the endpoint, on HTTP.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes a connection: for HTTP as many as wanted, on lines each is a process of its own.
    ///
    /// # Errors
    ///
    /// If the server is gone.
    pub async fn connect(&self) -> io::Result<DuplexStream> {
        let (near, far) = duplex(BUFFER);
        match self.door.send(far).await {
            Ok(()) => Ok(near),
            Err(_) => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

impl fmt::Debug for ClientTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientTarget").field(&self.label).finish()
    }
}
