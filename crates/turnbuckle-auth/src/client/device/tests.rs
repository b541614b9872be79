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

async fn code_for(http: &FakeHttp) -> Result<DeviceCode, AuthorizationError> {
    let server = server();
    let client = ClientRegistration::preregistered(&server, "the client", None);
    let scopes = "a".parse().unwrap();
    request_code(
        http,
        &TokenEndpoint::new(&server, &client),
        SERVER,
        Some(&scopes),
    )
    .await
}

/// Polls a server that sends these responses in order; the last is repeated.
async fn polled(
    responses: &'static [&'static str],
) -> (Result<Tokens, AuthorizationError>, Vec<u64>) {
    let start = Instant::now();
    let poll_times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let times = poll_times.clone();
    let http = FakeHttp::usual()
        .post(DEVICE, 200, &code(&json!({})))
        .rule(move |request| {
            if request.url != TOKEN {
                return None;
            }
            let mut times = times.lock().unwrap();
            let response = responses[times.len().min(responses.len() - 1)];
            times.push(start.elapsed().as_secs());
            Some(match response {
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
    let code = code_for(&http).await.unwrap();
    let tokens = poll(&http, &TokenEndpoint::new(&server, &client), &code, None).await;
    if let Some(last) = http
        .requests()
        .last()
        .filter(|request| request.url == TOKEN)
    {
        check_request(last);
    }
    let poll_times = poll_times.lock().unwrap().clone();
    (tokens, poll_times)
}

fn check_request(request: &RecordedRequest) {
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
    let http = FakeHttp::usual().post(DEVICE, 200, &code(&json!({})));

    let code = code_for(&http).await.unwrap();

    assert_eq!(code.user_code, "WDJB-MJHT");
    assert_eq!(code.verification_uri, "https://as.example/activate");
    assert_eq!(code.expires_in, Duration::from_secs(60));
    assert!(!format!("{code:?}").contains("the-device-code"));
    let request = http.last_post(DEVICE);
    for (name, value) in [
        ("client_id", "the client"),
        ("resource", SERVER),
        ("scope", "a"),
    ] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
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
        let http = FakeHttp::usual().post(DEVICE, 200, &code(&wrong));

        let error = code_for(&http).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::DeviceCode);
        assert_eq!(
            error.request(),
            Some("POST https://as.example/device"),
            "{wrong}"
        );
    }
    let http = FakeHttp::usual().post(DEVICE, 400, &json!({ "error": "invalid_scope" }));
    assert_eq!(
        code_for(&http).await.unwrap_err().error_code(),
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
    let http = FakeHttp::usual();

    let error = request_code(&http, &TokenEndpoint::new(&server, &client), SERVER, None)
        .await
        .unwrap_err();

    assert!(error.hint().unwrap().contains("browser"));
    assert!(http.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn polling_follows_the_interval_until_the_login_is_done() {
    let (tokens, poll_times) =
        polled(&["authorization_pending", "authorization_pending", ""]).await;

    let tokens = tokens.unwrap();
    assert_eq!(tokens.access.expose(), "access");
    assert_eq!(tokens.scopes.unwrap().to_string(), "a");
    assert_eq!(poll_times, [5, 10, 15]);
}

#[tokio::test(start_paused = true)]
async fn slow_down_increases_the_polling_interval() {
    let (tokens, poll_times) =
        polled(&["slow_down", "authorization_pending", "slow_down", ""]).await;

    tokens.unwrap();
    assert_eq!(poll_times, [5, 15, 25, 40]);
}

#[tokio::test(start_paused = true)]
async fn polling_ends_when_the_code_expires() {
    let (tokens, poll_times) = polled(&["authorization_pending"]).await;

    let error = tokens.unwrap_err();
    assert_eq!(error.error_code(), Some("expired_token"));
    assert_eq!(error.step(), AuthorizationStep::DeviceCode);
    assert_eq!(poll_times.len(), 12);
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
        let responses: &'static [&'static str] = Box::leak(Box::new([error]));

        let (tokens, poll_times) = polled(responses).await;

        assert_eq!(tokens.unwrap_err().error_code(), Some(error));
        assert_eq!(poll_times, [5], "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_network_error_slows_polling_down() {
    let (tokens, poll_times) = polled(&["broken", "authorization_pending", ""]).await;
    tokens.unwrap();
    assert_eq!(poll_times, [5, 15, 25]);

    let (tokens, poll_times) = polled(&["broken"]).await;
    assert_eq!(tokens.unwrap_err().reason(), "broken");
    assert_eq!(poll_times, [5, 15, 35]);
}
