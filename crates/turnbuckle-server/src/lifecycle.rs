//! Which rules a request lives by.
//!
//! The only room of the server that knows revisions and eras. Everyone else reads [`Rules`] and [`Caller`].

pub(crate) mod connected;
pub(crate) mod live;
pub(crate) mod session;
pub(crate) mod stateless;
mod visits;

use std::{net::SocketAddr, sync::Arc};

use http::{Extensions, HeaderMap, HeaderValue};
use serde::Serialize;
use turnbuckle_protocol::{
    Principal, RequestId, Revision, RpcError,
    json::{self, ReadError},
    jsonrpc::{Request, code},
    meta::{RequestMeta, TraceContext},
    revision::Versioned,
    types::LogLevel,
};
use turnbuckle_store::{ClientProfile, SessionId};

use connected::Connected;
use live::Live;

/// What the peer's revision asks for, where revisions differ.
#[derive(Debug)]
pub(crate) struct Rules {
    revision: Revision,
    /// How a handler's question reaches the client.
    pub(crate) asking: Asking,
    /// How a call becomes a task.
    pub(crate) tasks: TaskDesign,
    /// Whether results carry `resultType`, cache hints and the server's identity.
    pub(crate) stamps: bool,
    /// The code of a resource that does not exist.
    pub(crate) resource_not_found: i64,
    /// Whether an undeclared client capability is an error of its own or a failure of the call.
    pub(crate) undeclared_is_error: bool,
    /// Whether several messages may come as one array.
    pub(crate) batches: bool,
    /// Whether an error whose request had no readable id says `"id": null`.
    pub(crate) null_ids: bool,
    /// Whether a stream begins with an event that has only an id, to come back to.
    pub(crate) primes_streams: bool,
    /// Whether visits to a URL have ids, an error for who has to make them first, and a message at their end.
    pub(crate) announces_visits: bool,
    /// Whether the peer must see an answer before it is told of changes.
    pub(crate) quiet_start: bool,
}

/// How a handler's question reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// As a request, while the handler waits.
    Request,
    /// As the end of this round; the handler runs again when the client comes back with the answer.
    Round,
}

/// How a call becomes a task, if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskDesign {
    /// Not at all.
    None,
    /// The client asks for it; it asks for the result apart, and is asked meanwhile.
    Asked,
    /// The server decides, for clients that declare the extension; the task carries result and questions.
    Offered,
}

impl Rules {
    /// The rules of one revision.
    pub(crate) fn of(revision: Revision) -> &'static Self {
        &TABLE[Revision::ALL
            .iter()
            .position(|known| *known == revision)
            .unwrap_or(0)]
    }

    /// Writes a payload in the shape that the peer's revision can read.
    pub(crate) fn write<T: Versioned + Serialize>(&self, value: &mut T, out: &mut Vec<u8>) {
        value.lower(self.revision);
        serde_json::to_writer(out, value)
            .expect("our own types have string keys and no failing Serialize");
    }

    /// Turns a payload into the shape that the peer's revision can read.
    pub(crate) fn lower<T: Versioned>(&self, value: &mut T) {
        value.lower(self.revision);
    }

    /// Reads a payload that the peer wrote in its own revision.
    pub(crate) fn read<T: Versioned + for<'a> serde::Deserialize<'a>>(
        &self,
        text: &str,
    ) -> Result<T, ReadError> {
        let mut value: T = json::from_str(text)?;
        value.raise(self.revision);
        Ok(value)
    }

    /// The place of this revision in tables with an entry per revision.
    pub(crate) fn index(&self) -> usize {
        Revision::ALL
            .iter()
            .position(|known| *known == self.revision)
            .unwrap_or(0)
    }

    /// Says whether requests belong to sessions, which began with a handshake.
    pub(crate) fn has_sessions(&self) -> bool {
        self.revision != Revision::MODERN
    }

    /// The revision's name, for people and telemetry.
    pub(crate) fn version(&self) -> &'static str {
        self.revision.as_str()
    }

    /// The HTTP status of a JSON-RPC error.
    pub(crate) fn status(&self, error: i64) -> u16 {
        match error {
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION
                if self.stamps =>
            {
                400
            }
            code::METHOD_NOT_FOUND if self.stamps => 404,
            _ => 200,
        }
    }
}

static TABLE: [Rules; Revision::ALL.len()] = {
    const LEGACY: Rules = Rules {
        revision: Revision::V2025_11_25,
        asking: Asking::Request,
        tasks: TaskDesign::None,
        stamps: false,
        resource_not_found: code::RESOURCE_NOT_FOUND,
        undeclared_is_error: false,
        batches: false,
        null_ids: true,
        primes_streams: false,
        announces_visits: false,
        quiet_start: false,
    };
    [
        Rules {
            revision: Revision::V2024_10_07,
            quiet_start: true,
            ..LEGACY
        },
        Rules {
            revision: Revision::V2024_11_05,
            quiet_start: true,
            ..LEGACY
        },
        Rules {
            revision: Revision::V2025_03_26,
            batches: true,
            ..LEGACY
        },
        Rules {
            revision: Revision::V2025_06_18,
            ..LEGACY
        },
        Rules {
            revision: Revision::V2025_11_25,
            null_ids: false,
            primes_streams: true,
            tasks: TaskDesign::Asked,
            announces_visits: true,
            ..LEGACY
        },
        Rules {
            revision: Revision::V2026_07_28,
            asking: Asking::Round,
            tasks: TaskDesign::Offered,
            stamps: true,
            resource_not_found: code::INVALID_PARAMS,
            undeclared_is_error: true,
            batches: false,
            null_ids: false,
            primes_streams: false,
            announces_visits: false,
            quiet_start: false,
        },
    ]
};

/// Reads `_meta`, whose `protocol_version` decides the era of a request: who names one speaks for itself.
pub(crate) fn meta<'a>(request: &Request<'a>) -> Result<RequestMeta<'a>, RpcError> {
    RequestMeta::of(&request.params)
        .map_err(|error| RpcError::invalid_params(format!("`_meta`: {}", error.message)))
}

/// Reads where a request belongs in a distributed trace. Most do not say.
fn trace(meta: &RequestMeta<'_>) -> Option<Box<TraceContext>> {
    if meta.traceparent.is_none() && meta.baggage.is_none() {
        return None;
    }
    TraceContext::of(meta).map(Box::new)
}

/// Says whether a request that came over HTTP speaks for itself; every other one belongs to a session.
///
/// The handshake is never modern by its header alone: clients of both eras send the newest version with it.
pub(crate) fn stands_alone<'a>(
    method: &str,
    meta: &RequestMeta<'_>,
    version: impl FnOnce() -> Option<&'a str>,
) -> bool {
    meta.protocol_version.is_some() || (method != "initialize" && !may_have_session(version()))
}

/// Says whether a peer whose version header says this can have a session.
pub(crate) fn may_have_session(version: Option<&str>) -> bool {
    version != Some(Revision::MODERN.as_str())
}

/// Everything a request says about itself and its sender, however it was said.
pub(crate) struct Caller {
    pub(crate) rules: &'static Rules,
    pub(crate) client: Arc<ClientProfile>,
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) headers: Option<Arc<HeaderMap>>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) extensions: Extensions,
    pub(crate) progress_token: Option<RequestId>,
    /// The least severe message that the client wants to hear; none at all without it.
    pub(crate) log_level: Option<LogLevel>,
    /// Whether the client may be asked anything yet: a handshake has to be finished first.
    pub(crate) may_be_asked: bool,
    /// Where requests to the client go, if the era has them.
    pub(crate) live: Option<Arc<Live>>,
    /// Whether the end of a subscription is also announced by a notification, as byte streams need it.
    pub(crate) says_goodbye: bool,
    /// What the request shares with others, where they come on one connection.
    pub(crate) connected: Option<Arc<Connected>>,
    /// The session that it belongs to, be it only a connection.
    pub(crate) session: Option<SessionId>,
    /// Where the request belongs in a distributed trace.
    pub(crate) trace: Option<Box<TraceContext>>,
}

impl Caller {
    /// How the request came, as telemetry names it.
    pub(crate) fn transport(&self) -> &'static str {
        transport(self.headers.is_some())
    }

    /// Prepares for a request that lasts: its headers do not hold on to the buffer any more that they came in.
    pub(crate) fn stays(&mut self) {
        self.headers = self
            .headers
            .take()
            .map(|headers| Arc::new(copied(&headers)));
    }

    /// Says whether the connection of the request has ended.
    pub(crate) fn is_closed(&self) -> bool {
        let connected = self.connected.as_ref();
        connected.is_some_and(|connected| connected.is_closed())
    }

    /// Resolves when the connection of the request ends.
    pub(crate) async fn closed(&self) {
        match &self.connected {
            Some(connected) => connected.closed().await,
            None => std::future::pending().await,
        }
    }
}

impl Arrival {
    /// How the request came, as telemetry names it.
    pub(crate) fn transport(&self) -> &'static str {
        transport(self.headers.is_some())
    }
}

/// The same headers with values of their own.
fn copied(headers: &HeaderMap) -> HeaderMap {
    let mut copies = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if let Ok(mut copy) = HeaderValue::from_bytes(value.as_bytes()) {
            copy.set_sensitive(value.is_sensitive());
            copies.append(name, copy);
        }
    }
    copies
}

fn transport(is_http: bool) -> &'static str {
    if is_http { "tcp" } else { "pipe" }
}

/// What a transport knows of a request beside its bytes.
#[derive(Default)]
pub(crate) struct Arrival {
    pub(crate) principal: Option<Arc<Principal>>,
    pub(crate) headers: Option<Arc<HeaderMap>>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) extensions: Extensions,
    pub(crate) says_goodbye: bool,
    pub(crate) connected: Option<Arc<Connected>>,
    pub(crate) session: Option<SessionId>,
    /// Whether nothing will be known of the session that a handshake begins.
    pub(crate) is_forgotten: bool,
}
