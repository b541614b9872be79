//! Validation of URLs that come from servers: `https`, or `http` on a loopback address, and unambiguous for every
//! parser.

use turnbuckle_text::url::HttpUrl;

use super::oauth_error;
use crate::{AuthorizationError, AuthorizationStep};

/// Maximum length of a URL, in bytes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// Returns an error of this step if the URL must not be used. `what` describes the URL in the error.
pub(super) fn check(
    url: &str,
    step: AuthorizationStep,
    what: &str,
) -> Result<(), AuthorizationError> {
    match find_problem(url) {
        None => Ok(()),
        Some(problem) => {
            let shown = oauth_error::sanitize(url);
            Err(
                AuthorizationError::new(step, format!("the {what} `{shown}` {problem}"))
                    .with_hint("it must be an https URL, or http on a loopback address"),
            )
        }
    }
}

/// Returns what is wrong with a URL.
fn find_problem(url: &str) -> Option<&'static str> {
    if url.len() > MAX_URL_BYTES {
        return Some("is too long");
    }
    let Ok(parsed) = HttpUrl::parse(url) else {
        return Some("is not a valid http or https URL");
    };
    // Not allowed by RFC 3986; shells, browsers and logs would interpret them differently.
    if url.contains(['`', '{', '}', '|', '^']) {
        return Some("has characters that are not allowed in URLs");
    }
    (!parsed.is_https_or_loopback()).then_some("is not https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_http_on_loopback_are_accepted() {
        for url in [
            "https://as.example/authorize?tenant=a",
            "HTTPS://as.example:8443",
            "http://localhost:8080/x",
            "http://LOCALHOST/x",
            "http://127.0.0.1/x",
            "http://127.9.9.9:1/x",
            "http://[::1]:8080/x",
            "https://[2001:db8::1]/x",
        ] {
            assert_eq!(find_problem(url), None, "{url}");
        }
    }

    #[test]
    fn other_urls_are_rejected() {
        for url in [
            "http://as.example/authorize",
            "http://10.0.0.1/x",
            "http://127.0.0.1.evil.example/x",
            "http://localhost.evil.example/x",
            "http://localhost@evil.example/x",
            "http://[::1].evil.example/x",
            "http://0x7f.1/x",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-msdt:/id",
            "data:text/html,x",
            "--flag",
            "-https://as.example",
            "https://-oProxyCommand/x",
            "https://as.example/$(calc)`id`",
            "https://as.example/\u{0}",
            "https://as.example/\n",
            "https://as.example/ x",
            "https://as.example:port/",
            "https://as.example:99999/",
            "https://%61s.example/",
            "https://[x]/",
            "https://as.example/#fragment",
            "https://as.example\\@evil.example/",
            "https:as.example",
            "https:/as.example",
            "//as.example",
            "",
        ] {
            assert!(find_problem(url).is_some(), "{url:?}");
        }
        assert!(
            find_problem(&format!("https://as.example/{}", "a".repeat(MAX_URL_BYTES))).is_some()
        );
    }
}
