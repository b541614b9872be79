use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::*;
use crate::{
    client::tests::fake_http::{ISSUER, SERVER, Web, metadata, with},
    fetch::{FetchError, FetchResponse},
};

const BELOW: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const ROOT: &str = "https://mcp.example/.well-known/oauth-protected-resource";
const AS_METADATA: &str = "https://as.example/.well-known/oauth-authorization-server";
const AS_OPENID: &str = "https://as.example/.well-known/openid-configuration";
const ORIGIN_METADATA: &str = "https://mcp.example/.well-known/oauth-authorization-server";

async fn find(web: &Web) -> Result<DiscoveryResult, AuthorizationError> {
    discover(web, SERVER, &[Challenge::bearer()], "2026-07-28").await
}

async fn announced(web: &Web, url: &str) -> Result<DiscoveryResult, AuthorizationError> {
    let challenges = [Challenge::bearer().resource_metadata(url)];
    discover(web, SERVER, &challenges, "2026-07-28").await
}

fn resource(issuers: &[&str]) -> Value {
    json!({ "resource": SERVER, "authorization_servers": issuers })
}

#[tokio::test]
async fn what_the_refusal_announces_is_asked_and_nothing_else() {
    req!("auth.prm.client");
    req!("auth.www-authenticate.parse");
    req!("auth.prm.client-order");
    let raw_url = "https://mcp.example/custom/metadata.json";
    let web = Web::usual().get(raw_url, &resource(&[ISSUER]));
    let header = format!(
        "Basic realm=\"x\", BEARER error=\"invalid_token\", Resource_Metadata=\"{raw_url}\""
    );
    let challenges = Challenge::parse(&header).unwrap();

    let found = discover(&web, SERVER, &challenges, "2026-07-28")
        .await
        .unwrap();

    assert_eq!(found.server.issuer, ISSUER);
    assert_eq!(found.method, DiscoveryMethod::ResourceMetadata);
    assert_eq!(web.urls(), [raw_url, AS_METADATA]);
}

#[tokio::test]
async fn without_an_announcement_it_is_below_the_path_or_at_the_root() {
    req!("auth.prm.client-order");
    let web = Web::usual();
    find(&web).await.unwrap();
    assert_eq!(web.urls(), [BELOW, AS_METADATA]);

    let web = Web::usual().status(BELOW, 404).get(
        ROOT,
        &with(
            resource(&[ISSUER]),
            &json!({ "resource": "https://mcp.example" }),
        ),
    );
    let found = find(&web).await.unwrap();
    assert_eq!(web.urls(), [BELOW, ROOT, AS_METADATA]);
    assert_eq!(
        found.resource, "https://mcp.example",
        "byte for byte, and no slash behind it"
    );
}

#[tokio::test]
async fn every_question_says_the_protocol_version() {
    req!("auth.metadata.2025-03-26.version-header");
    let web = Web::default();

    find(&web).await.unwrap();

    assert_eq!(web.heard().len(), 3);
    for heard in web.heard() {
        assert_eq!(
            heard.header("mcp-protocol-version"),
            Some("2026-07-28"),
            "{}",
            heard.url
        );
    }
}

#[tokio::test]
async fn metadata_about_another_server_is_refused_before_anybody_else_is_asked() {
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
        let web = Web::usual()
            .get(BELOW, &evil)
            .get(ROOT, &resource(&[ISSUER]));

        let failure = find(&web).await.unwrap_err();

        assert_eq!(failure.step(), AuthorizationStep::ResourceMetadata);
        assert!(
            failure.reason().contains("describes another server"),
            "{failure}"
        );
        assert_eq!(web.urls(), [BELOW], "{other}");
        assert!(announced(&web, BELOW).await.is_err(), "{other}");
    }
}

#[tokio::test]
async fn a_server_may_be_named_by_where_it_lies_in_its_origin() {
    let url = "https://mcp.example/tenant/a/mcp";
    let raw_url = "https://mcp.example/.well-known/oauth-protected-resource/tenant/a/mcp";
    for named in [
        url,
        "https://MCP.example:443/tenant/a/mcp/",
        "https://mcp.example/tenant/a",
        "https://mcp.example/tenant/",
        "https://mcp.example",
        "https://mcp.example/",
    ] {
        let web = Web::usual().get(
            raw_url,
            &with(resource(&[ISSUER]), &json!({ "resource": named })),
        );

        let found = discover(&web, url, &[], "2026-07-28").await.unwrap();

        assert_eq!(found.resource, named);
    }
}

#[tokio::test]
async fn metadata_that_is_there_and_wrong_is_no_reason_to_look_elsewhere() {
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
        let web = Web::usual().get(BELOW, &wrong);

        assert!(find(&web).await.is_err(), "{wrong}");

        assert_eq!(web.urls(), [BELOW], "{wrong}");
    }
}

#[tokio::test]
async fn trouble_is_not_absence() {
    for status in [301, 302, 500, 503] {
        let web = Web::usual()
            .status(BELOW, status)
            .get(ROOT, &resource(&[ISSUER]));
        let failure = find(&web).await.unwrap_err();
        assert_eq!(failure.request(), Some(&*format!("GET {BELOW}")));
        assert!(failure.response().unwrap().starts_with(&status.to_string()));
        assert!(failure.hint().is_some());
        assert_eq!(web.urls(), [BELOW], "{status}");

        let web = Web::usual().status(AS_METADATA, status);
        assert_eq!(
            find(&web).await.unwrap_err().step(),
            AuthorizationStep::ServerMetadata,
            "{status}"
        );
    }
    let broken = |_: &_| Some(Err(FetchError::Unreachable("connection refused".into())));
    let web = Web::usual().rule(broken);
    let failure = find(&web).await.unwrap_err();
    assert!(failure.reason().contains("connection refused"));
    assert_eq!(web.urls(), [BELOW]);
}

#[tokio::test]
async fn an_announced_document_that_is_not_there_is_a_failure() {
    let raw_url = "https://mcp.example/custom";
    let web = Web::usual();

    let failure = announced(&web, raw_url).await.unwrap_err();

    assert_eq!(failure.response(), Some("404 without an error code"));
    assert_eq!(web.urls(), [raw_url]);
}

#[tokio::test]
async fn an_announcement_leads_to_no_unsafe_place() {
    for raw_url in [
        "http://mcp.example/x",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://user:password@mcp.example/x",
        "/relative",
        "",
    ] {
        let web = Web::usual();

        let failure = announced(&web, raw_url).await.unwrap_err();

        assert!(failure.hint().is_some());
        assert!(web.heard().is_empty(), "{raw_url}");
    }
}

#[tokio::test]
async fn a_page_for_people_is_no_metadata() {
    let page = |heard: &crate::client::tests::fake_http::Heard| {
        let headers = vec![(
            "content-type".to_owned(),
            "text/html; charset=utf-8".to_owned(),
        )];
        (heard.url == BELOW).then(|| Ok(FetchResponse::new(200, headers, "<title>Welcome</title>")))
    };
    let web = Web::usual().rule(page).get(ROOT, &resource(&[ISSUER]));

    assert_eq!(
        find(&web).await.unwrap().method,
        DiscoveryMethod::ResourceMetadata
    );
}

#[tokio::test]
async fn an_issuer_without_a_path_has_its_metadata_in_two_places() {
    req!("auth.asm.order-root");
    req!("auth.asm.client-both");
    req!("auth.asm.client-2025-06-18");
    let web = Web::usual()
        .status(AS_METADATA, 404)
        .get(AS_OPENID, &metadata());
    assert_eq!(find(&web).await.unwrap().server.issuer, ISSUER);
    assert_eq!(web.urls(), [BELOW, AS_METADATA, AS_OPENID]);

    let web = Web::usual();
    find(&web).await.unwrap();
    assert_eq!(web.urls(), [BELOW, AS_METADATA], "no more than needed");
}

#[tokio::test]
async fn an_issuer_with_a_path_has_its_metadata_in_three_places_and_never_at_the_root() {
    req!("auth.asm.order-path");
    let issuer = "https://as.example/tenant1";
    let places = [
        "https://as.example/.well-known/oauth-authorization-server/tenant1",
        "https://as.example/.well-known/openid-configuration/tenant1",
        "https://as.example/tenant1/.well-known/openid-configuration",
    ];
    for (at, raw_url) in places.iter().enumerate() {
        let web = Web::usual()
            .get(BELOW, &resource(&[issuer]))
            .get(raw_url, &with(metadata(), &json!({ "issuer": issuer })));

        assert_eq!(find(&web).await.unwrap().server.issuer, issuer);

        assert_eq!(web.urls()[1..], places[..=at]);
    }
    let web = Web::usual().get(BELOW, &resource(&[issuer]));
    let failure = find(&web).await.unwrap_err();
    assert_eq!(failure.step(), AuthorizationStep::ServerMetadata);
    assert_eq!(
        failure.request(),
        Some(&*format!("GET {}", places.join(", ")))
    );
    assert_eq!(web.urls()[1..], places);
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
        let web = Web::usual()
            .get(AS_METADATA, &poisoned)
            .get(AS_OPENID, &metadata());

        let failure = find(&web).await.unwrap_err();

        assert!(
            failure.reason().contains("belongs to another one"),
            "{failure}"
        );
        assert_eq!(web.urls(), [BELOW, AS_METADATA], "{issuer}");
    }
}

#[tokio::test]
async fn an_issuer_without_a_path_may_have_a_slash_behind_it_and_is_what_its_document_says() {
    for (named, said) in [
        ("https://as.example/", "https://as.example/"),
        ("https://as.example/", "https://as.example"),
        ("https://as.example", "https://as.example/"),
    ] {
        let web = Web::usual()
            .get(BELOW, &resource(&[named]))
            .get(AS_METADATA, &with(metadata(), &json!({ "issuer": said })));

        assert_eq!(find(&web).await.unwrap().server.issuer, said);
    }
}

#[tokio::test]
async fn an_issuer_with_a_path_is_compared_as_the_resource_wrote_it() {
    let raw_url = "https://as.example/.well-known/oauth-authorization-server/tenant1";
    for (named, said) in [
        ("https://as.example/tenant1/", "https://as.example/tenant1"),
        ("https://as.example/tenant1", "https://as.example/tenant1/"),
    ] {
        let web = Web::usual()
            .get(BELOW, &resource(&[named]))
            .get(raw_url, &with(metadata(), &json!({ "issuer": said })));

        assert!(find(&web).await.is_err(), "{named} is not {said}");
    }
}

#[tokio::test]
async fn metadata_that_leads_to_an_unsafe_place_is_not_used() {
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
            let web = Web::usual().get(AS_METADATA, &with(metadata(), &json!({ endpoint: url })));

            let failure = find(&web).await.unwrap_err();

            assert_eq!(failure.step(), AuthorizationStep::ServerMetadata);
            assert_eq!(
                failure.request(),
                Some(&*format!("GET {AS_METADATA}")),
                "{endpoint} {url}"
            );
        }
    }
    let web = Web::usual().get(
        AS_METADATA,
        &with(metadata(), &json!({ "token_endpoint": null })),
    );
    assert!(
        find(&web).await.is_err(),
        "without a token endpoint it is of no use"
    );
}

#[tokio::test]
async fn endpoints_may_lie_in_other_origins_and_on_this_machine() {
    let elsewhere = json!({
        "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "http://127.0.0.1:8080/token",
    });
    let web = Web::usual().get(AS_METADATA, &with(metadata(), &elsewhere));

    find(&web).await.unwrap();
}

#[tokio::test]
async fn of_several_authorization_servers_the_first_that_has_metadata_is_taken() {
    let web = Web::usual().get(BELOW, &resource(&["https://gone.example", ISSUER]));
    assert_eq!(find(&web).await.unwrap().server.issuer, ISSUER);

    let many: Vec<_> = (0..100)
        .map(|at| format!("https://as{at}.example"))
        .collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let web = Web::usual().get(BELOW, &resource(&many));
    assert!(find(&web).await.is_err());
    assert_eq!(
        web.urls().len(),
        1 + 4 * 2,
        "not all of a long list are asked"
    );
}

#[tokio::test]
async fn a_server_without_metadata_gives_tokens_itself() {
    req!("auth.metadata.2025-03-26.client");
    req!("auth.metadata.2025-03-26.base-url");
    let own = json!({
        "issuer": "https://mcp.example",
        "authorization_endpoint": "https://mcp.example/oauth/authorize",
        "token_endpoint": "https://mcp.example/oauth/token",
    });
    for issuer in ["https://mcp.example", "https://mcp.example/"] {
        let web = Web::default().get(
            ORIGIN_METADATA,
            &with(own.clone(), &json!({ "issuer": issuer })),
        );

        let found = find(&web).await.unwrap();

        assert_eq!(found.method, DiscoveryMethod::OriginMetadata);
        assert_eq!(found.resource, SERVER);
        assert_eq!(found.server.issuer, issuer);
        assert_eq!(web.urls(), [BELOW, ROOT, ORIGIN_METADATA]);
    }
    let web = Web::default().get(ORIGIN_METADATA, &metadata());
    assert!(
        find(&web).await.is_err(),
        "also here an issuer speaks for itself only"
    );
}

#[tokio::test]
async fn a_server_without_any_metadata_has_its_endpoints_where_2025_03_26_has_them() {
    req!("auth.metadata.2025-03-26.fallback");
    let found = find(&Web::default()).await.unwrap();

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
        "it is required of everyone there"
    );
}

#[tokio::test]
async fn a_server_that_does_not_name_itself_is_named_in_the_usual_way() {
    req!("auth.resource.canonical");
    req!("auth.resource.specific");
    for (url, named) in [
        ("HTTPS://MCP.example/Mcp", "https://mcp.example/Mcp"),
        ("https://mcp.example/", "https://mcp.example"),
        ("https://mcp.example:8443", "https://mcp.example:8443"),
        ("https://mcp.example/a/?b=C", "https://mcp.example/a/?b=C"),
    ] {
        let found = discover(&Web::default(), url, &[], "2026-07-28").await;

        assert_eq!(found.unwrap().resource, named);
    }
}

#[tokio::test]
async fn what_is_null_in_metadata_is_not_there() {
    let nulls = json!({ "scopes_supported": null, "dpop_bound_access_tokens_required": null, "resource_name": null });
    let more = json!({ "scopes_supported": null, "grant_types_supported": null, "client_id_metadata_document_supported": null, "jwks_uri": null });
    let document = |mut document: Value, nulls: &Value| {
        let fields = document.as_object_mut().unwrap();
        fields.extend(nulls.as_object().unwrap().clone());
        document
    };
    let web = Web::usual()
        .get(BELOW, &document(resource(&[ISSUER]), &nulls))
        .get(AS_METADATA, &document(metadata(), &more));

    let found = find(&web).await.unwrap();

    assert_eq!(found.scopes, None);
    assert!(!found.dpop_required && !found.server.client_id_metadata_document_supported);
}

#[tokio::test]
async fn a_server_that_is_not_safe_itself_is_not_asked() {
    let web = Web::usual();

    assert!(
        discover(&web, "http://mcp.example/mcp", &[], "2026-07-28")
            .await
            .is_err()
    );

    assert!(web.heard().is_empty());
    let local = discover(&web, "http://localhost:8080/mcp", &[], "2026-07-28").await;
    assert_eq!(local.unwrap().method, DiscoveryMethod::DefaultEndpoints);
}

#[tokio::test]
async fn scopes_are_those_that_can_be_ones() {
    let names = json!({ "scopes_supported": ["files:read", "a b", "\"", "ä"] });
    let web = Web::usual().get(BELOW, &with(resource(&[ISSUER]), &names));
    let found = find(&web).await.unwrap();
    assert_eq!(found.scopes.unwrap().to_string(), "a b files:read");

    assert_eq!(find(&Web::usual()).await.unwrap().scopes, None);
}

#[tokio::test]
async fn a_key_is_needed_where_the_server_says_so() {
    let dpop = [Challenge::dpop()];
    let both = [Challenge::dpop(), Challenge::bearer()];
    let required = json!({ "dpop_bound_access_tokens_required": true });
    let strict = Web::usual().get(BELOW, &with(resource(&[ISSUER]), &required));
    let web = Web::usual();

    let needs = async |web: &Web, challenges: &[Challenge]| {
        let found = discover(web, SERVER, challenges, "2026-07-28").await;
        found.unwrap().dpop_required
    };

    assert!(needs(&web, &dpop).await);
    assert!(needs(&strict, &both).await);
    assert!(!needs(&web, &both).await);
    assert!(!needs(&web, &[]).await);
}
