use super::*;

const SERVER: &str = "https://a.example/mcp";

fn resource(json: &str) -> Result<ProtectedResource, InvalidMetadata> {
    ProtectedResource::parse(json.as_bytes(), SERVER)
}

#[test]
fn optional_members_of_resource_metadata_may_be_absent() {
    let json = r#"{"resource":"https://A.example/mcp/","authorization_servers":["https://as.example"],"x":1}"#;

    let metadata = resource(json).unwrap();

    assert_eq!(metadata.authorization_servers, ["https://as.example"]);
    assert!(metadata.scopes_supported.is_empty());
}

#[test]
fn metadata_of_another_resource_is_rejected() {
    for other in [
        "https://b.example/mcp",
        "https://a.example",
        "https://a.example/mcp/x",
    ] {
        let json =
            format!(r#"{{"resource":"{other}","authorization_servers":["https://as.example"]}}"#);

        let found = other.to_owned();
        assert_eq!(
            resource(&json),
            Err(InvalidMetadata::ResourceMismatch { found })
        );
    }
}

#[test]
fn metadata_without_authorization_servers_is_rejected() {
    let json = format!(r#"{{"resource":"{SERVER}"}}"#);

    assert_eq!(resource(&json), Err(InvalidMetadata::NoAuthorizationServer));
}

#[test]
fn metadata_of_the_wrong_type_is_rejected() {
    for json in ["", "[]", "{}", r#"{"resource":1}"#, "<html>"] {
        assert!(
            matches!(resource(json), Err(InvalidMetadata::InvalidJson(_))),
            "{json}"
        );
    }
}

#[test]
fn an_error_in_metadata_has_the_terms_of_json() {
    for (json, expected) in [
        (
            "[]",
            "invalid metadata: invalid type: array, expected object",
        ),
        (
            r#"{"resource":1}"#,
            "invalid metadata: `resource`: invalid type: number `1`, expected string",
        ),
    ] {
        assert_eq!(resource(json).unwrap_err().to_string(), expected);
    }
}

#[test]
fn an_issuer_is_compared_byte_for_byte() {
    let json = br#"{"issuer":"https://as.example","token_endpoint":"https://as.example/t"}"#;

    let metadata = AuthorizationServer::parse(json, "https://as.example").unwrap();
    assert_eq!(
        metadata.token_endpoint.as_deref(),
        Some("https://as.example/t")
    );
    for issuer in [
        "https://as.example/",
        "https://AS.example",
        "https://as.example:443",
    ] {
        let error = AuthorizationServer::parse(json, issuer);
        assert!(
            matches!(error, Err(InvalidMetadata::IssuerMismatch { .. })),
            "{issuer}"
        );
    }
}

#[test]
fn missing_pkce_methods_mean_no_support() {
    let with = |methods: &[&str]| AuthorizationServer {
        code_challenge_methods_supported: methods.iter().copied().map(Into::into).collect(),
        ..AuthorizationServer::default()
    };

    assert_eq!(with(&["plain", "S256"]).check_pkce(), Ok(()));
    assert_eq!(with(&["plain"]).check_pkce(), Err(InvalidMetadata::NoPkce));
    assert_eq!(with(&[]).check_pkce(), Err(InvalidMetadata::NoPkce));
}

#[test]
fn absent_members_are_not_written() {
    let metadata = ProtectedResource::new(SERVER, ["https://as.example"]);

    assert_eq!(
        serde_json::to_string(&metadata).unwrap(),
        r#"{"resource":"https://a.example/mcp","authorization_servers":["https://as.example"],"bearer_methods_supported":["header"]}"#
    );
}

#[test]
fn case_default_port_and_trailing_slash_are_ignored() {
    for (one, other) in [
        ("http://a.example", "http://a.example/"),
        ("http://a.example:80/x", "http://A.EXAMPLE/x/"),
        ("https://a.example/x?y", "https://a.example:443/x?y"),
        ("http://[::1]:8080/mcp", "HTTP://[::1]:8080/mcp"),
    ] {
        assert!(is_same_resource(one, other), "{one} {other}");
    }
}

#[test]
fn another_scheme_host_port_path_or_query_is_another_resource() {
    let one = "https://a.example/x";
    for other in [
        "http://a.example/x",
        "https://b.example/x",
        "https://a.example:8443/x",
        "https://a.example:80/x",
        "https://a.example/X",
        "https://a.example/x//",
        "https://a.example/x?y",
        "https://a.example/%78",
        "https://a.example/x#y",
        "https://user@a.example/x",
        "",
    ] {
        assert!(!is_same_resource(one, other), "{other}");
    }
    assert!(!is_same_resource("x", "x"), "not a URL");
}
