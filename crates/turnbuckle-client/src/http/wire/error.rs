//! What can go wrong between a request and its response.

use std::{error::Error, time::Duration};

use turnbuckle_auth::Failure;

use super::{
    dial::{BoxError, TimedOut},
    response::clean,
};
use crate::http::url::Origin;

/// Why there is no usable response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No connection could be made, so nothing was sent.
    #[error("could not connect to `{origin}`")]
    Connect {
        /// Whom we wanted to reach.
        origin: String,
        /// What the system said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Making a connection took too long; nothing was sent.
    #[error("could not connect to `{origin}` within {limit:?}")]
    ConnectTimedOut {
        /// Whom we wanted to reach.
        origin: String,
        /// How long we tried.
        limit: Duration,
    },
    /// The connection broke, or what came over it was not HTTP. The request may have taken effect.
    #[error("the connection to the server broke")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
    /// There are no credentials to send it with.
    #[error(transparent)]
    Authorization(Failure),
    /// An `https` URL, and this build has no TLS.
    #[error("an `https` URL needs the feature `tls` of `turnbuckle-client`")]
    NoTls,
    /// TLS could not be set up.
    #[error("TLS could not be set up")]
    Tls(#[source] Box<dyn Error + Send + Sync>),
    /// A message that needs no answer was not taken in time.
    #[error("the server did not take a message within {limit:?}")]
    NotTaken {
        /// How long we waited.
        limit: Duration,
    },
    /// A body, or an event of a stream, beyond the limit.
    #[error("the server sent more than {limit} bytes at once")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A body of a kind that the protocol does not have, such as the page of a proxy.
    #[error("expected JSON or an event stream, got {}", kind_and_excerpt(.content_type.as_deref(), .excerpt))]
    ContentType {
        /// The header, if there was one.
        content_type: Option<String>,
        /// How the body begins.
        excerpt: String,
    },
    /// A compressed body, although we asked for none.
    #[error("the server compressed its answer (`{encoding}`) without being asked to")]
    Encoded {
        /// What the header says.
        encoding: String,
    },
    /// A session id with characters that none may have, or more than one of them.
    #[error("the server gave an invalid session id")]
    SessionId,
    /// An `endpoint` event that names no URL to post to.
    #[error("the server named `{endpoint}` as its endpoint, which cannot be posted to")]
    Endpoint {
        /// What it named.
        endpoint: String,
    },
    /// A redirect to another origin; it was not followed, and nothing was sent there.
    #[error("the server wants to send us on to `{origin}`; if that is right, use its URL")]
    OtherOrigin {
        /// Where it leads.
        origin: String,
    },
    /// A redirect that cannot be followed.
    #[error("the server answered {status} and `{location}`, which cannot be followed")]
    Redirect {
        /// The status.
        status: u16,
        /// What the header says, possibly nothing.
        location: String,
    },
    /// One redirect after another.
    #[error("the server redirected more than {limit} times")]
    TooManyRedirects {
        /// How many were followed.
        limit: usize,
    },
}

impl HttpError {
    /// Says whether the request was certainly not sent, so that sending it again can do no harm.
    pub fn is_unsent(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::ConnectTimedOut { .. } | Self::NoTls | Self::Tls(_)
        )
    }

    /// Says whether it may go better next time.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::ConnectTimedOut { .. } | Self::Broken(_)
        )
    }

    /// Describes an endpoint that is none.
    pub(crate) fn endpoint(text: &str) -> Self {
        Self::Endpoint {
            endpoint: clean(text.as_bytes()),
        }
    }

    /// Says why there is no connection.
    pub(super) fn from_dialing(problem: BoxError, origin: &Origin) -> Self {
        let origin = origin.to_string();
        match problem.downcast_ref() {
            Some(&TimedOut(limit)) => Self::ConnectTimedOut { origin, limit },
            None => Self::Connect {
                origin,
                source: problem,
            },
        }
    }
}

fn kind_and_excerpt(content_type: Option<&str>, excerpt: &str) -> String {
    let kind = content_type.unwrap_or("a body that does not say what it is");
    match excerpt {
        "" => kind.to_owned(),
        _ => format!("{kind}: {excerpt}"),
    }
}
