//! What came back, read no further than it is allowed to be.

use ::http::{
    HeaderName, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use bytes::Bytes;
use hyper::body::Incoming;
use turnbuckle_protocol::codec::headers::{MediaType, content_type};

use super::{Events, HttpError, Refusal, arriving::Arriving, events::REST, pool::Lease};
use crate::http::url::Url;

/// How many characters of a body are shown when it is not what it should be.
const SHOWN: usize = 200;

/// How much of a body is read although nobody wants it.
const SKIPPED: usize = 64 * 1024;

/// The head of a response, its body yet to be read. On the heap, as it is handed on often.
#[derive(Debug)]
pub(crate) struct Response(Box<Received>);

#[derive(Debug)]
struct Received {
    response: ::http::Response<Arriving>,
    url: Url,
    limit: usize,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// Read to its end.
    Json(Bytes),
    /// Still coming.
    Events(Box<Events>),
}

impl Response {
    pub(super) fn new(
        response: ::http::Response<Incoming>,
        lease: Lease,
        url: &Url,
        limit: usize,
    ) -> Result<Self, HttpError> {
        let response = Self(Box::new(Received {
            response: response.map(|body| Arriving::new(body, lease)),
            url: url.clone(),
            limit,
        }));
        match response.header(CONTENT_ENCODING) {
            None | Some("" | "identity") => Ok(response),
            Some(encoding) => Err(HttpError::Encoded {
                encoding: clean(encoding.as_bytes()),
            }),
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.response.status()
    }

    /// Returns a header if it is text; only the first of several.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.0.response.headers().get(name)?.to_str().ok()
    }

    /// Returns all headers.
    pub(crate) fn headers(&self) -> &::http::HeaderMap {
        self.0.response.headers()
    }

    /// Says what the body claims to be.
    pub(crate) fn media_type(&self) -> MediaType {
        self.header(CONTENT_TYPE)
            .map_or(MediaType::Other, content_type)
    }

    /// Says whether it is a success, with a body of this kind.
    pub(crate) fn is(&self, kind: MediaType) -> bool {
        self.status().is_success() && self.media_type() == kind
    }

    /// Returns where it came from, redirects followed.
    pub(crate) fn url(&self) -> &Url {
        &self.0.url
    }

    /// Reads a body of JSON to its end, or begins to read events.
    pub(crate) async fn body(self) -> Result<Body, HttpError> {
        match self.media_type() {
            MediaType::Json => self.bytes().await.map(Body::Json),
            MediaType::EventStream => Ok(Body::Events(Box::new(self.events()))),
            MediaType::Other => Err(Box::pin(self.unexpected()).await),
        }
    }

    /// Reads the events of a stream.
    pub(crate) fn events(self) -> Events {
        let limit = self.0.limit;
        Events::new(self.0.response.into_body(), limit)
    }

    /// Reads the whole body.
    pub(crate) fn bytes(self) -> impl Future<Output = Result<Bytes, HttpError>> {
        let limit = self.0.limit;
        self.0.response.into_body().whole(limit)
    }

    /// Reads what a response that is no answer says, and lets go of the rest.
    pub(crate) async fn refusal(self) -> Refusal {
        Refusal::read(self).await
    }

    /// Reads a body that says nothing, so that its connection can be used again; gives up if it does not end.
    pub(crate) async fn skip(self) {
        let mut body = self.0.response.into_body();
        if body.is_over() {
            return;
        }
        let rest = async {
            let mut room = SKIPPED;
            while let Ok(Some(data)) = body.next().await {
                match room.checked_sub(data.len()) {
                    Some(left) => room = left,
                    None => return,
                }
            }
        };
        // Whether it ends in time shows in the pool only.
        let _ = tokio::time::timeout(REST, rest).await;
    }

    /// Describes a body of the wrong kind.
    pub(crate) async fn unexpected(self) -> HttpError {
        let content_type = self.header(CONTENT_TYPE).map(|kind| clean(kind.as_bytes()));
        HttpError::ContentType {
            content_type,
            excerpt: self.excerpt().await,
        }
    }

    /// Reads how the body begins.
    pub(super) async fn excerpt(self) -> String {
        let mut body = self.0.response.into_body();
        let mut beginning = Vec::new();
        // A character has at most four bytes.
        while beginning.len() < SHOWN * 4 {
            let Ok(Some(data)) = body.next().await else {
                break;
            };
            let room = SHOWN * 4 - beginning.len();
            beginning.extend_from_slice(&data[..data.len().min(room)]);
        }
        clean(&beginning)
    }
}

/// Makes foreign text fit for an error: short, on one line, and without anything that steers a terminal.
pub(crate) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    let visible = text.split(char::is_whitespace).map(|word| {
        word.chars()
            .filter(|character| !is_invisible(*character))
            .collect::<String>()
    });
    for word in visible.filter(|word| !word.is_empty()) {
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(&word);
    }
    if let Some((end, _)) = shown.char_indices().nth(SHOWN) {
        shown.truncate(end);
    }
    shown
}

/// Control characters, and those that hide text or turn its direction.
fn is_invisible(character: char) -> bool {
    let hidden = matches!(character,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    character.is_control() || hidden
}
