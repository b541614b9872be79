//! Pages for users: HTML without scripts, styles or foreign content, and cookies.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION,
        REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
    },
};

use super::table::{LIFETIME, RandomId};

/// The headers of every page: it may not be stored, named to other sites, framed, or load anything.
const HEADERS: [(HeaderName, &str); 4] = [
    (CACHE_CONTROL, "no-store"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// A response for a browser.
pub(super) struct Page(Response<Bytes>);

impl Page {
    /// Creates a page with a title and a paragraph.
    pub(super) fn text(status: StatusCode, title: &str, text: &str) -> Self {
        let (title, text) = (escape(title), escape(text));
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<h1>{title}</h1>\n<p>{text}</p>\n</html>\n"
        );
        let mut response = Response::new(Bytes::from(html));
        *response.status_mut() = status;
        let kind = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        Self(response)
    }

    /// Sends the browser to a URL.
    pub(super) fn redirect(url: &str) -> Self {
        let Ok(location) = HeaderValue::from_str(url) else {
            let text = "The authorization server has an invalid URL.";
            return Self::text(StatusCode::BAD_GATEWAY, "Not logged in", text);
        };
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::SEE_OTHER;
        response.headers_mut().insert(LOCATION, location);
        Self(response)
    }

    /// Sets the cookie of a login.
    pub(super) fn with_cookie(mut self, number: u64, value: &RandomId, is_secure: bool) -> Self {
        let (name, value, age) = (
            cookie_name(number, is_secure),
            value.expose(),
            LIFETIME.as_secs(),
        );
        let secure = if is_secure { "; Secure" } else { "" };
        // `Lax`: an authorization server of another site sends the browser back.
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            self.0.headers_mut().insert(SET_COOKIE, cookie);
        }
        self
    }

    pub(super) fn into_response(mut self) -> Response<Bytes> {
        for (name, value) in HEADERS {
            let value = HeaderValue::from_static(value);
            self.0.headers_mut().insert(name, value);
        }
        self.0
    }
}

/// Returns whether a browser requests a page before the user opens it.
pub(super) fn is_prefetch(headers: &HeaderMap) -> bool {
    let purposes = ["sec-purpose", "purpose"].into_iter();
    let mut purposes = purposes.flat_map(|name| headers.get_all(name));
    purposes.any(|value| {
        let value = value.as_bytes().to_ascii_lowercase();
        value.starts_with(b"prefetch")
    })
}

/// Returns the value of the cookie of a login.
pub(super) fn cookie<'a>(
    headers: impl Iterator<Item = &'a str>,
    number: u64,
    is_secure: bool,
) -> Option<String> {
    let name = cookie_name(number, is_secure);
    let mut cookies = headers.flat_map(|header| header.split(';'));
    cookies.find_map(|cookie| {
        let (own, value) = cookie.trim().split_once('=')?;
        (own == name).then(|| value.to_owned())
    })
}

/// Returns a name for each login, so that several can be open in one browser. With `__Host-`, no other host can set it.
fn cookie_name(number: u64, is_secure: bool) -> String {
    let prefix = if is_secure { "__Host-" } else { "" };
    format!("{prefix}turnbuckle-login-{number}")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            character => escaped.push(character),
        }
    }
    escaped
}
