//! Removes secrets from what a report shows.

/// The replacement for a secret.
const REDACTED: &str = "***";

/// Headers with secret values.
const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "dpop",
    "proxy-authorization",
    "set-cookie",
];

/// Words in names of headers that often hold keys: `X-Api-Key`, `X-Auth-Token`.
const SECRET_WORDS: &[&str] = &[
    "key",
    "token",
    "secret",
    "password",
    "auth",
    "cookie",
    "credential",
];

/// Form fields that hold client credentials.
const SECRET_FIELDS: &[&str] = &[
    "client_secret",
    "client_assertion",
    "assertion",
    "refresh_token",
    "password",
];

/// Returns a header value for display. Challenges and `Mcp-*` headers are not secret.
pub(crate) fn header(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is_public = name.starts_with("mcp-") || name.ends_with("-authenticate");
    let parts = || name.split(['-', '_']);
    let is_secret =
        !is_public && parts().any(|part| SECRET_WORDS.iter().any(|word| part.contains(word)));
    if is_secret || SECRET_HEADERS.contains(&name.as_str()) {
        REDACTED.to_owned()
    } else {
        value.to_owned()
    }
}

/// Returns the replacement for a value that the user supplied.
pub(crate) fn user_value() -> String {
    REDACTED.to_owned()
}

/// Returns a form body for display.
pub(crate) fn form(text: &str) -> String {
    let pairs = text.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if SECRET_FIELDS.contains(&name) => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns a path for display without its query, which may hold a key.
pub(crate) fn path(path: &str) -> String {
    match path.split_once('?') {
        Some((location, _)) => format!("{location}?{REDACTED}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_redacted_in_headers_forms_and_queries() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "x-auth-token",
            "apikey",
            "Set-Cookie",
        ] {
            assert_eq!(header(name, "s3cret"), "***", "{name}");
        }
        for name in [
            "WWW-Authenticate",
            "Mcp-Param-Key",
            "Mcp-Session-Id",
            "Accept",
            "Host",
        ] {
            assert_eq!(header(name, "text"), "text", "{name}");
        }
        assert_eq!(
            form("grant_type=authorization_code&client_secret=s3cret&code=1"),
            "grant_type=authorization_code&client_secret=***&code=1"
        );
        assert_eq!(path("/mcp?key=s3cret"), "/mcp?***");
        assert_eq!(path("/mcp"), "/mcp");
    }
}
