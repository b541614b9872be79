//! The exchange of the token of a caller.

use super::*;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

fn issued(changes: &Value) -> Value {
    let issued = json!({ "access_token": "for-the-server", "issued_token_type": ACCESS_TOKEN, "token_type": "Bearer", "expires_in": 300 });
    with(issued, changes)
}

async fn exchange(
    http: &FakeHttp,
    client: &ClientRegistration,
) -> Result<Tokens, AuthorizationError> {
    let (server, subject, scopes) = (server(), Secret::new("the-callers"), "b a".parse().unwrap());
    let mut request = ExchangeRequest::new(&subject, SERVER);
    request.audience = Some("mcp");
    request.scopes = Some(&scopes);
    exchange_token(http, &TokenEndpoint::new(&server, client), request).await
}

#[tokio::test]
async fn the_token_of_a_caller_is_exchanged_for_one_for_the_server() {
    let http = FakeHttp::usual().post(TOKEN, 200, &issued(&json!({})));

    let tokens = exchange(&http, &confidential()).await.unwrap();

    assert_eq!(tokens.access.expose(), "for-the-server");
    let request = http.last_post(TOKEN);
    for (name, value) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        ("resource", SERVER),
        ("audience", "mcp"),
        ("scope", "a b"),
        ("requested_token_type", ACCESS_TOKEN),
        ("subject_token", "the-callers"),
        ("subject_token_type", ACCESS_TOKEN),
    ] {
        assert_eq!(request.field(name).as_deref(), Some(value), "{name}");
    }
    assert!(
        request
            .header("authorization")
            .unwrap()
            .starts_with("Basic ")
    );
}

#[tokio::test]
async fn a_response_without_another_access_token_is_rejected() {
    for response in [
        issued(&json!({ "access_token": "the-callers" })),
        issued(&json!({ "access_token": null })),
        issued(&json!({ "issued_token_type": "urn:ietf:params:oauth:token-type:id_token" })),
        issued(&json!({ "token_type": "N_A" })),
        issued(&json!({ "token_type": "DPoP" })),
        json!([]),
    ] {
        let http = FakeHttp::usual().post(TOKEN, 200, &response);

        let error = exchange(&http, &public()).await.unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Exchange, "{response}");
        assert_eq!(error.request(), Some("POST https://as.example/token"));
        assert!(!format!("{error:?}").contains("the-callers"), "{error:?}");
    }
}

#[tokio::test]
async fn a_rejected_token_is_not_quoted() {
    let response = json!({ "error": "invalid_grant", "error_description": "the-callers is old" });
    let http = FakeHttp::usual().post(TOKEN, 400, &response);

    let error = exchange(&http, &public()).await.unwrap_err();

    assert_eq!(error.response(), Some("400 invalid_grant: *** is old"));
    assert_eq!(
        error.reason(),
        "the authorization server does not accept the token of the caller"
    );
}
