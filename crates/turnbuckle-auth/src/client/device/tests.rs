use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::{
    AuthorizationServer,
    client::{
        registration::ClientRegistration,
        tests::fake_http::{FakeHttp, RecordedRequest, SERVER, json_response, metadata, with},
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

async fn code_for(web: &FakeHttp) -> Result<DeviceCode, AuthorizationError> {
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

/// Polls a server that sends these responses in order; the last is repeated.
async fn polled(
    answers: &'static [&'static str],
) -> (Result<Tokens, AuthorizationError>, Vec<u64>) {
    let start = Instant::now();
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let times = asked.clone();
    let web = FakeHttp::usual()
        .post(DEVICE, 200, &code(&json!({})))
        .rule(move |request| {
            if request.url != TOKEN {
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
    if let Some(last) = web.requests().last().filter(|request| request.url == TOKEN) {
        check_question(last);
    }
    let asked = asked.lock().unwrap().clone();
    (tokens, asked)
}

fn check_question(request: &RecordedRequest) {
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", "the-device-code"),
        ("client_id", "the client"),
        ("resource", SERVER),
    ] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn a_device_login_starts_with_a_user_code() {
    let web = FakeHttp::usual().post(DEVICE, 200, &code(&json!({})));

    let code = code_for(&web).await.unwrap();

    assert_eq!(code.user_code, "WDJB-MJHT");
    assert_eq!(code.verification_uri, "https://as.example/activate");
    assert_eq!(code.expires_in, Duration::from_secs(60));
    assert!(!format!("{code:?}").contains("the-device-code"));
    let asked = web.last_post(DEVICE);
    for (name, value) in [
        ("client_id", "the client"),
        ("resource", SERVER),
        ("scope", "a"),
    ] {
        assert_eq!(asked.field(name).as_deref(), Some(value), "{name}");
    }
}

#[tokio::test]
async fn an_unusable_user_code_is_rejected() {
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
        let web = FakeHttp::usual().post(DEVICE, 200, &code(&wrong));

        let error = code_for(&web).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::DeviceCode);
        assert_eq!(
            error.request(),
            Some("POST https://as.example/device"),
            "{wrong}"
        );
    }
    let web = FakeHttp::usual().post(DEVICE, 400, &json!({ "error": "invalid_scope" }));
    assert_eq!(
        code_for(&web).await.unwrap_err().error_code(),
        Some("invalid_scope")
    );
}

#[tokio::test]
async fn a_server_without_device_endpoint_gets_no_request() {
    let server = AuthorizationServer {
        device_authorization_endpoint: None,
        ..server()
    };
    let client = ClientRegistration::preregistered(&server, "x", None);
    let web = FakeHttp::usual();

    let error = request_code(&web, &TokenEndpoint::new(&server, &client), SERVER, None)
        .await
        .unwrap_err();

    assert!(error.hint().unwrap().contains("browser"));
    assert!(web.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn polling_follows_the_interval_until_the_login_is_done() {
    let (tokens, asked) = polled(&["authorization_pending", "authorization_pending", ""]).await;

    let tokens = tokens.unwrap();
    assert_eq!(tokens.access.expose(), "access");
    assert_eq!(tokens.scopes.unwrap().to_string(), "a");
    assert_eq!(asked, [5, 10, 15]);
}

#[tokio::test(start_paused = true)]
async fn slow_down_increases_the_polling_interval() {
    let (tokens, asked) = polled(&["slow_down", "authorization_pending", "slow_down", ""]).await;

    tokens.unwrap();
    assert_eq!(asked, [5, 15, 25, 40]);
}

#[tokio::test(start_paused = true)]
async fn polling_ends_when_the_code_expires() {
    let (tokens, asked) = polled(&["authorization_pending"]).await;

    let error = tokens.unwrap_err();
    assert_eq!(error.error_code(), Some("expired_token"));
    assert_eq!(error.step(), AuthorizationStep::DeviceCode);
    assert_eq!(asked.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_ends_polling() {
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
async fn a_network_error_slows_polling_down() {
    let (tokens, asked) = polled(&["broken", "authorization_pending", ""]).await;
    tokens.unwrap();
    assert_eq!(asked, [5, 15, 25]);

    let (tokens, asked) = polled(&["broken"]).await;
    assert_eq!(tokens.unwrap_err().reason(), "broken");
    assert_eq!(asked, [5, 15, 35]);
}
