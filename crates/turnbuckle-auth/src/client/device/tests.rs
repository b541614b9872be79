use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::{
    AuthorizationServer,
    client::{
        registration::ClientRegistration,
        tests::fake_http::{Heard, SERVER, Web, json_response, metadata, with},
    },
    fetch::FetchError,
};

const DEVICE: &str = "https://as.example/device";
const TOKEN: &str = "https://as.example/token";

fn server() -> AuthorizationServer {
    serde_json::from_value(metadata()).unwrap()
}

fn code(changes: &Value) -> Value {
    let code = json!({
        "device_code": "the-device-code",
        "user_code": "WDJB-MJHT",
        "verification_uri": "https://as.example/activate",
        "verification_uri_complete": "https://as.example/activate?user_code=WDJB-MJHT",
        "expires_in": 60,
        "interval": 5,
    });
    with(code, changes)
}

async fn code_for(web: &Web) -> Result<DeviceCode, AuthorizationError> {
    let server = server();
    let client = ClientRegistration::preregistered(&server, "the client", None);
    let scopes = "a".parse().unwrap();
    request_code(
        web,
        &TokenEndpoint::new(&server, &client),
        SERVER,
        Some(&scopes),
    )
    .await
}

/// Polls a server that answers so, one after the other; the last is repeated.
async fn polled(
    answers: &'static [&'static str],
) -> (Result<Tokens, AuthorizationError>, Vec<u64>) {
    let start = Instant::now();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let times = asked.clone();
    let web = Web::usual()
        .post(DEVICE, 200, &code(&json!({})))
        .rule(move |heard| {
            if heard.url != TOKEN {
                return None;
            }
            let mut times = times.lock().unwrap();
            let answer = answers[times.len().min(answers.len() - 1)];
            times.push(start.elapsed().as_secs());
            Some(match answer {
                "" => Ok(json_response(
                    200,
                    r#"{"access_token":"access","token_type":"bearer"}"#,
                )),
                "broken" => Err(FetchError::Unreachable("broken".into())),
                error => Ok(json_response(400, &json!({ "error": error }).to_string())),
            })
        });
    let server = server();
    let client = ClientRegistration::preregistered(&server, "the client", None);
    let code = code_for(&web).await.unwrap();
    let tokens = poll(&web, &TokenEndpoint::new(&server, &client), &code, None).await;
    if let Some(last) = web.heard().last().filter(|heard| heard.url == TOKEN) {
        check_question(last);
    }
    let asked = asked.lock().unwrap().clone();
    (tokens, asked)
}

fn check_question(heard: &Heard) {
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", "the-device-code"),
        ("client_id", "the client"),
        ("resource", SERVER),
    ] {
        assert_eq!(heard.field(name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_login_elsewhere_begins_with_a_code_to_type() {
    let web = Web::usual().post(DEVICE, 200, &code(&json!({})));

    let code = code_for(&web).await.unwrap();

    assert_eq!(code.user_code, "WDJB-MJHT");
    assert_eq!(code.verification_uri, "https://as.example/activate");
    assert_eq!(code.expires_in, Duration::from_secs(60));
    assert!(!format!("{code:?}").contains("the-device-code"));
    let asked = web.posted(DEVICE);
    for (name, value) in [
        ("client_id", "the client"),
        ("resource", SERVER),
        ("scope", "a"),
    ] {
        assert_eq!(asked.field(name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_code_that_nobody_could_or_should_type_is_refused() {
    for wrong in [
        json!({ "user_code": "" }),
        json!({ "user_code": "a\u{1b}[2J" }),
        json!({ "user_code": "x".repeat(100) }),
        json!({ "user_code": null }),
        json!({ "device_code": null }),
        json!({ "verification_uri": "javascript:alert(1)" }),
        json!({ "verification_uri": "http://as.example/activate" }),
        json!({ "verification_uri_complete": "file:///etc/passwd" }),
    ] {
        let web = Web::usual().post(DEVICE, 200, &code(&wrong));

        let failure = code_for(&web).await.unwrap_err();

        assert_eq!(failure.step(), AuthorizationStep::DeviceCode);
        assert_eq!(
            failure.request(),
            Some("POST https://as.example/device"),
            "{wrong}"
        );
    }
    let web = Web::usual().post(DEVICE, 400, &json!({ "error": "invalid_scope" }));
    assert_eq!(
        code_for(&web).await.unwrap_err().error_code(),
        Some("invalid_scope")
    );
}

#[tokio::test]
async fn a_server_without_such_logins_is_not_asked() {
    let server = AuthorizationServer {
        device_authorization_endpoint: None,
        ..server()
    };
    let client = ClientRegistration::preregistered(&server, "x", None);
    let web = Web::usual();

    let failure = request_code(&web, &TokenEndpoint::new(&server, &client), SERVER, None)
        .await
        .unwrap_err();

    assert!(failure.hint().unwrap().contains("browser"));
    assert!(web.heard().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_server_is_asked_at_its_pace_until_the_person_is_done() {
    let (tokens, asked) = polled(&["authorization_pending", "authorization_pending", ""]).await;

    let tokens = tokens.unwrap();
    assert_eq!(tokens.access.expose(), "access");
    assert_eq!(tokens.scopes.unwrap().to_string(), "a");
    assert_eq!(asked, [5, 10, 15]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_to_be_asked_less_often_is() {
    let (tokens, asked) = polled(&["slow_down", "authorization_pending", "slow_down", ""]).await;

    tokens.unwrap();
    assert_eq!(asked, [5, 15, 25, 40]);
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_code_even_if_the_server_goes_on() {
    let (tokens, asked) = polled(&["authorization_pending"]).await;

    let failure = tokens.unwrap_err();
    assert_eq!(failure.error_code(), Some("expired_token"));
    assert_eq!(failure.step(), AuthorizationStep::DeviceCode);
    assert_eq!(asked.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_waiting() {
    for error in [
        "access_denied",
        "expired_token",
        "invalid_grant",
        "invalid_client",
        "x",
    ] {
        let answers: &'static [&'static str] = Box::leak(Box::new([error]));

        let (tokens, asked) = polled(answers).await;

        assert_eq!(tokens.unwrap_err().error_code(), Some(error));
        assert_eq!(asked, [5], "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_ends_nothing_but_slows_down() {
    let (tokens, asked) = polled(&["broken", "authorization_pending", ""]).await;
    tokens.unwrap();
    assert_eq!(asked, [5, 15, 25]);

    let (tokens, asked) = polled(&["broken"]).await;
    assert_eq!(tokens.unwrap_err().reason(), "broken");
    assert_eq!(asked, [5, 15, 35]);
}
