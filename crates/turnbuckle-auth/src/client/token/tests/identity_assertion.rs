//! The grant of an enterprise's identity provider.

use super::*;

const IDP: &str = "https://idp.example/token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

fn granted(changes: &Value) -> Value {
    let grant = json!({ "access_token": "the.id.jag", "issued_token_type": ID_JAG, "token_type": "N_A", "expires_in": 300 });
    with(grant, changes)
}

async fn grant(http: &FakeHttp, secret: Option<Secret>) -> Result<Secret, AuthorizationError> {
    let provider = IdentityProvider::new(IDP, "at-the-idp", secret);
    let scopes = "b a".parse().unwrap();
    let id_token = Secret::new("the-id-token");
    request_id_jag(
        http,
        &provider,
        &id_token,
        "https://as.example",
        SERVER,
        Some(&scopes),
    )
    .await
}

#[tokio::test]
async fn an_identity_token_is_exchanged_for_an_assertion_and_a_token() {
    req!("ext-ema.exchange");
    req!("ext-ema.exchange.requested-type");
    req!("ext-ema.exchange.audience");
    req!("ext-ema.exchange.resource");
    req!("ext-ema.exchange.scope");
    req!("ext-ema.exchange.subject");
    req!("ext-ema.token.grant-type");
    req!("ext-ema.token.assertion");
    req!("ext-ema.no-url");
    let http = FakeHttp::usual().post(IDP, 200, &granted(&json!({})));
    let (server, client) = (server(), confidential());

    let grant = grant(&http, None).await.unwrap();
    let endpoint = TokenEndpoint::new(&server, &client);
    jwt_bearer(&http, &endpoint, &grant, SERVER, None, None)
        .await
        .unwrap();

    let request = http.last_post(IDP);
    for (name, value) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        ("requested_token_type", ID_JAG),
        ("audience", "https://as.example"),
        ("resource", SERVER),
        ("scope", "a b"),
        ("subject_token", "the-id-token"),
        (
            "subject_token_type",
            "urn:ietf:params:oauth:token-type:id_token",
        ),
        ("client_id", "at-the-idp"),
    ] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
    }
    let request = http.last_post(TOKEN);
    assert_eq!(
        request.field("grant_type").as_deref(),
        Some("urn:ietf:params:oauth:grant-type:jwt-bearer")
    );
    assert_eq!(request.field("assertion").as_deref(), Some("the.id.jag"));
    assert!(
        request
            .header("authorization")
            .unwrap()
            .starts_with("Basic ")
    );
    assert!(
        http.urls()
            .iter()
            .all(|url| !url.contains("jag") && !url.contains('?'))
    );
}

#[tokio::test]
async fn the_client_secret_is_sent_to_the_identity_provider() {
    let http = FakeHttp::usual().post(IDP, 200, &granted(&json!({})));

    grant(&http, Some(Secret::new("sesame"))).await.unwrap();

    let header = STANDARD.encode("at-the-idp:sesame");
    assert_eq!(
        http.last_post(IDP).header("authorization"),
        Some(&*format!("Basic {header}"))
    );
}

#[tokio::test]
async fn an_assertion_of_another_type_is_rejected() {
    for response in [
        granted(&json!({ "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" })),
        granted(&json!({ "issued_token_type": null })),
        granted(&json!({ "access_token": null })),
        granted(&json!({ "access_token": "" })),
        json!([]),
    ] {
        let http = FakeHttp::usual().post(IDP, 200, &response);

        let error = grant(&http, None).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Assertion);
        assert_eq!(error.request(), Some("POST https://idp.example/token"));
    }
}

#[tokio::test]
async fn a_rejection_by_the_identity_provider_does_not_quote_the_identity_token() {
    let response = json!({ "error": "invalid_grant", "error_description": "the-id-token is old" });
    let http = FakeHttp::usual().post(IDP, 400, &response);

    let error = grant(&http, None).await.unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Assertion);
    assert_eq!(error.response(), Some("400 invalid_grant: *** is old"));
    assert!(!format!("{error:?}").contains("the-id-token"));
}

#[tokio::test]
async fn an_identity_token_is_not_sent_to_an_unsafe_url() {
    req!("ext-ema.tls");
    let http = FakeHttp::usual();
    let provider = IdentityProvider::new("http://idp.example/token", "x", None);

    let id_token = Secret::new("the-id-token");
    let grant = request_id_jag(
        &http,
        &provider,
        &id_token,
        "https://as.example",
        SERVER,
        None,
    )
    .await;

    assert!(grant.is_err() && http.requests().is_empty());
}
