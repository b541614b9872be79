//! Random responses: no panic, no unsafe URL is used, and errors stay short.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fake_http::{FakeHttp, ISSUER, SERVER, metadata};
use crate::{
    AuthorizationError, AuthorizationServer, AuthorizationStep, Scopes, Secret,
    client::{
        authorization::AuthorizationRequest,
        device, discovery,
        registration::{ClientMetadata, ClientRegistration, register},
        safe_url,
        token::{self, TokenEndpoint},
    },
    fetch::FetchResponse,
};

/// Member names that the client reads.
const NAMES: [&str; 20] = [
    "resource",
    "authorization_servers",
    "scopes_supported",
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "code_challenge_methods_supported",
    "client_id",
    "client_secret",
    "client_secret_expires_at",
    "token_endpoint_auth_method",
    "access_token",
    "token_type",
    "expires_in",
    "scope",
    "error",
    "error_description",
    "user_code",
    "verification_uri",
];

/// Values that the client understands, and unexpected ones.
fn values() -> impl Strategy<Value = Value> {
    let known = prop::sample::select(vec![
        json!(SERVER),
        json!(ISSUER),
        json!("https://mcp.example"),
        json!("https://evil.example"),
        json!("http://evil.example"),
        json!("javascript:alert(1)"),
        json!("Bearer"),
        json!("invalid_grant"),
        json!(["S256"]),
        json!([ISSUER]),
        json!(["https://evil.example", 1, null]),
        json!(-1),
        json!(1e308),
        json!(u64::MAX),
        json!(null),
        json!({ "message": "x" }),
    ]);
    prop_oneof![3 => known, 1 => ".{0,400}".prop_map(Value::from)]
}

/// A response: an object of known names and values, or random bytes.
fn answers() -> impl Strategy<Value = FetchResponse> {
    let name = prop::sample::select(NAMES.to_vec());
    let object = prop::collection::hash_map(name, values(), 0..12);
    let object = object.prop_map(|fields| json!(fields).to_string().into_bytes());
    let body = prop_oneof![4 => object, 1 => prop::collection::vec(any::<u8>(), 0..300)];
    let status = prop::sample::select(vec![200, 201, 204, 301, 400, 401, 404, 429, 500, 999]);
    let kind = prop::sample::select(vec!["application/json", "text/html", "\u{fffd}"]);
    (status, kind, body).prop_map(|(status, kind, body)| {
        let kind = ("content-type".to_owned(), kind.to_owned());
        let nonce = ("dpop-nonce".to_owned(), "n".to_owned());
        FetchResponse::new(status, vec![kind, nonce], body)
    })
}

/// HTTP that sends these responses in order, to any request.
fn playing(responses: Vec<FetchResponse>) -> FakeHttp {
    let at = std::sync::atomic::AtomicUsize::new(0);
    FakeHttp::default().rule(move |_| {
        let at = at.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(Ok(responses[at % responses.len()].clone()))
    })
}

fn finished<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

fn check(error: &AuthorizationError) {
    let text = format!("{error} {error:?}");
    assert!(
        text.len() < 20_000 && !text.contains(char::is_control),
        "{text}"
    );
    assert!(!text.contains("sesame"), "{text}");
}

proptest! {
    #[test]
    fn discovery_yields_only_safe_urls_of_the_requested_server(
        responses in prop::collection::vec(answers(), 1..6),
    ) {
        let http = playing(responses);

        let found = finished(discovery::discover(&http, SERVER, &[], "2026-07-28"));

        prop_assert!(http.requests().len() <= 16);
        match found {
            Err(error) => check(&error),
            Ok(found) => {
                prop_assert!(["https://mcp.example", SERVER].contains(&found.resource.trim_end_matches('/')));
                let server = found.server;
                let endpoints = [server.authorization_endpoint, server.token_endpoint, server.registration_endpoint];
                for url in endpoints.into_iter().flatten() {
                    prop_assert!(safe_url::check(&url, AuthorizationStep::Use, "endpoint").is_ok(), "{}", url);
                }
            }
        }
    }

    #[test]
    fn any_response_yields_a_result_or_an_error(
        responses in prop::collection::vec(answers(), 1..6),
    ) {
        let server: AuthorizationServer = serde_json::from_value(metadata()).unwrap();
        let client = ClientRegistration::preregistered(&server, "x", Some(Secret::new("sesame")));
        let endpoint = TokenEndpoint::new(&server, &client);
        let client_metadata = ClientMetadata::new("Test", ["http://127.0.0.1/"]);
        let scopes: Scopes = "a".parse().unwrap();
        let http = playing(responses);

        match finished(register(&http, &server, &client_metadata)) {
            Err(error) => check(&error),
            Ok(client) => prop_assert!(!client.id.is_empty()),
        }
        match finished(token::client_credentials(&http, &endpoint, SERVER, Some(&scopes), None)) {
            Err(error) => check(&error),
            Ok(tokens) => prop_assert!(!tokens.access.expose().is_empty() && tokens.scopes.is_some()),
        }
        let login = async {
            let code = device::request_code(&http, &endpoint, SERVER, None).await?;
            device::poll(&http, &endpoint, &code, None).await
        };
        if let Err(error) = finished(login) {
            check(&error);
        }
    }

    #[test]
    fn only_the_matching_response_completes_a_login(
        response in ".{0,200}",
        code in "(code|state|iss|error|error_description)=[a-z:/.%0-9A-F]{0,40}",
    ) {
        let server: AuthorizationServer = serde_json::from_value(metadata()).unwrap();
        let client = ClientRegistration::preregistered(&server, "x", None);
        let login = AuthorizationRequest::new(&server, &client, "http://127.0.0.1/", SERVER, None, None).unwrap();

        for response in [&response, &format!("{response}&{code}"), &format!("?{code}&{response}")] {
            check(&login.parse_response(response).unwrap_err());
        }
    }
}
