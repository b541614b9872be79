//! What a report never shows, whoever said it.

/// What stands in place of a secret.
const HIDDEN: &str = "***";

/// Headers whose values are nobody's business.
const HEADERS: &[&str] = &[
    "authorization",
    "cookie",
    "dpop",
    "proxy-authorization",
    "set-cookie",
];

/// What the names of headers have in them that people keep keys in: `X-Api-Key`, `X-Auth-Token`.
const WORDS: &[&str] = &[
    "key",
    "token",
    "secret",
    "password",
    "auth",
    "cookie",
    "credential",
];

/// What a form shows who somebody is by.
const FIELDS: &[&str] = &[
    "client_secret",
    "client_assertion",
    "assertion",
    "refresh_token",
    "password",
];

/// Returns the value of a header as it may be shown. Challenges and what belongs to the protocol are no secret.
pub(crate) fn header(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let open = name.starts_with("mcp-") || name.ends_with("-authenticate");
    let parts = || name.split(['-', '_']);
    let telling = !open && parts().any(|part| WORDS.iter().any(|word| part.contains(word)));
    match telling || HEADERS.contains(&name.as_str()) {
        true => HIDDEN.to_owned(),
        false => value.to_owned(),
    }
}

/// Returns what is shown of what the user gave.
pub(crate) fn given() -> String {
    HIDDEN.to_owned()
}

/// Returns a form as it may be shown.
pub(crate) fn form(text: &str) -> String {
    let pairs = text.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if FIELDS.contains(&name) => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns a path as it may be shown: some servers are given their key in the query.
pub(crate) fn path(path: &str) -> String {
    match path.split_once('?') {
        Some((place, _)) => format!("{place}?{HIDDEN}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_wherever_people_keep_them() {
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
