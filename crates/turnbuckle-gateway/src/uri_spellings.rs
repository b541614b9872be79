//! The spellings of a URI that a server may take for the same one, so that none of them avoids a pattern.

use turnbuckle_text::percent::decode;

/// Maximum number of times that a URI is decoded. Some servers decode more than once.
const MAX_DECODINGS: usize = 3;
/// Schemes of which the authority follows any number of slashes (WHATWG URL Standard, "special scheme").
const SPECIAL_SCHEMES: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];
/// Characters with a meaning in patterns.
const PATTERN_CHARACTERS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Other spellings of a URI.
#[derive(Debug, Default)]
pub(crate) struct UriSpellings {
    /// The canonical forms of the URI, after each decoding.
    pub(crate) equal: Vec<String>,
    /// The URI without parts that some servers ignore: the query, and the host of a file.
    pub(crate) without_parts: Vec<String>,
}

impl UriSpellings {
    /// Returns the other spellings of a URI. `None` if it cannot be normalized: it contains control characters or bytes
    /// that are not UTF-8, or it is encoded too often.
    pub(crate) fn new(uri: &str) -> Option<Self> {
        let mut spellings = Self::default();
        let mut decoded = uri.to_owned();
        // Servers differ in whether they remove dot segments before or after they decode.
        for _ in 0..=MAX_DECODINGS {
            if decoded.bytes().any(|byte| byte.is_ascii_control()) {
                return None;
            }
            spellings.add(&decoded);
            let next = String::from_utf8(decode(&decoded)).ok()?;
            if next == decoded {
                return Some(spellings);
            }
            decoded = next;
        }
        None
    }

    fn add(&mut self, uri: &str) {
        // Servers differ in whether a file has a query.
        let (path, query) = uri.split_at(uri.find(['?', '#']).unwrap_or(uri.len()));
        let path = canonical(path);
        self.equal.push(format!("{path}{query}"));
        if !query.is_empty() {
            self.equal.push(canonical(uri));
        }
        let local = path.strip_prefix("file://");
        if let Some((_, local)) = local.and_then(|rest| rest.split_once('/')) {
            self.without_parts.push(format!("file:///{local}"));
        }
        self.without_parts.push(path);
    }
}

/// Returns whether a pattern can match a URI.
pub(crate) fn can_match_uri(pattern: &str) -> bool {
    let start = pattern.split(PATTERN_CHARACTERS).next().unwrap_or_default();
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    start.contains(':') || start.len() < pattern.len() && start.bytes().all(is_scheme)
}

/// Returns patterns for the canonical forms of the URIs that a pattern matches.
pub(crate) fn canonical_patterns(pattern: &str) -> Vec<String> {
    let Some((_, rest)) = pattern.split_once(':') else {
        return Vec::new();
    };
    let authority = rest.trim_start_matches('/').split('/').next();
    let has_pattern = |text: &str| text.contains(PATTERN_CHARACTERS);
    if pattern.contains('\\') || (rest.starts_with("//") && authority.is_some_and(has_pattern)) {
        return Vec::new();
    }
    let count = |text: &str| text.matches(PATTERN_CHARACTERS).count();
    let decoded = String::from_utf8(decode(pattern)).ok();
    let decoded = decoded.filter(|decoded| count(decoded) == count(pattern));
    let patterns = decoded.iter().map(String::as_str).chain([pattern]);
    patterns.map(canonical).collect()
}

/// Returns the canonical form of a URI: the scheme and the host in lower case, without credentials, the default
/// port, dot segments and empty segments.
fn canonical(uri: &str) -> String {
    let uri = uri.trim().replace('\\', "/");
    let Some((scheme, rest)) = uri.split_once(':') else {
        return uri;
    };
    let scheme = scheme.to_ascii_lowercase();
    let is_special = SPECIAL_SCHEMES.contains(&&*scheme);
    let (authority, path) = match rest.strip_prefix("//") {
        _ if is_special => split_path(rest.trim_start_matches('/')),
        Some(rest) => split_path(rest),
        None if scheme == "file" => ("", rest),
        None => return format!("{scheme}:{}", canonical_path(rest)),
    };
    let path = canonical_path(path);
    if scheme == "file" {
        let host = authority.to_ascii_lowercase();
        let host = if host == "localhost" { "" } else { &host };
        return format!("file://{host}/{}", path.trim_start_matches('/'));
    }
    if !is_special {
        return format!("{scheme}://{authority}{path}");
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.to_ascii_lowercase();
    let host = match host.rsplit_once(':') {
        Some((name, "" | "80" | "443" | "21")) => name,
        _ => &host,
    };
    let host = host.trim_end_matches('.');
    format!("{scheme}://{host}/{}", path.trim_start_matches('/'))
}

/// Splits an authority from its path.
fn split_path(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}

/// Removes dot segments and empty segments.
fn canonical_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let is_directory = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
    let start = if path.starts_with('/') { "/" } else { "" };
    let end = if is_directory && !segments.is_empty() {
        "/"
    } else {
        ""
    };
    format!("{start}{}{end}", segments.join("/"))
}
