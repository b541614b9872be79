//! Errors of HTTP requests.

use std::{error::Error, time::Duration};

use turnbuckle_auth::AuthorizationError;
use turnbuckle_text::error_chain;

use crate::transport::{
    http::url::UrlOrigin,
    http_client::{
        dial::{BoxError, ConnectTimeout},
        response::sanitize,
    },
};

/// An HTTP request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Connecting failed; nothing was sent.
    #[error("could not connect to `{origin}`: {}", error_chain(&**source))]
    Connect {
        /// The origin.
        origin: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Connecting took too long; nothing was sent.
    #[error("could not connect to `{origin}` within {limit:?}")]
    ConnectTimedOut {
        /// The origin.
        origin: String,
        /// The time limit.
        limit: Duration,
    },
    /// The connection broke, or the peer did not send HTTP. The request may have taken effect.
    #[error("the connection to the server broke: {}", error_chain(&**.0))]
    ConnectionBroken(#[source] Box<dyn Error + Send + Sync>),
    /// No credentials could be obtained.
    #[error(transparent)]
    Authorization(AuthorizationError),
    /// The URL is an `https` URL, and this build has no TLS.
    #[error("an `https` URL requires the feature `tls` of `turnbuckle-client`")]
    NoTls,
    /// TLS could not be set up.
    #[error("TLS could not be set up: {}", error_chain(&**.0))]
    Tls(#[source] Box<dyn Error + Send + Sync>),
    /// A message without a response was not accepted in time.
    #[error("the server did not accept a message within {limit:?}")]
    SendTimedOut {
        /// The time limit.
        limit: Duration,
    },
    /// A body or an event exceeds the limit.
    #[error("the server sent a body or event of more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The content type is not supported, for example an error page of a proxy.
    #[error("expected JSON or an event stream, got {}", kind_and_excerpt(.content_type.as_deref(), .excerpt))]
    UnexpectedContentType {
        /// The header, if present.
        content_type: Option<String>,
        /// An excerpt of the body.
        excerpt: String,
    },
    /// The body is compressed, although the request did not allow it.
    #[error("the server sent an unrequested content encoding (`{encoding}`)")]
    UnexpectedEncoding {
        /// The value of the header.
        encoding: String,
    },
    /// The session id contains invalid characters, or there are several.
    #[error("the server sent an invalid session id")]
    InvalidSessionId,
    /// The `endpoint` event does not contain a valid URL.
    #[error("the server sent an invalid `endpoint` event: `{endpoint}`")]
    InvalidEndpoint {
        /// The value of the event.
        endpoint: String,
    },
    /// A redirect to another origin, which is not followed; nothing was sent there.
    #[error("the server redirects to another origin, `{origin}`; to allow it, connect to that URL")]
    OtherOrigin {
        /// The other origin.
        origin: String,
    },
    /// A redirect that cannot be followed.
    #[error(
        "the server sent a redirect that cannot be followed: status {status}, location `{location}`"
    )]
    InvalidRedirect {
        /// The status.
        status: u16,
        /// The value of the header; may be empty.
        location: String,
    },
    /// Too many redirects.
    #[error("the server redirected more than {limit} times")]
    TooManyRedirects {
        /// The maximum number of redirects.
        limit: usize,
    },
}

impl HttpError {
    /// Returns whether the request was certainly not sent, so that it is safe to send it again.
    pub fn is_unsent(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::ConnectTimedOut { .. } | Self::NoTls | Self::Tls(_)
        )
    }

    /// Returns whether another attempt may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::ConnectTimedOut { .. } | Self::ConnectionBroken(_)
        )
    }

    /// Creates the error for an invalid endpoint.
    pub(crate) fn invalid_endpoint(text: &str) -> Self {
        Self::InvalidEndpoint {
            endpoint: sanitize(text.as_bytes()),
        }
    }

    /// Converts an error of the dialer.
    pub(super) fn from_dial_error(error: BoxError, origin: &UrlOrigin) -> Self {
        let origin = origin.to_string();
        match error.downcast_ref() {
            Some(&ConnectTimeout(limit)) => Self::ConnectTimedOut { origin, limit },
            None => Self::Connect {
                origin,
                source: error,
            },
        }
    }
}

fn kind_and_excerpt(content_type: Option<&str>, excerpt: &str) -> String {
    let kind = content_type.unwrap_or("a body without a content type");
    match excerpt {
        "" => kind.to_owned(),
        _ => format!("{kind}: {excerpt}"),
    }
}
