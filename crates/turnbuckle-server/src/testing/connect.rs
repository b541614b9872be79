//! Who a peer is, and how it is joined to a server.

use std::{fmt, pin::Pin, time::Duration};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use turnbuckle_protocol::{
    Revision,
    types::{LogLevel, tasks::EXTENSION},
};

use super::{
    HttpClient, PATIENCE, Peer, Player, Transport, anything, http,
    peer::Voice,
    recording::Recording,
    wire::{ByteStreams, HttpSseWire, HttpWire, Wire},
};
use crate::{http::Http, lines::Lines};

/// A peer that is about to connect: await it, or first say who it is.
///
/// Unless told otherwise it speaks the newest revision and can do nothing beside calling.
#[must_use = "nothing happens before it is awaited"]
pub struct Connect {
    place: Place,
    revision: Revision,
    capabilities: Option<Value>,
    log_level: Option<LogLevel>,
    tasks: bool,
    player: Option<Player>,
    patience: Duration,
}

/// Where the server is.
enum Place {
    Lines(Lines),
    Streams(ByteStreams),
    Http(HttpClient),
    HttpSse(HttpClient),
}

impl Connect {
    /// Meets a server over lines, with options.
    pub fn lines(lines: Lines) -> Self {
        Self::at(Place::Lines(lines))
    }

    /// Meets whoever is at the other end of two byte streams: a transport of your own, or another process.
    pub fn streams(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let streams = ByteStreams::new(Box::new(reader), Box::new(writer));
        Self::at(Place::Streams(streams))
    }

    /// Meets a server over Streamable HTTP, with options and without a socket.
    pub fn http(options: Http) -> Self {
        Self::at(Place::Http(http(options)))
    }

    /// Meets a server over HTTP+SSE at `/sse`, which the options must offer.
    pub fn http_sse(options: Http) -> Self {
        Self::at(Place::HttpSse(http(options)))
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            revision: Revision::MODERN,
            capabilities: None,
            log_level: None,
            tasks: false,
            player: None,
            patience: PATIENCE,
        }
    }

    /// Speaks a revision with a handshake, as `2025-11-25`, and shakes hands.
    ///
    /// # Panics
    ///
    /// If there is no such revision, or if it has no handshake.
    pub fn legacy(self, revision: &str) -> Self {
        match revision.parse::<Revision>() {
            Ok(revision) if revision <= Revision::LATEST_LEGACY => self.speaking(revision),
            _ => panic!("`{revision}` is no revision with a handshake"),
        }
    }

    /// Speaks the revision without a handshake: every request says everything.
    pub fn modern(self) -> Self {
        self.speaking(Revision::MODERN)
    }

    /// Speaks a revision, whichever it is.
    pub fn speaking(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// Says what the client can do. By default nothing; everything there is to ask, if it [answers](Self::answer).
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Wants to hear log messages, down to a level.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Calls tools as tasks, wherever revision and tool have them, and waits for what comes of them.
    pub fn tasks(mut self) -> Self {
        self.tasks = true;
        self
    }

    /// Answers questions: method and parameters in, the result back. Which way a question comes makes no difference.
    pub fn answer(mut self, player: impl FnMut(&str, &Value) -> Value + Send + 'static) -> Self {
        self.player = Some(Box::new(player));
        self
    }

    /// Sets how long the peer waits for anything before the test fails; 100 seconds by default.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn join(self) -> Peer {
        let transport = self.place.transport();
        let recording = Recording::new(format_args!("over {transport}, {}", self.revision));
        let capabilities = self.said_capabilities();
        let voice = Voice {
            revision: self.revision,
            log_level: self.log_level,
            tasks: self.tasks,
            capabilities,
        };
        let wire = self.place.open().await;
        let mut peer = Peer::new(wire, voice, recording, self.player, self.patience);
        peer.introduce().await;
        peer
    }

    fn said_capabilities(&self) -> Value {
        let mut said = match (&self.capabilities, &self.player) {
            (Some(said), _) => said.clone(),
            (None, Some(_)) => anything(),
            (None, None) => json!({}),
        };
        // Earlier revisions have tasks too, but nothing that clients would say of them.
        if self.tasks && self.revision == Revision::MODERN {
            said["extensions"][EXTENSION] = json!({});
        }
        said
    }
}

impl Place {
    fn transport(&self) -> Transport {
        match self {
            Self::Lines(_) | Self::Streams(_) => Transport::Lines,
            Self::Http(_) => Transport::Http,
            Self::HttpSse(_) => Transport::HttpSse,
        }
    }

    async fn open(self) -> Wire {
        match self {
            Self::Lines(lines) => Wire::Lines(ByteStreams::to(lines)),
            Self::Streams(streams) => Wire::Lines(streams),
            Self::Http(client) => Wire::Http(HttpWire::new(client)),
            Self::HttpSse(client) => Wire::HttpSse(HttpSseWire::open(client).await),
        }
    }
}

impl IntoFuture for Connect {
    type Output = Peer;
    type IntoFuture = Pin<Box<dyn Future<Output = Peer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.join())
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("transport", &self.place.transport())
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
