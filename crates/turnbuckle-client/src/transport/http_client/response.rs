//! Responses, read within limits.

use std::time::{Duration, SystemTime};

use ::http::{
    HeaderMap, HeaderName, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use bytes::Bytes;
use hyper::body::Incoming;
use turnbuckle_protocol::codec::headers::{MediaType, parse_content_type};
use turnbuckle_text::sanitize;

use crate::{
    inbound::recorder::ExchangeRecorder,
    transport::{
        http::url::Url,
        http_client::{
            EventReader, HttpError,
            body::{FINISH_TIMEOUT, ResponseBody},
            pool::PooledConnection,
        },
    },
};

/// Maximum length of an excerpt in an error.
const MAX_EXCERPT_CHARS: usize = 200;

/// Maximum number of bytes to drain from an unused body.
const MAX_DRAIN_BYTES: usize = 64 * 1024;

/// The head of a response, with an unread body. Boxed, because it is moved often.
#[derive(Debug)]
pub(crate) struct HttpResponse(Box<ResponseInner>);

#[derive(Debug)]
struct ResponseInner {
    response: ::http::Response<ResponseBody>,
    url: Url,
    limit: usize,
    connect_time: Option<Duration>,
    recorder: Option<Box<ExchangeRecorder>>,
}

/// The content of a response.
#[derive(Debug)]
pub(crate) enum ResponseContent {
    /// A whole JSON body.
    Json(Bytes),
    /// An event stream.
    Events(Box<EventReader>),
}

impl HttpResponse {
    pub(super) fn new(
        response: ::http::Response<Incoming>,
        connection: PooledConnection,
        url: &Url,
        limit: usize,
    ) -> Result<Self, HttpError> {
        let connect_time = connection.connect_time;
        let response = Self(Box::new(ResponseInner {
            response: response.map(|body| ResponseBody::new(body, connection)),
            url: url.clone(),
            limit,
            connect_time,
            recorder: None,
        }));
        match response.header(CONTENT_ENCODING) {
            None | Some("" | "identity") => Ok(response),
            Some(encoding) => Err(HttpError::UnexpectedEncoding {
                encoding: sanitize(encoding.as_bytes()),
            }),
        }
    }

    /// Records the head, and what is read of the body.
    pub(super) fn recorded(mut self, recorder: ExchangeRecorder) -> Self {
        recorder.record_response(self.status(), self.headers(), self.0.connect_time);
        self.0.recorder = Some(Box::new(recorder));
        self
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.0.response.status()
    }

    /// Returns a header if it is text; the first of several.
    pub(crate) fn header(&self, name: HeaderName) -> Option<&str> {
        self.0.response.headers().get(name)?.to_str().ok()
    }

    /// Returns all headers.
    pub(crate) fn headers(&self) -> &::http::HeaderMap {
        self.0.response.headers()
    }

    /// Returns the media type of the body.
    pub(crate) fn media_type(&self) -> MediaType {
        self.header(CONTENT_TYPE)
            .map_or(MediaType::Other, parse_content_type)
    }

    /// Returns whether the response is a success with this media type.
    pub(crate) fn is(&self, kind: MediaType) -> bool {
        self.status().is_success() && self.media_type() == kind
    }

    /// Returns the URL of the response, after redirects.
    pub(crate) fn url(&self) -> &Url {
        &self.0.url
    }

    /// Reads a JSON body, or starts to read events.
    pub(crate) async fn body(self) -> Result<ResponseContent, HttpError> {
        match self.media_type() {
            MediaType::Json => self.bytes().await.map(ResponseContent::Json),
            MediaType::EventStream => Ok(ResponseContent::Events(Box::new(self.events()))),
            MediaType::Other => Err(Box::pin(self.unexpected_content_type()).await),
        }
    }

    /// Reads the events of a stream.
    pub(crate) fn events(self) -> EventReader {
        let inner = *self.0;
        EventReader::new(inner.response.into_body(), inner.limit, inner.recorder)
    }

    /// Reads the whole body.
    pub(crate) fn bytes(self) -> impl Future<Output = Result<Bytes, HttpError>> {
        let ResponseInner {
            response,
            limit,
            recorder,
            ..
        } = *self.0;
        // Not the whole response, which would enlarge the future.
        let body = response.into_body();
        async move {
            let body = body.read_all(limit).await?;
            if let Some(recorder) = &recorder {
                recorder.record_body(&body);
            }
            Ok(body)
        }
    }

    /// Reads an error response.
    pub(crate) async fn error_response(self) -> ErrorResponse {
        ErrorResponse::read(self).await
    }

    /// Drains an unused body, so that its connection can be reused; stops if it does not end.
    pub(crate) async fn drain(self) {
        let mut body = self.0.response.into_body();
        if body.is_finished() {
            return;
        }
        let rest = async {
            let mut budget = MAX_DRAIN_BYTES;
            while let Ok(Some(data)) = body.next().await {
                match budget.checked_sub(data.len()) {
                    Some(remaining) => budget = remaining,
                    None => return,
                }
            }
        };
        // If it ends in time, the connection returns to the pool.
        let _ = tokio::time::timeout(FINISH_TIMEOUT, rest).await;
    }

    /// Returns the error for an unsupported content type.
    pub(crate) async fn unexpected_content_type(self) -> HttpError {
        let content_type = self
            .header(CONTENT_TYPE)
            .map(|kind| sanitize(kind.as_bytes()));
        HttpError::UnexpectedContentType {
            content_type,
            excerpt: self.excerpt().await,
        }
    }

    /// Reads an excerpt of the body.
    pub(super) async fn excerpt(self) -> String {
        let inner = *self.0;
        let mut body = inner.response.into_body();
        let mut excerpt_bytes = Vec::new();
        // A character has at most four bytes.
        while excerpt_bytes.len() < MAX_EXCERPT_CHARS * 4 {
            let Ok(Some(data)) = body.next().await else {
                break;
            };
            let budget = MAX_EXCERPT_CHARS * 4 - excerpt_bytes.len();
            excerpt_bytes.extend_from_slice(&data[..data.len().min(budget)]);
        }
        if let Some(recorder) = &inner.recorder {
            recorder.record_body(&excerpt_bytes);
        }
        sanitize(&excerpt_bytes)
    }
}

/// Sanitizes text of a server for an error: short, on one line, without control and invisible characters.
pub(crate) fn sanitize(bytes: &[u8]) -> String {
    sanitize::excerpt(&String::from_utf8_lossy(bytes), MAX_EXCERPT_CHARS)
}

/// Maximum size of all challenges in bytes.
const MAX_CHALLENGE_BYTES: usize = 8 * 1024;

/// Maximum accepted `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// An HTTP error response.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// The delay before another attempt.
    pub(crate) retry_after: Option<Duration>,
    /// The `WWW-Authenticate` headers, up to 8 KiB.
    pub(crate) challenges: Vec<String>,
    /// The body, if it is JSON: possibly a JSON-RPC error.
    pub(crate) json: Option<Bytes>,
    /// An excerpt of the body.
    pub(crate) excerpt: String,
}

impl ErrorResponse {
    pub(super) async fn read(response: HttpResponse) -> Self {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let challenges = challenges(response.headers());
        // If the body is too large or incomplete, the status is still useful.
        let (json, excerpt) = match response.media_type() {
            MediaType::Json => {
                let json = response.bytes().await.ok();
                let excerpt = sanitize(json.as_deref().map_or(&[], excerpt_bytes));
                (json, excerpt)
            }
            MediaType::EventStream => (None, String::new()),
            MediaType::Other => (None, response.excerpt().await),
        };
        Self {
            status,
            retry_after,
            challenges,
            json,
            excerpt,
        }
    }
}

fn excerpt_bytes(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(1024)]
}

/// Parses `Retry-After`: seconds, or a date, which may be in the past.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim_ascii();
    let delay = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that do not fit are a very large number.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(now).unwrap_or_default()
    };
    Some(delay.min(MAX_RETRY_AFTER))
}

/// Returns the `WWW-Authenticate` headers, up to the limit.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<String> {
    let mut budget = MAX_CHALLENGE_BYTES;
    let mut challenges_read = Vec::new();
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let Ok(text) = value.to_str() else { continue };
        // A truncated challenge could be parsed as another one.
        if let Some(remaining) = budget.checked_sub(text.len()) {
            budget = remaining;
            challenges_read.push(text.to_owned());
        }
    }
    challenges_read
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;

    use super::*;

    fn delay(text: &str) -> Option<Duration> {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let value = HeaderValue::from_str(text).unwrap();
        retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]), now)
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (text, seconds) in [
            ("0", 0),
            ("120", 120),
            ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:49:36 GMT", 0),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ] {
            assert_eq!(delay(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn retry_after_is_at_most_a_day() {
        for text in [
            "86401",
            "99999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(delay(text), Some(MAX_RETRY_AFTER), "{text}");
        }
    }

    #[test]
    fn an_invalid_retry_after_is_ignored() {
        for text in ["", "soon", "-1", "1.5", "+5"] {
            assert_eq!(delay(text), None, "{text}");
        }
    }

    #[test]
    fn text_of_a_server_is_safe_on_a_terminal() {
        for hidden in [
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{2028}',
            '\u{202e}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let text = format!("Sign{hidden}in");
            let shown = sanitize(text.as_bytes());
            assert!(!shown.contains(hidden), "{}", hidden.escape_unicode());
        }
        assert_eq!(sanitize(b" a\r\n\tb \xff"), "a b \u{fffd}");
        assert_eq!(
            sanitize("x".repeat(1_000).as_bytes()).len(),
            MAX_EXCERPT_CHARS
        );
    }

    #[test]
    fn challenges_are_stored_up_to_a_limit() {
        let mut headers = HeaderMap::new();
        for text in ["Bearer a=\"b\"", &"x".repeat(9000), "Basic"] {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap());
        }

        assert_eq!(challenges(&headers), ["Bearer a=\"b\"", "Basic"]);
    }
}
