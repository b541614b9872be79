use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::*;
use crate::client::tests::fake_http::{FakeHttp, metadata, with};

const CALLBACK: &str = "http://127.0.0.1:9999/callback";
const REGISTER: &str = "https://as.example/register";

fn server(changes: &Value) -> AuthorizationServer {
    serde_json::from_value(with(metadata(), changes)).unwrap()
}

fn client_metadata() -> ClientMetadata {
    ClientMetadata::new("Test", [CALLBACK])
}

async fn response_to(
    status: u16,
    response: &Value,
) -> Result<ClientRegistration, AuthorizationError> {
    let http = FakeHttp::usual().post(REGISTER, status, response);
    register(&http, &server(&json!({})), &client_metadata()).await
}

#[tokio::test]
async fn a_registration_request_describes_the_client() {
    req!("auth.dcr.2025-03-26");
    req!("auth.dcr.2025-06-18");
    req!("auth.dcr.may");
    req!("auth.dcr.application-type");
    req!("auth.dcr.native");
    req!("auth.refresh.grant-type");
    req!("auth.redirect.registered");
    let http = FakeHttp::usual();
    let client_metadata = ClientMetadata {
        scopes: Some("b a".parse().unwrap()),
        software_id: Some("software".into()),
        software_version: Some("1".into()),
        client_uri: Some("https://client.example".into()),
        ..client_metadata()
    };

    let client = register(&http, &server(&json!({})), &client_metadata)
        .await
        .unwrap();

    assert_eq!(client.id, "registered");
    assert_eq!(client.source, RegistrationSource::Dynamic);
    assert_eq!(client.redirect_uri.as_deref(), Some(CALLBACK));
    let found = http.last_post(REGISTER);
    assert_eq!(found.header("content-type"), Some("application/json"));
    let found: Value = serde_json::from_str(&found.body).unwrap();
    assert_eq!(
        found,
        json!({
            "client_name": "Test",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "a b",
            "software_id": "software",
            "software_version": "1",
            "client_uri": "https://client.example",
        })
    );
}

#[tokio::test]
async fn application_type_and_grants_follow_the_redirect_uris() {
    req!("auth.dcr.web");
    let http = FakeHttp::usual();
    let client_metadata = ClientMetadata {
        application_type: ApplicationType::Web,
        grant_types: vec!["urn:ietf:params:oauth:grant-type:device_code".into()],
        ..ClientMetadata::new("Test", Vec::<String>::new())
    };

    let client = register(&http, &server(&json!({})), &client_metadata)
        .await
        .unwrap();

    let found: Value = serde_json::from_str(&http.last_post(REGISTER).body).unwrap();
    assert_eq!(found["application_type"], "web");
    assert_eq!(found["response_types"], json!([]));
    assert_eq!(client.redirect_uri, None);
}

#[tokio::test]
async fn a_supported_authentication_method_is_registered() {
    for (methods, request) in [
        (json!(["client_secret_basic"]), "client_secret_basic"),
        (json!(["client_secret_post"]), "client_secret_post"),
        (
            json!(["client_secret_post", "client_secret_basic"]),
            "client_secret_basic",
        ),
        (json!(["client_secret_basic", "none"]), "none"),
        (json!(null), "none"),
        (json!(["tls_client_auth"]), "none"),
    ] {
        let http = FakeHttp::usual();
        let server = server(&json!({ "token_endpoint_auth_methods_supported": methods }));

        register(&http, &server, &client_metadata()).await.unwrap();

        let found: Value = serde_json::from_str(&http.last_post(REGISTER).body).unwrap();
        assert_eq!(found["token_endpoint_auth_method"], request, "{methods}");
    }
}

#[tokio::test]
async fn the_authentication_method_comes_from_the_response_or_the_metadata() {
    let method = async |methods: Value, response: Value| {
        let http =
            FakeHttp::usual().post(REGISTER, 201, &with(json!({ "client_id": "x" }), &response));
        let server = server(&json!({ "token_endpoint_auth_methods_supported": methods }));
        register(&http, &server, &client_metadata())
            .await
            .unwrap()
            .method
    };
    let secret = json!({ "client_secret": "sesame" });
    let with_method = |name: &str| {
        with(
            secret.clone(),
            &json!({ "token_endpoint_auth_method": name }),
        )
    };
    use ClientAuthentication::{Basic, None, Post};

    assert_eq!(
        method(json!(["none"]), with_method("client_secret_post")).await,
        Post
    );
    assert_eq!(
        method(json!(["none"]), with_method("client_secret_basic")).await,
        Basic
    );
    assert_eq!(method(json!(["none"]), with_method("none")).await, None);
    assert_eq!(method(json!(["none"]), secret.clone()).await, None);
    assert_eq!(
        method(json!(["client_secret_post"]), secret.clone()).await,
        Post
    );
    assert_eq!(method(json!(null), secret.clone()).await, Basic);
    assert_eq!(
        method(json!(null), json!({ "client_secret": "" })).await,
        None
    );
    assert_eq!(method(json!(null), json!({})).await, None);
}

#[tokio::test]
async fn a_client_secret_expires_as_the_response_says() {
    let expires = async |at: Value| {
        let response =
            json!({ "client_id": "x", "client_secret": "sesame", "client_secret_expires_at": at });
        response_to(201, &response).await.unwrap()
    };

    assert_eq!(expires(json!(0)).await.expires, None);
    assert_eq!(expires(json!(null)).await.expires, None);
    let client = expires(json!(1_700_000_000)).await;
    assert!(client.has_expired(1_700_000_000) && !client.has_expired(1_699_999_999));
    assert!(!expires(json!(0)).await.has_expired(u64::MAX));
}

#[tokio::test]
async fn an_unusable_registration_response_is_an_error_without_the_secret() {
    for response in [
        json!({}),
        json!([]),
        json!({ "client_id": "" }),
        json!({ "client_id": 1 }),
        json!({ "client_id": "a\nb" }),
        json!({ "client_id": "x".repeat(100_000) }),
        json!({ "client_id": "x", "client_secret": "sesame\n" }),
        json!({ "client_id": "x", "client_secret": ["sesame"] }),
        json!({ "client_id": "x", "token_endpoint_auth_method": "client_secret_basic" }),
        json!({ "client_id": "x", "client_secret": "sesame", "token_endpoint_auth_method": "tls_client_auth" }),
    ] {
        let error = response_to(201, &response).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Registration);
        assert_eq!(error.request(), Some("POST https://as.example/register"));
        assert!(error.hint().is_some());
        assert!(!format!("{error:?}").contains("sesame"), "{error:?}");
    }
}

#[tokio::test]
async fn a_rejected_registration_has_a_hint() {
    req!("auth.dcr.failure");
    req!("auth.dcr.failure-surface");
    for (status, code, reason) in [
        (400, "invalid_redirect_uri", "redirect URIs on this machine"),
        (400, "invalid_client_metadata", "client metadata"),
        (
            400,
            "unapproved_software_statement",
            "only approved software",
        ),
        (401, "invalid_token", "open registration"),
        (403, "access_denied", "open registration"),
        (500, "server_error", "did not register the client"),
    ] {
        let response = json!({ "error": code, "error_description": "because" });

        let error = response_to(status, &response).await.unwrap_err();

        assert!(error.reason().contains(reason), "{error}");
        assert_eq!(error.error_code(), Some(code));
        assert_eq!(
            error.response(),
            Some(&*format!("{status} {code}: because"))
        );
        assert!(error.hint().unwrap().contains("client id"));
    }
}

#[tokio::test]
async fn unsafe_registration_endpoints_and_redirect_uris_are_rejected() {
    let http = FakeHttp::usual();
    for url in ["http://as.example/register", "file:///x", "javascript:x"] {
        let server = server(&json!({ "registration_endpoint": url }));
        assert!(
            register(&http, &server, &client_metadata()).await.is_err(),
            "{url}"
        );
    }
    let none = server(&json!({ "registration_endpoint": null }));
    let error = register(&http, &none, &client_metadata())
        .await
        .unwrap_err();
    assert!(error.hint().unwrap().contains("client id"));
    let evil = ClientMetadata::new("Test", ["http://evil.example/callback"]);
    assert!(register(&http, &server(&json!({})), &evil).await.is_err());
    assert!(http.requests().is_empty());
}

#[test]
fn preregistration_precedes_the_metadata_document_and_registration() {
    req!("auth.registration.obtain");
    req!("auth.registration.order");
    req!("auth.cimd.support");
    req!("auth.cimd.check");
    req!("auth.cimd.fallback");
    req!("auth.cimd.url");
    req!("auth.preregistration");
    const DOCUMENT: &str = "https://client.example/client.json";
    let knows = server(&json!({ "client_id_metadata_document_supported": true }));
    let usual = server(&json!({}));
    let closed = server(&json!({ "registration_endpoint": null }));
    let agreed = ClientRegistration::preregistered(&knows, "agreed", None);
    let used = |choice: RegistrationMethod| match choice {
        RegistrationMethod::Existing(client) => Some((client.id, client.source)),
        _ => None,
    };

    assert_eq!(
        used(choose_method(&knows, Some(agreed), Some(DOCUMENT))),
        Some(("agreed".to_owned(), RegistrationSource::Preregistered))
    );
    assert_eq!(
        used(choose_method(&knows, None, Some(DOCUMENT))),
        Some((DOCUMENT.to_owned(), RegistrationSource::MetadataDocument))
    );
    assert!(matches!(
        choose_method(&usual, None, Some(DOCUMENT)),
        RegistrationMethod::Dynamic
    ));
    assert!(matches!(
        choose_method(&knows, None, None),
        RegistrationMethod::Dynamic
    ));
    assert!(matches!(
        choose_method(&closed, None, Some(DOCUMENT)),
        RegistrationMethod::Manual
    ));
    for url in [
        "http://client.example/x",
        "https://client.example",
        "https://client.example/",
        "x",
        "",
    ] {
        assert!(
            matches!(
                choose_method(&knows, None, Some(url)),
                RegistrationMethod::Dynamic
            ),
            "{url}"
        );
    }
}

#[test]
fn a_preregistered_secret_uses_a_supported_method() {
    let method = |methods: Value, secret: Option<&str>| {
        let server = server(&json!({ "token_endpoint_auth_methods_supported": methods }));
        ClientRegistration::preregistered(&server, "x", secret.map(Secret::new)).method
    };

    assert_eq!(method(json!(null), Some("s")), ClientAuthentication::Basic);
    assert_eq!(
        method(json!(["client_secret_post"]), Some("s")),
        ClientAuthentication::Post
    );
    assert_eq!(
        method(json!(["private_key_jwt"]), Some("s")),
        ClientAuthentication::Basic
    );
    assert_eq!(
        method(json!(["client_secret_basic"]), None),
        ClientAuthentication::None
    );
}

#[test]
fn a_registration_survives_serialization() {
    let client = ClientRegistration {
        expires: Some(5),
        redirect_uri: Some(CALLBACK.into()),
        ..ClientRegistration::preregistered(&server(&json!({})), "x", Some(Secret::new("sesame")))
    };

    let stored = serde_json::to_string(&client).unwrap();
    let read: ClientRegistration = serde_json::from_str(&stored).unwrap();

    assert_eq!(
        stored,
        r#"{"id":"x","secret":"sesame","method":"client_secret_basic","redirect_uri":"http://127.0.0.1:9999/callback","expires":5,"source":"preregistered"}"#
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
    assert!(!format!("{client:?}").contains("sesame"));
}

#[test]
fn a_metadata_document_contains_its_own_url() {
    req!("auth.cimd.follow");
    req!("auth.cimd.https");
    req!("auth.cimd.url");
    req!("auth.cimd.fields");
    req!("auth.cimd.match");
    let url = "https://client.example/client.json";

    let document = client_metadata().metadata_document(url).unwrap();

    assert_eq!(document["client_id"], url);
    assert_eq!(document["client_name"], "Test");
    assert_eq!(document["redirect_uris"], json!([CALLBACK]));
    assert_eq!(document["token_endpoint_auth_method"], "none");
    for url in [
        "http://client.example/x",
        "https://client.example",
        "https://client.example/",
        "https://client.example/a/../b",
        "https://client.example/./b",
        "https://user@client.example/x",
        "https://client.example/x#y",
    ] {
        assert!(client_metadata().metadata_document(url).is_err(), "{url}");
    }
}
