//! What a server says along with a status that is no success.

use std::time::{Duration, SystemTime};

use ::http::{
    HeaderMap, StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use bytes::Bytes;
use turnbuckle_protocol::codec::headers::MediaType;

use super::{Response, response::clean};

/// How much of all challenges is kept.
const CHALLENGES: usize = 8 * 1024;

/// The longest pause that is believed.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A response that is no answer to be read as one.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// How long to wait before trying again.
    pub(crate) retry_after: Option<Duration>,
    /// The `WWW-Authenticate` headers, those beyond 8 KiB left out.
    pub(crate) challenges: Vec<String>,
    /// The body, if it is JSON: possibly a JSON-RPC error.
    pub(crate) json: Option<Bytes>,
    /// How the body begins.
    pub(crate) excerpt: String,
}

impl Refusal {
    pub(super) async fn read(response: Response) -> Self {
        let status = response.status();
        let retry_after = retry_after(response.headers(), SystemTime::now());
        let challenges = challenges(response.headers());
        // A body that is too large or breaks off has nothing to say; the status still has.
        let (json, excerpt) = match response.media_type() {
            MediaType::Json => {
                let json = response.bytes().await.ok();
                let excerpt = clean(json.as_deref().map_or(&[], beginning));
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

fn beginning(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(1024)]
}

/// Reads `Retry-After`: seconds, or a date, which may be over already.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim_ascii();
    let pause = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that are no number are a very large one.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(now).unwrap_or_default()
    };
    Some(pause.min(LONGEST))
}

/// Returns the `WWW-Authenticate` headers, as many as are kept.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<String> {
    let mut room = CHALLENGES;
    let mut kept = Vec::new();
    for value in headers.get_all(WWW_AUTHENTICATE) {
        let Ok(text) = value.to_str() else { continue };
        // Half a challenge could be read as another one.
        if let Some(left) = room.checked_sub(text.len()) {
            room = left;
            kept.push(text.to_owned());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use ::http::HeaderValue;

    use super::*;

    fn pause(text: &str) -> Option<Duration> {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let value = HeaderValue::from_str(text).unwrap();
        retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]), now)
    }

    #[test]
    fn a_pause_is_seconds_or_a_date() {
        for (text, seconds) in [
            ("0", 0),
            ("120", 120),
            ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:49:36 GMT", 0),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ] {
            assert_eq!(pause(text), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn a_pause_is_at_most_a_day() {
        for text in [
            "86401",
            "99999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(pause(text), Some(LONGEST), "{text}");
        }
    }

    #[test]
    fn what_is_no_pause_is_ignored() {
        for text in ["", "soon", "-1", "1.5", "+5"] {
            assert_eq!(pause(text), None, "{text}");
        }
    }

    #[test]
    fn challenges_are_kept_up_to_a_limit() {
        let mut headers = HeaderMap::new();
        for text in ["Bearer a=\"b\"", &"x".repeat(9000), "Basic"] {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap());
        }

        assert_eq!(challenges(&headers), ["Bearer a=\"b\"", "Basic"]);
    }
}
