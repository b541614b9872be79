//! What can go wrong: while connecting, while calling, and below both.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use turnbuckle_auth::Failure;
use turnbuckle_protocol::codec::headers::Unsendable;
use turnbuckle_protocol::{Revision, RpcError};

use crate::answer::HttpFacts;
use crate::http::{BadHeader, BadUrl, HttpError};
use crate::stdio::{Died, SpawnError};
use crate::tools::{ToolDigest, ToolOutput};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is none that a server can have.
    #[error("the URL is not usable")]
    Url(#[from] BadUrl),
    /// A header cannot be sent.
    #[error("a header is not usable")]
    Header(#[from] BadHeader),
    /// The server cannot be reached, or the connection broke before anything was agreed.
    #[error("the server cannot be reached")]
    Unreachable(#[source] TransportError),
    /// The server lets nobody in without credentials, and there were none to be had.
    #[error(transparent)]
    Authorization(Failure),
    /// The server's program cannot be started.
    #[error(transparent)]
    NotStarted(#[from] SpawnError),
    /// The server answered the first question with an error.
    #[error("the server refused `{method}`")]
    Refused {
        /// What it was asked.
        method: &'static str,
        /// What it said.
        source: Box<RpcError>,
        /// The HTTP status it came with.
        status: Option<StatusCode>,
    },
    /// There is no revision that both sides speak.
    #[error("no common revision: the server speaks {}", list(.server))]
    NoCommonRevision {
        /// What the server speaks.
        server: Vec<String>,
    },
    /// The answer to the first question makes no sense.
    #[error("the server's answer to `{method}` is invalid: {reason}")]
    InvalidAnswer {
        /// What it was asked.
        method: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// Nothing came back in time.
    #[error("the server did not answer `{method}` within {limit:?}")]
    TimedOut {
        /// What it was asked.
        method: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
}

/// Why a call got no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The server answered, and the answer is an error.
    #[error("`{method}` was refused")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// What the server said.
        source: Box<RpcError>,
        /// The HTTP status it came with.
        status: Option<StatusCode>,
        /// When the server wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// Nothing came back in time; the request was cancelled.
    #[error("`{method}` got no answer within {limit:?}")]
    TimedOut {
        /// What was asked.
        method: &'static str,
        /// How long it was waited for, counted from the last progress or from the beginning.
        limit: Duration,
    },
    /// The connection broke. Unless its cause says that nothing was sent, it is unknown whether the call took effect.
    #[error("connection lost during `{method}`")]
    Disconnected {
        /// What was asked.
        method: &'static str,
        /// How it broke.
        source: TransportError,
    },
    /// The response to a call was lost, and it is unknown whether the call took effect.
    ///
    /// Only on HTTP with 2026-07-28, where a response stream that broke cannot be resumed. Requests that are safe to repeat are
    /// sent again once, under a new id: lists, reads, completion, and calls of tools whose listed annotations have
    /// `readOnlyHint` or `idempotentHint`. This is the error of all others, which are not sent again: look at what the call
    /// was to change before you repeat it.
    #[error("the response to `{method}` was lost, and its effect is unknown")]
    EffectUnknown {
        /// What was asked.
        method: &'static str,
        /// How the connection broke.
        source: TransportError,
    },
    /// The server lets nobody in without credentials, and there were none to be had. The call took no effect.
    #[error("`{method}` could not be authorized")]
    Authorization {
        /// What was asked.
        method: &'static str,
        /// At which step it failed, and what to do about it.
        source: Failure,
    },
    /// The server answered something that is no answer to this.
    #[error("the answer to `{method}` is invalid: {reason}")]
    InvalidAnswer {
        /// What was asked.
        method: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The call cannot be put into a message.
    #[error("`{method}` cannot be sent: {reason}")]
    Unsendable {
        /// What was to be asked.
        method: &'static str,
        /// Why it cannot.
        reason: String,
    },
    /// A marked argument has to be repeated in a header, and no header can hold it.
    #[error("the argument `{argument}` of `{tool}` cannot be sent")]
    UnsendableArgument {
        /// The tool that was to be called.
        tool: String,
        /// The names that lead to the argument, joined by dots.
        argument: String,
        /// Why it cannot.
        source: Unsendable,
    },
    /// The output of a tool is not what its output schema promises. The call took effect.
    #[error("the output of `{tool}` breaks its promise: {reason}")]
    InvalidOutput {
        /// The tool.
        tool: String,
        /// What is wrong, with the place and what was expected there.
        reason: String,
        /// The output as it came.
        output: Box<ToolOutput>,
    },
    /// The tool is not the one that was [pinned](crate::ClientBuilder::pinned_tools), so it was not called.
    #[error("`{tool}` is not the tool that was pinned: {}", instead(.listed))]
    NotAsPinned {
        /// The tool that was to be called.
        tool: String,
        /// What was pinned.
        pinned: ToolDigest,
        /// What the server lists by this name, if it does.
        listed: Option<ToolDigest>,
    },
    /// The server did not declare what this call needs, so it was not asked.
    #[error("the server does not offer `{capability}`, which `{method}` needs")]
    NotOffered {
        /// What was to be asked.
        method: &'static str,
        /// What the server would have to declare.
        capability: &'static str,
    },
    /// The revision that is spoken has no such method.
    #[error("revision {revision} has no `{method}`")]
    NotInRevision {
        /// What was to be asked.
        method: &'static str,
        /// What is spoken.
        revision: Revision,
    },
    /// A list does not end: a cursor came twice, or there is more than the limits allow.
    #[error("the pages of `{method}` do not end: {reason}")]
    EndlessList {
        /// What was asked.
        method: &'static str,
        /// How that shows.
        reason: String,
    },
    /// The server asked for input again and again.
    #[error("`{method}` asked for input more than {rounds} times")]
    TooManyRounds {
        /// What was asked.
        method: &'static str,
        /// How many rounds were gone along with.
        rounds: usize,
    },
    /// The server asked for something first that it got no answer to.
    ///
    /// A user who declines is an answer. This is none: nobody here answers such questions, the question makes no sense,
    /// or the callback failed or refused.
    #[error("`{method}` asks by `{asked}` first, which got no answer")]
    Unanswered {
        /// What was asked of the server.
        method: &'static str,
        /// What the server asked.
        asked: String,
        /// Why there is no answer.
        source: Box<RpcError>,
    },
    /// The user did not want to visit a URL that the server wants visited first.
    #[error("`{method}` needs a visit to a URL first, which was declined")]
    VisitDeclined {
        /// What was asked.
        method: &'static str,
    },
    /// The task that the call became was cancelled.
    #[error("the task was cancelled{}", because(.reason))]
    TaskCancelled {
        /// What the server says about it.
        reason: Option<String>,
    },
    /// The task that the call became has outlived the time that the server keeps it.
    #[error("the task did not end within its lifetime of {lifetime:?}")]
    TaskExpired {
        /// The lifetime.
        lifetime: Duration,
    },
    /// The server asks for input, and rounds are switched off.
    #[error("`{method}` asks for input first")]
    InputRequired {
        /// What was asked.
        method: &'static str,
        /// The questions.
        questions: Box<turnbuckle_protocol::types::InputRequiredResult>,
    },
}

impl CallError {
    /// Returns the JSON-RPC error, if the server answered with one.
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Refused { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Returns the HTTP status, if the server refused with one.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { status, .. } => *status,
            Self::Disconnected {
                source: TransportError::Refused(refusal),
                ..
            } => Some(refusal.status),
            _ => None,
        }
    }

    /// Returns how long to wait before asking again, if the server said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Disconnected {
                source: TransportError::Refused(refusal),
                ..
            } => refusal.retry_after,
            _ => None,
        }
    }

    /// Describes a call that got no answer because of the connection.
    pub(crate) fn disconnected(method: &'static str, source: TransportError) -> Self {
        match source {
            TransportError::Authorization(source) => Self::Authorization { method, source },
            source => Self::Disconnected { method, source },
        }
    }

    pub(crate) fn refused(method: &'static str, source: RpcError, http: Option<HttpFacts>) -> Self {
        Self::Refused {
            method,
            source: Box::new(source),
            status: http.as_ref().map(|facts| facts.status),
            retry_after: http.and_then(|facts| facts.retry_after),
        }
    }
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Authorization(failure) => Self::Authorization(failure),
            error => Self::Unreachable(error),
        }
    }
}

/// How a connection broke.
///
/// Cheap to clone: every call that waited gets the same one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The server closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// We closed the connection.
    #[error("the client was closed")]
    ClosedByUs,
    /// The server was a child process, and is gone.
    #[error("{0}")]
    Died(Arc<Died>),
    /// The server frames its messages as language servers do, which no revision allows.
    #[error("the server frames its messages with `Content-Length`, as language servers do")]
    LspFraming,
    /// Reading or writing failed.
    #[error("reading or writing failed")]
    Io(#[source] Arc<std::io::Error>),
    /// HTTP failed before there was an answer.
    #[error(transparent)]
    Http(Arc<HttpError>),
    /// The server lets nobody in without credentials, and there were none to be had.
    #[error(transparent)]
    Authorization(Failure),
    /// HTTP refused, without an answer that JSON-RPC knows.
    #[error("{0}")]
    Refused(Box<HttpRefusal>),
    /// The session is over; a new one has to be begun.
    #[error("the session is over")]
    SessionEnded,
    /// A message is larger than the limits allow.
    #[error("the server sent more than {limit} bytes in one message")]
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// What came back is no answer.
    #[error("what came back is no answer: {reason}")]
    NotAnAnswer {
        /// Why not.
        reason: String,
    },
}

impl TransportError {
    /// Says whether the server itself went away, as a process that ends does.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self, Self::Closed | Self::Died(_) | Self::Io(_))
    }
}

impl From<std::io::Error> for TransportError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<HttpError> for TransportError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TooLarge { limit } => Self::TooLarge { limit },
            HttpError::Authorization(failure) => Self::Authorization(failure),
            error => Self::Http(Arc::new(error)),
        }
    }
}

/// A refusal that only HTTP speaks of.
#[derive(Clone, Debug, thiserror::Error)]
#[error("HTTP status {status}{}", said(.excerpt))]
#[non_exhaustive]
pub struct HttpRefusal {
    /// The status.
    pub status: StatusCode,
    /// When to come again.
    pub retry_after: Option<Duration>,
    /// How to authorize, as `WWW-Authenticate` says it.
    pub challenge: Option<String>,
    /// The beginning of the body.
    pub excerpt: String,
}

fn said(excerpt: &str) -> String {
    match excerpt {
        "" => String::new(),
        _ => format!(": {excerpt}"),
    }
}

fn because(reason: &Option<String>) -> String {
    match reason {
        Some(reason) => format!(": {reason}"),
        None => String::new(),
    }
}

fn instead(listed: &Option<ToolDigest>) -> String {
    match listed {
        Some(digest) => format!("its digest is {digest}"),
        None => "the server does not list it".to_owned(),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none that it names".to_owned(),
        _ => names.join(", "),
    }
}
