//! Tokens that are bound to a key (DPoP).

use super::*;
use crate::{client::tests::fake_http::json_response, dpop::DpopProver, fetch::FetchResponse};

fn prover() -> DpopProver {
    DpopProver::new(SigningKey::generate().unwrap())
}

async fn request_tokens(
    http: &FakeHttp,
    binding: &mut DpopBinding<'_>,
) -> Result<Tokens, AuthorizationError> {
    let (server, client) = (server(), public());
    let endpoint = TokenEndpoint::new(&server, &client);
    client_credentials(http, &endpoint, SERVER, None, Some(binding)).await
}

fn bound() -> Value {
    json!({ "access_token": "access", "token_type": "DPoP" })
}

/// A token endpoint that requires this nonce.
fn wants(nonce: &'static str) -> FakeHttp {
    FakeHttp::usual().rule(move |request| {
        if request.url != TOKEN {
            return None;
        }
        let proof = request.header("dpop").map(claims)?;
        if proof["nonce"] == nonce {
            return Some(Ok(json_response(200, &bound().to_string())));
        }
        let headers = vec![("dpop-nonce".to_owned(), nonce.to_owned())];
        Some(Ok(FetchResponse::new(
            400,
            headers,
            r#"{"error":"use_dpop_nonce"}"#,
        )))
    })
}

#[tokio::test]
async fn a_token_request_has_a_proof_for_its_endpoint() {
    let http = FakeHttp::usual().post(TOKEN, 200, &bound());
    let prover = prover();

    let tokens = request_tokens(&http, &mut DpopBinding::new(&prover))
        .await
        .unwrap();

    assert_eq!(tokens.kind, TokenKind::Dpop);
    let proof = claims(http.last_post(TOKEN).header("dpop").unwrap());
    assert_eq!(
        (&proof["htm"], &proof["htu"]),
        (&json!("POST"), &json!(TOKEN))
    );
    assert_eq!(proof.get("nonce"), None);
    assert_eq!(proof.get("ath"), None);
}

#[tokio::test]
async fn a_nonce_is_used_for_a_retry_and_kept() {
    let http = wants("n-1");
    let prover = prover();
    let mut binding = DpopBinding::new(&prover);

    request_tokens(&http, &mut binding).await.unwrap();

    assert_eq!(binding.nonce.as_deref(), Some("n-1"));
    let proofs: Vec<_> = http
        .requests()
        .iter()
        .map(|request| claims(request.header("dpop").unwrap()))
        .collect();
    assert_eq!(proofs.len(), 2);
    assert_ne!(proofs[0]["jti"], proofs[1]["jti"]);
    request_tokens(&http, &mut binding).await.unwrap();
    assert_eq!(http.requests().len(), 3, "the nonce is used from the start");
}

#[tokio::test]
async fn endless_nonce_requests_of_the_token_endpoint_are_given_up() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let http = FakeHttp::usual().rule(move |_| {
        let nonce = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let headers = vec![("dpop-nonce".to_owned(), format!("n-{nonce}"))];
        Some(Ok(FetchResponse::new(
            400,
            headers,
            r#"{"error":"use_dpop_nonce"}"#,
        )))
    });
    let prover = prover();

    let error = request_tokens(&http, &mut DpopBinding::new(&prover))
        .await
        .unwrap_err();

    assert_eq!(error.error_code(), Some("use_dpop_nonce"));
    assert_eq!(http.requests().len(), 2);
}

#[tokio::test]
async fn an_invalid_nonce_is_ignored() {
    for nonce in ["", "a\"b", "a b"] {
        let http = wants(nonce);
        let prover = prover();
        let mut binding = DpopBinding::new(&prover);

        assert!(request_tokens(&http, &mut binding).await.is_err());

        assert_eq!((http.requests().len(), binding.nonce), (1, None), "{nonce}");
    }
}

#[tokio::test]
async fn an_unbound_token_is_accepted_only_if_dpop_is_optional() {
    let http = FakeHttp::usual();
    let prover = prover();

    let tokens = request_tokens(&http, &mut DpopBinding::new(&prover))
        .await
        .unwrap();
    let error = request_tokens(&http, &mut DpopBinding::new(&prover).required(true))
        .await
        .unwrap_err();

    assert_eq!(tokens.kind, TokenKind::Bearer);
    assert!(error.reason().contains("not bound"), "{error}");
}

#[tokio::test]
async fn a_retry_has_a_new_client_assertion() {
    let http = wants("n-1");
    let (server, client) = (server(), ClientRegistration::with_key("x"));
    let (prover, key) = (prover(), SigningKey::generate().unwrap());
    let endpoint = TokenEndpoint::new(&server, &client).key(&key);

    let mut binding = DpopBinding::new(&prover);
    client_credentials(&http, &endpoint, SERVER, None, Some(&mut binding))
        .await
        .unwrap();

    let request = http.requests();
    let id = |request: &RecordedRequest| {
        claims(&request.field("client_assertion").unwrap())["jti"].clone()
    };
    assert_ne!(id(&request[0]), id(&request[1]));
}
