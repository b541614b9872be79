use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    client::tests::fake_http::{FakeHttp, ISSUER, SERVER, metadata, with},
    fetch::{FetchError, FetchResponse},
};

const BELOW: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const ROOT: &str = "https://mcp.example/.well-known/oauth-protected-resource";
const AS_METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";
const AS_OPENID: &str = "https://as.example/.well-known/openid-configuration";
const ORIGIN_METADATA: &str = "https://mcp.example/.well-known/oauth-authorization-server";

async fn find(http: &FakeHttp) -> Result<DiscoveryResult, AuthorizationError> {
    discover(http, SERVER, &[Challenge::bearer()], "2026-07-28").await
}

async fn announced(http: &FakeHttp, url: &str) -> Result<DiscoveryResult, AuthorizationError> {
    let challenges = [Challenge::bearer().resource_metadata(url)];
    discover(http, SERVER, &challenges, "2026-07-28").await
}

fn resource(issuers: &[&str]) -> Value {
    json!({ "resource": SERVER, "authorization_servers": issuers })
}

#[tokio::test]
async fn only_the_announced_metadata_url_is_fetched() {
    req!("auth.prm.client");
    req!("auth.www-authenticate.parse");
    req!("auth.prm.client-order");
    let url = "https://mcp.example/custom/metadata.json";
    let http = FakeHttp::usual().get(url, &resource(&[ISSUER]));
    let header =
        format!("Basic realm=\"x\", BEARER error=\"invalid_token\", Resource_Metadata=\"{url}\"");
    let challenges = Challenge::parse(&header).unwrap();

    let found = discover(&http, SERVER, &challenges, "2026-07-28")
        .await
        .unwrap();

    assert_eq!(found.server.issuer, ISSUER);
    assert_eq!(found.method, DiscoveryMethod::ResourceMetadata);
    assert_eq!(http.urls(), [url, AS_METADATA]);
}

#[tokio::test]
async fn without_an_announced_url_the_well_known_paths_are_tried() {
    req!("auth.prm.client-order");
    let http = FakeHttp::usual();
    find(&http).await.unwrap();
    assert_eq!(http.urls(), [BELOW, AS_METADATA]);

    let http = FakeHttp::usual().status(BELOW, 404).get(
        ROOT,
        &with(
            resource(&[ISSUER]),
            &json!({ "resource": "https://mcp.example" }),
        ),
    );
    let found = find(&http).await.unwrap();
    assert_eq!(http.urls(), [BELOW, ROOT, AS_METADATA]);
    assert_eq!(
        found.resource, "https://mcp.example",
        "exactly as written, without a trailing slash"
    );
}

#[tokio::test]
async fn every_request_has_the_protocol_version() {
    req!("auth.metadata.2025-03-26.version-header");
    let http = FakeHttp::default();

    find(&http).await.unwrap();

    assert_eq!(http.requests().len(), 3);
    for request in http.requests() {
        assert_eq!(
            request.header("mcp-protocol-version"),
            Some("2026-07-28"),
            "{}",
            request.url
        );
    }
}

#[tokio::test]
async fn metadata_of_another_resource_is_rejected_before_other_requests() {
    req!("auth.resource.identify");
    for other in [
        "https://evil.example/mcp",
        "https://mcp.example/other",
        "https://mcp.example/mc",
        "https://mcp.example/mcp/admin",
        "https://mcp.example:8443/mcp",
        "http://mcp.example/mcp",
        "https://mcp.example.evil.example/mcp",
        "https://mcp.example@evil.example/mcp",
        "https://mcp.example/mcp#x",
        "https://mcp.example/mcp?x",
        "",
    ] {
        let evil = with(resource(&[ISSUER]), &json!({ "resource": other }));
        let http = FakeHttp::usual()
            .get(BELOW, &evil)
            .get(ROOT, &resource(&[ISSUER]));

        let error = find(&http).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::ResourceMetadata);
        assert!(
            error.reason().contains("describes another server"),
            "{error}"
        );
        assert_eq!(http.urls(), [BELOW], "{other}");
        assert!(announced(&http, BELOW).await.is_err(), "{other}");
    }
}

#[tokio::test]
async fn a_resource_may_be_a_parent_path_of_the_server() {
    let server_url = "https://mcp.example/tenant/a/mcp";
    let url = "https://mcp.example/.well-known/oauth-protected-resource/tenant/a/mcp";
    for named in [
        server_url,
        "https://MCP.example:443/tenant/a/mcp/",
        "https://mcp.example/tenant/a",
        "https://mcp.example/tenant/",
        "https://mcp.example",
        "https://mcp.example/",
    ] {
        let http = FakeHttp::usual().get(
            url,
            &with(resource(&[ISSUER]), &json!({ "resource": named })),
        );

        let found = discover(&http, server_url, &[], "2026-07-28")
            .await
            .unwrap();

        assert_eq!(found.resource, named);
    }
}

#[tokio::test]
async fn invalid_metadata_ends_discovery() {
    for wrong in [
        json!({}),
        json!([]),
        json!("x"),
        json!({ "resource": SERVER }),
        json!({ "resource": SERVER, "authorization_servers": [] }),
        json!({ "resource": SERVER, "authorization_servers": [1] }),
        json!({ "resource": SERVER, "authorization_servers": ["http://as.example"] }),
        json!({ "resource": SERVER, "authorization_servers": ["file:///etc/passwd"] }),
        json!({ "resource": SERVER, "authorization_servers": ["https://as.example\u{0}"] }),
        json!({ "resource": SERVER, "authorization_servers": ["https://as.example?x"] }),
    ] {
        let http = FakeHttp::usual().get(BELOW, &wrong);

        assert!(find(&http).await.is_err(), "{wrong}");

        assert_eq!(http.urls(), [BELOW], "{wrong}");
    }
}

#[tokio::test]
async fn a_server_error_is_not_treated_as_missing_metadata() {
    for status in [301, 302, 500, 503] {
        let http = FakeHttp::usual()
            .status(BELOW, status)
            .get(ROOT, &resource(&[ISSUER]));
        let error = find(&http).await.unwrap_err();
        assert_eq!(error.request(), Some(&*format!("GET {BELOW}")));
        assert!(error.response().unwrap().starts_with(&status.to_string()));
        assert!(error.hint().is_some());
        assert_eq!(http.urls(), [BELOW], "{status}");

        let http = FakeHttp::usual().status(AS_METADATA, status);
        assert_eq!(
            find(&http).await.unwrap_err().step(),
            AuthorizationStep::ServerMetadata,
            "{status}"
        );
    }
    let broken = |_: &_| Some(Err(FetchError::Unreachable("connection refused".into())));
    let http = FakeHttp::usual().rule(broken);
    let error = find(&http).await.unwrap_err();
    assert!(error.reason().contains("connection refused"));
    assert_eq!(http.urls(), [BELOW]);
}

#[tokio::test]
async fn a_missing_announced_document_is_an_error() {
    let url = "https://mcp.example/custom";
    let http = FakeHttp::usual();

    let error = announced(&http, url).await.unwrap_err();

    assert_eq!(error.response(), Some("404 without an error code"));
    assert_eq!(http.urls(), [url]);
}

#[tokio::test]
async fn an_unsafe_announced_url_is_rejected() {
    for url in [
        "http://mcp.example/x",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://user:password@mcp.example/x",
        "/relative",
        "",
    ] {
        let http = FakeHttp::usual();

        let error = announced(&http, url).await.unwrap_err();

        assert!(error.hint().is_some());
        assert!(http.requests().is_empty(), "{url}");
    }
}

#[tokio::test]
async fn an_html_page_is_not_metadata() {
    let page = |request: &crate::client::tests::fake_http::RecordedRequest| {
        let headers = vec![(
            "content-type".to_owned(),
            "text/html; charset=utf-8".to_owned(),
        )];
        (request.url == BELOW)
            .then(|| Ok(FetchResponse::new(200, headers, "<title>Welcome</title>")))
    };
    let http = FakeHttp::usual().rule(page).get(ROOT, &resource(&[ISSUER]));

    assert_eq!(
        find(&http).await.unwrap().method,
        DiscoveryMethod::ResourceMetadata
    );
}

#[tokio::test]
async fn an_issuer_without_a_path_has_two_metadata_urls() {
    req!("auth.asm.order-root");
    req!("auth.asm.client-both");
    req!("auth.asm.client-2025-06-18");
    let http = FakeHttp::usual()
        .status(AS_METADATA, 404)
        .get(AS_OPENID, &metadata());
    assert_eq!(find(&http).await.unwrap().server.issuer, ISSUER);
    assert_eq!(http.urls(), [BELOW, AS_METADATA, AS_OPENID]);

    let http = FakeHttp::usual();
    find(&http).await.unwrap();
    assert_eq!(http.urls(), [BELOW, AS_METADATA], "no further requests");
}

#[tokio::test]
async fn an_issuer_with_a_path_has_three_metadata_urls_and_none_at_the_root() {
    req!("auth.asm.order-path");
    let issuer = "https://as.example/tenant1";
    let urls = [
        "https://as.example/.well-known/oauth-authorization-server/tenant1",
        "https://as.example/.well-known/openid-configuration/tenant1",
        "https://as.example/tenant1/.well-known/openid-configuration",
    ];
    for (at, url) in urls.iter().enumerate() {
        let http = FakeHttp::usual()
            .get(BELOW, &resource(&[issuer]))
            .get(url, &with(metadata(), &json!({ "issuer": issuer })));

        assert_eq!(find(&http).await.unwrap().server.issuer, issuer);

        assert_eq!(http.urls()[1..], urls[..=at]);
    }
    let http = FakeHttp::usual().get(BELOW, &resource(&[issuer]));
    let error = find(&http).await.unwrap_err();
    assert_eq!(error.step(), AuthorizationStep::ServerMetadata);
    assert_eq!(error.request(), Some(&*format!("GET {}", urls.join(", "))));
    assert_eq!(http.urls()[1..], urls);
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    req!("auth.asm.issuer-identical");
    req!("auth.asm.issuer-mismatch");
    for issuer in [
        "https://attacker.example",
        "https://as.example//",
        "https://AS.example",
        "https://as.example:443",
        "HTTPS://as.example",
        "https://as.example/x",
        "",
    ] {
        let poisoned = with(metadata(), &json!({ "issuer": issuer }));
        let http = FakeHttp::usual()
            .get(AS_METADATA, &poisoned)
            .get(AS_OPENID, &metadata());

        let error = find(&http).await.unwrap_err();

        assert!(error.reason().contains("belongs to another one"), "{error}");
        assert_eq!(http.urls(), [BELOW, AS_METADATA], "{issuer}");
    }
}

#[tokio::test]
async fn an_issuer_without_a_path_is_spelled_as_in_its_document() {
    for (named, found) in [
        ("https://as.example/", "https://as.example/"),
        ("https://as.example/", "https://as.example"),
        ("https://as.example", "https://as.example/"),
    ] {
        let http = FakeHttp::usual()
            .get(BELOW, &resource(&[named]))
            .get(AS_METADATA, &with(metadata(), &json!({ "issuer": found })));

        assert_eq!(find(&http).await.unwrap().server.issuer, found);
    }
}

#[tokio::test]
async fn an_issuer_with_a_path_is_compared_exactly() {
    let url = "https://as.example/.well-known/oauth-authorization-server/tenant1";
    for (named, found) in [
        ("https://as.example/tenant1/", "https://as.example/tenant1"),
        ("https://as.example/tenant1", "https://as.example/tenant1/"),
    ] {
        let http = FakeHttp::usual()
            .get(BELOW, &resource(&[named]))
            .get(url, &with(metadata(), &json!({ "issuer": found })));

        assert!(find(&http).await.is_err(), "{named} is not {found}");
    }
}

#[tokio::test]
async fn metadata_with_an_unsafe_endpoint_is_rejected() {
    req!("auth.tls.communication");
    for endpoint in [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "device_authorization_endpoint",
    ] {
        for url in [
            "http://as.example/x",
            "javascript:alert(1)",
            "file:///x",
            "--flag",
            "https://a\nb/",
        ] {
            let http =
                FakeHttp::usual().get(AS_METADATA, &with(metadata(), &json!({ endpoint: url })));

            let error = find(&http).await.unwrap_err();

            assert_eq!(error.step(), AuthorizationStep::ServerMetadata);
            assert_eq!(
                error.request(),
                Some(&*format!("GET {AS_METADATA}")),
                "{endpoint} {url}"
            );
        }
    }
    let http = FakeHttp::usual().get(
        AS_METADATA,
        &with(metadata(), &json!({ "token_endpoint": null })),
    );
    assert!(find(&http).await.is_err(), "a token endpoint is required");
}

#[tokio::test]
async fn endpoints_may_be_in_other_origins_or_on_loopback() {
    let elsewhere = json!({
        "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "http://127.0.0.1:8080/token",
    });
    let http = FakeHttp::usual().get(AS_METADATA, &with(metadata(), &elsewhere));

    find(&http).await.unwrap();
}

#[tokio::test]
async fn the_first_authorization_server_with_metadata_is_used() {
    let http = FakeHttp::usual().get(BELOW, &resource(&["https://gone.example", ISSUER]));
    assert_eq!(find(&http).await.unwrap().server.issuer, ISSUER);

    let many: Vec<_> = (0..100)
        .map(|at| format!("https://as{at}.example"))
        .collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let http = FakeHttp::usual().get(BELOW, &resource(&many));
    assert!(find(&http).await.is_err());
    assert_eq!(
        http.urls().len(),
        1 + 4 * 2,
        "only the first issuers are tried"
    );
}

#[tokio::test]
async fn a_server_without_resource_metadata_is_its_own_authorization_server() {
    req!("auth.metadata.2025-03-26.client");
    req!("auth.metadata.2025-03-26.base-url");
    let own = json!({
        "issuer": "https://mcp.example",
        "authorization_endpoint": "https://mcp.example/oauth/authorize",
        "token_endpoint": "https://mcp.example/oauth/token",
    });
    for issuer in ["https://mcp.example", "https://mcp.example/"] {
        let http = FakeHttp::default().get(
            ORIGIN_METADATA,
            &with(own.clone(), &json!({ "issuer": issuer })),
        );

        let found = find(&http).await.unwrap();

        assert_eq!(found.method, DiscoveryMethod::OriginMetadata);
        assert_eq!(found.resource, SERVER);
        assert_eq!(found.server.issuer, issuer);
        assert_eq!(http.urls(), [BELOW, ROOT, ORIGIN_METADATA]);
    }
    let http = FakeHttp::default().get(ORIGIN_METADATA, &metadata());
    assert!(
        find(&http).await.is_err(),
        "the issuer must match its document"
    );
}

#[tokio::test]
async fn a_server_without_any_metadata_has_the_default_endpoints_of_2025_03_26() {
    req!("auth.metadata.2025-03-26.fallback");
    let found = find(&FakeHttp::default()).await.unwrap();

    let server = found.server;
    assert_eq!(found.method, DiscoveryMethod::DefaultEndpoints);
    assert_eq!(
        server.authorization_endpoint.as_deref(),
        Some("https://mcp.example/authorize")
    );
    assert_eq!(
        server.token_endpoint.as_deref(),
        Some("https://mcp.example/token")
    );
    assert_eq!(
        server.registration_endpoint.as_deref(),
        Some("https://mcp.example/register")
    );
    assert_eq!(
        server.check_pkce(),
        Ok(()),
        "PKCE is required by 2025-03-26"
    );
}

#[tokio::test]
async fn a_server_without_metadata_gets_its_canonical_resource_id() {
    req!("auth.resource.canonical");
    req!("auth.resource.specific");
    for (url, named) in [
        ("HTTPS://MCP.example/Mcp", "https://mcp.example/Mcp"),
        ("https://mcp.example/", "https://mcp.example"),
        ("https://mcp.example:8443", "https://mcp.example:8443"),
        ("https://mcp.example/a/?b=C", "https://mcp.example/a/?b=C"),
    ] {
        let found = discover(&FakeHttp::default(), url, &[], "2026-07-28").await;

        assert_eq!(found.unwrap().resource, named);
    }
}

#[tokio::test]
async fn null_members_of_metadata_are_absent() {
    let nulls = json!({ "scopes_supported": null, "dpop_bound_access_tokens_required": null, "resource_name": null });
    let more = json!({ "scopes_supported": null, "grant_types_supported": null, "client_id_metadata_document_supported": null, "jwks_uri": null });
    let document = |mut document: Value, nulls: &Value| {
        let fields = document.as_object_mut().unwrap();
        fields.extend(nulls.as_object().unwrap().clone());
        document
    };
    let http = FakeHttp::usual()
        .get(BELOW, &document(resource(&[ISSUER]), &nulls))
        .get(AS_METADATA, &document(metadata(), &more));

    let found = find(&http).await.unwrap();

    assert_eq!(found.scopes, None);
    assert!(!found.dpop_required && !found.server.client_id_metadata_document_supported);
}

#[tokio::test]
async fn an_unsafe_server_url_gets_no_request() {
    let http = FakeHttp::usual();

    assert!(
        discover(&http, "http://mcp.example/mcp", &[], "2026-07-28")
            .await
            .is_err()
    );

    assert!(http.requests().is_empty());
    let local = discover(&http, "http://localhost:8080/mcp", &[], "2026-07-28").await;
    assert_eq!(local.unwrap().method, DiscoveryMethod::DefaultEndpoints);
}

#[tokio::test]
async fn invalid_scope_names_are_skipped() {
    let names = json!({ "scopes_supported": ["files:read", "a b", "\"", "ä"] });
    let http = FakeHttp::usual().get(BELOW, &with(resource(&[ISSUER]), &names));
    let found = find(&http).await.unwrap();
    assert_eq!(found.scopes.unwrap().to_string(), "a b files:read");

    assert_eq!(find(&FakeHttp::usual()).await.unwrap().scopes, None);
}

#[tokio::test]
async fn dpop_is_required_if_the_metadata_requires_it() {
    let dpop = [Challenge::dpop()];
    let both = [Challenge::dpop(), Challenge::bearer()];
    let required = json!({ "dpop_bound_access_tokens_required": true });
    let strict = FakeHttp::usual().get(BELOW, &with(resource(&[ISSUER]), &required));
    let http = FakeHttp::usual();

    let needs = async |http: &FakeHttp, challenges: &[Challenge]| {
        let found = discover(http, SERVER, challenges, "2026-07-28").await;
        found.unwrap().dpop_required
    };

    assert!(needs(&http, &dpop).await);
    assert!(needs(&strict, &both).await);
    assert!(!needs(&http, &both).await);
    assert!(!needs(&http, &[]).await);
}
