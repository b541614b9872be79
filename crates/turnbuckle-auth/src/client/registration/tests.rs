use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::*;
use crate::client::tests::fake_http::{Web, metadata, with};

const CALLBACK: &str = "http://127.0.0.1:9999/callback";
const REGISTER: &str = "https://as.example/register";

fn server(changes: &Value) -> AuthorizationServer {
    serde_json::from_value(with(metadata(), changes)).unwrap()
}

fn client_metadata() -> ClientMetadata {
    ClientMetadata::new("Test", [CALLBACK])
}

async fn answered(status: u16, answer: &Value) -> Result<ClientRegistration, AuthorizationError> {
    let web = Web::usual().post(REGISTER, status, answer);
    register(&web, &server(&json!({})), &client_metadata()).await
}

#[tokio::test]
async fn a_client_says_what_it_is_when_it_registers() {
    req!("auth.dcr.2025-03-26");
    req!("auth.dcr.2025-06-18");
    req!("auth.dcr.may");
    req!("auth.dcr.application-type");
    req!("auth.dcr.native");
    req!("auth.refresh.grant-type");
    req!("auth.redirect.registered");
    let web = Web::usual();
    let client_metadata = ClientMetadata {
        scopes: Some("b a".parse().unwrap()),
        software_id: Some("software".into()),
        software_version: Some("1".into()),
        client_uri: Some("https://client.example".into()),
        ..client_metadata()
    };

    let client = register(&web, &server(&json!({})), &client_metadata)
        .await
        .unwrap();

    assert_eq!(client.id, "registered");
    assert_eq!(client.source, RegistrationSource::Dynamic);
    assert_eq!(client.redirect_uri.as_deref(), Some(CALLBACK));
    let said = web.posted(REGISTER);
    assert_eq!(said.header("content-type"), Some("application/json"));
    let said: Value = serde_json::from_str(&said.body).unwrap();
    assert_eq!(
        said,
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
async fn a_site_is_no_native_program_and_a_device_has_no_code() {
    req!("auth.dcr.web");
    let web = Web::usual();
    let client_metadata = ClientMetadata {
        application_type: ApplicationType::Web,
        grant_types: vec!["urn:ietf:params:oauth:grant-type:device_code".into()],
        ..ClientMetadata::new("Test", Vec::<String>::new())
    };

    let client = register(&web, &server(&json!({})), &client_metadata)
        .await
        .unwrap();

    let said: Value = serde_json::from_str(&web.posted(REGISTER).body).unwrap();
    assert_eq!(said["application_type"], "web");
    assert_eq!(said["response_types"], json!([]));
    assert_eq!(client.redirect_uri, None);
}

#[tokio::test]
async fn a_client_asks_for_the_way_to_show_itself_that_the_server_has() {
    for (methods, asked) in [
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
        let web = Web::usual();
        let server = server(&json!({ "token_endpoint_auth_methods_supported": methods }));

        register(&web, &server, &client_metadata()).await.unwrap();

        let said: Value = serde_json::from_str(&web.posted(REGISTER).body).unwrap();
        assert_eq!(said["token_endpoint_auth_method"], asked, "{methods}");
    }
}

#[tokio::test]
async fn a_client_shows_itself_as_the_answer_says_or_else_as_the_server_can_see() {
    let method = async |methods: Value, answer: Value| {
        let web = Web::usual().post(REGISTER, 201, &with(json!({ "client_id": "x" }), &answer));
        let server = server(&json!({ "token_endpoint_auth_methods_supported": methods }));
        register(&web, &server, &client_metadata())
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
async fn a_secret_ends_when_the_answer_says() {
    let expires = async |at: Value| {
        let answer =
            json!({ "client_id": "x", "client_secret": "sesame", "client_secret_expires_at": at });
        answered(201, &answer).await.unwrap()
    };

    assert_eq!(expires(json!(0)).await.expires, None);
    assert_eq!(expires(json!(null)).await.expires, None);
    let client = expires(json!(1_700_000_000)).await;
    assert!(client.has_expired(1_700_000_000) && !client.has_expired(1_699_999_999));
    assert!(!expires(json!(0)).await.has_expired(u64::MAX));
}

#[tokio::test]
async fn an_answer_that_is_of_no_use_is_a_failure_that_does_not_tell_the_secret() {
    for answer in [
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
        let failure = answered(201, &answer).await.unwrap_err();

        assert_eq!(failure.step(), AuthorizationStep::Registration);
        assert_eq!(failure.request(), Some("POST https://as.example/register"));
        assert!(failure.hint().is_some());
        assert!(!format!("{failure:?}").contains("sesame"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_what_to_do() {
    req!("auth.dcr.failure");
    req!("auth.dcr.failure-surface");
    for (status, error, told) in [
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
        let answer = json!({ "error": error, "error_description": "because" });

        let failure = answered(status, &answer).await.unwrap_err();

        assert!(failure.reason().contains(told), "{failure}");
        assert_eq!(failure.error_code(), Some(error));
        assert_eq!(
            failure.response(),
            Some(&*format!("{status} {error}: because"))
        );
        assert!(failure.hint().unwrap().contains("client id"));
    }
}

#[tokio::test]
async fn nobody_registers_at_an_unsafe_place_or_to_return_to_one() {
    let web = Web::usual();
    for url in ["http://as.example/register", "file:///x", "javascript:x"] {
        let server = server(&json!({ "registration_endpoint": url }));
        assert!(
            register(&web, &server, &client_metadata()).await.is_err(),
            "{url}"
        );
    }
    let none = server(&json!({ "registration_endpoint": null }));
    let failure = register(&web, &none, &client_metadata()).await.unwrap_err();
    assert!(failure.hint().unwrap().contains("client id"));
    let evil = ClientMetadata::new("Test", ["http://evil.example/callback"]);
    assert!(register(&web, &server(&json!({})), &evil).await.is_err());
    assert!(web.heard().is_empty());
}

#[test]
fn what_was_agreed_upon_comes_first_then_the_document_then_registration() {
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
fn an_agreed_secret_is_shown_as_the_server_wants() {
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
fn what_is_kept_can_be_read_again() {
    let client = ClientRegistration {
        expires: Some(5),
        redirect_uri: Some(CALLBACK.into()),
        ..ClientRegistration::preregistered(&server(&json!({})), "x", Some(Secret::new("sesame")))
    };

    let kept = serde_json::to_string(&client).unwrap();
    let read: ClientRegistration = serde_json::from_str(&kept).unwrap();

    assert_eq!(
        kept,
        r#"{"id":"x","secret":"sesame","method":"client_secret_basic","redirect_uri":"http://127.0.0.1:9999/callback","expires":5,"source":"preregistered"}"#
    );
    assert_eq!(serde_json::to_string(&read).unwrap(), kept);
    assert!(!format!("{client:?}").contains("sesame"));
}

#[test]
fn a_document_about_a_client_says_where_it_is_itself() {
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
