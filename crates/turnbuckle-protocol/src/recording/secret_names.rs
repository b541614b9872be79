//! The names of headers and parameters with values that are always redacted.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::named_values::is_placeholder;

/// Headers that contain credentials.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "mcp-session-id",
    "dpop",
];

/// Words that mark the name of a secret parameter, in lower case with underscores.
const SECRET_WORDS: [&str; 14] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "private_key",
    "privatekey",
    "api_key",
    "apikey",
    "session",
    "signature",
    "assertion",
];

/// Whole names of secret parameters.
const SECRET_PARAMETERS: [&str; 7] = [
    "code",
    "code_verifier",
    "sig",
    "key",
    "auth",
    "jwt",
    "state",
];

/// The minimum length of a bearer token in running text.
const MIN_BEARER_CHARS: usize = 8;

/// Returns whether a header, or a member of a message with this name, contains credentials.
pub(super) fn is_secret_header(name: &str) -> bool {
    let mut secret = SECRET_HEADERS.iter();
    secret.any(|header| name.eq_ignore_ascii_case(header))
}

/// Returns whether a parameter of a URL or an option of a program contains a secret.
pub(super) fn is_secret_parameter(name: &str) -> bool {
    has_secret_word(name) || SECRET_PARAMETERS.contains(&&*normalized(name))
}

/// Returns whether a name contains a word for a secret, so that its value is one even in running text.
pub(super) fn has_secret_word(name: &str) -> bool {
    let name = normalized(name);
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

fn normalized(name: &str) -> String {
    let name = percent_decode_str(name).decode_utf8_lossy();
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    name.replace(['-', ' '], "_")
}

/// Rewrites the words of a text that have a URL.
pub(super) fn replace_in_words<'t>(
    text: &'t str,
    mut replace_url: impl FnMut(&str) -> Option<String>,
) -> Cow<'t, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut is_changed = false;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let replaced = word.contains("://").then(|| replace_url(word)).flatten();
        is_changed |= replaced.is_some();
        out.push_str(replaced.as_deref().unwrap_or(word));
        out.push_str(&part[word.len()..]);
    }
    if is_changed {
        Cow::Owned(out)
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns whether a text contains a bearer token.
pub(super) fn has_bearer_token(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut places = lower.match_indices("bearer ");
    places.any(|(at, word)| {
        let rest = text[at + word.len()..].trim_start();
        let token = rest.bytes().take_while(|byte| is_token_byte(*byte));
        token.count() >= MIN_BEARER_CHARS
    })
}

/// Returns whether a byte can be part of a bearer token (`b64token` of RFC 6750).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

/// Rewrites the secrets of a URL: the credentials before the host, and the values of parameters in query and fragment
/// for which `is_secret` returns true.
pub(super) fn replace_in_url<'u>(
    url: &'u str,
    mut is_secret: impl FnMut(&str, &str) -> bool,
    mut number: impl FnMut(&str) -> u64,
) -> Cow<'u, str> {
    let mut out = String::new();
    let mut rest = url;
    let authority = url.find("://").map(|at| at + 3);
    if let Some(start) = authority {
        let end = url[start..]
            .find(['/', '?', '#'])
            .map_or(url.len(), |end| start + end);
        let credentials = url[start..end].rfind('@');
        let credentials = credentials.filter(|at| !is_placeholder(&url[start..start + at]));
        if let Some(at) = credentials {
            let secret = &url[start..start + at];
            out = format!("{}$redacted:{}", &url[..start], number(secret));
            rest = &url[start + at..];
        }
    }
    let mut is_changed = !out.is_empty();
    let parameters = rest.find(['?', '#', ';']).map_or(rest.len(), |at| at + 1);
    out.push_str(&rest[..parameters]);
    for part in rest[parameters..].split_inclusive(['&', ';', '#', '?']) {
        let text = part.trim_end_matches(['&', ';', '#', '?']);
        match text.split_once('=') {
            Some((name, value))
                if !value.is_empty() && !is_placeholder(value) && is_secret(name, value) =>
            {
                out.push_str(&format!("{name}=$redacted:{}", number(value)));
                out.push_str(&part[text.len()..]);
                is_changed = true;
            }
            _ => out.push_str(part),
        }
    }
    if is_changed {
        Cow::Owned(out)
    } else {
        Cow::Borrowed(url)
    }
}
