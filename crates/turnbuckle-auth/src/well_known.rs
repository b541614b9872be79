//! Well-known URLs of metadata documents.

use turnbuckle_text::url::HttpUrl;

/// Returns the URLs where the metadata of a protected resource may be: below its path, then at the root of its origin.
///
/// Returns nothing if `resource` is not a URL that can be fetched.
///
/// ```
/// use turnbuckle_auth::well_known;
///
/// assert_eq!(
///     well_known::protected_resource("https://a.example/mcp"),
///     [
///         "https://a.example/.well-known/oauth-protected-resource/mcp",
///         "https://a.example/.well-known/oauth-protected-resource",
///     ]
/// );
/// ```
pub fn protected_resource(resource: &str) -> Vec<String> {
    let Ok(url) = HttpUrl::parse(resource) else {
        return Vec::new();
    };
    let root = format!("{}/.well-known/oauth-protected-resource", url.origin);
    let below = format!("{}{}", url.path_without_root(), url.query);
    match below.as_str() {
        "" => vec![root],
        below => vec![format!("{root}{below}"), root],
    }
}

/// Returns the URLs where the metadata of an authorization server may be, in the order to try them.
///
/// For an issuer with a path: RFC 8414 with the path appended, OpenID Connect with the path appended, OpenID Connect
/// with the path prepended.
pub fn authorization_server(issuer: &str) -> Vec<String> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let Some(url) = HttpUrl::parse(issuer)
        .ok()
        .filter(|url| url.query.is_empty())
    else {
        return Vec::new();
    };
    let origin = url.origin;
    match url.path_without_root().trim_end_matches('/') {
        "" => vec![format!("{origin}{OAUTH}"), format!("{origin}{OPENID}")],
        path => vec![
            format!("{origin}{OAUTH}{path}"),
            format!("{origin}{OPENID}{path}"),
            format!("{origin}{path}{OPENID}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_with_a_path_has_three_urls_and_one_without_has_two() {
        assert_eq!(
            authorization_server("https://a.example/tenant1/"),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        for issuer in ["https://a.example", "https://a.example/"] {
            assert_eq!(
                authorization_server(issuer),
                [
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration",
                ]
            );
        }
    }

    #[test]
    fn a_resource_at_the_root_has_one_url() {
        let root = ["https://a.example:8443/.well-known/oauth-protected-resource"];

        assert_eq!(protected_resource("https://a.example:8443/"), root);
        assert_eq!(protected_resource("https://a.example:8443"), root);
    }

    #[test]
    fn an_unfetchable_url_has_no_well_known_urls() {
        for url in [
            "file:///etc/passwd",
            "https://user@a.example",
            "https://a.example/#x",
        ] {
            assert!(protected_resource(url).is_empty(), "{url}");
            assert!(authorization_server(url).is_empty(), "{url}");
        }
        assert!(authorization_server("https://a.example/?x").is_empty());
    }
}
