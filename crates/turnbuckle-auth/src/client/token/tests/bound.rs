//! Tokens that are bound to a key (DPoP).

use super::*;
use crate::{client::tests::fake_http::json_response, dpop::DpopProver, fetch::FetchResponse};

fn prover() -> DpopProver {
    DpopProver::new(SigningKey::generate().unwrap())
}

async fn ask(web: &Web, binding: &mut DpopBinding<'_>) -> Result<Tokens, AuthorizationError> {
    let (server, client) = (server(), public());
    let endpoint = TokenEndpoint::new(&server, &client);
    client_credentials(web, &endpoint, SERVER, None, Some(binding)).await
}

fn bound() -> Value {
    json!({ "access_token": "access", "token_type": "DPoP" })
}

/// A token endpoint that wants this nonce.
fn wants(nonce: &'static str) -> Web {
    Web::usual().rule(move |heard| {
        if heard.url != TOKEN {
            return None;
        }
        let proof = heard.header("dpop").map(claims)?;
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
async fn a_proof_goes_along_and_is_for_this_endpoint() {
    let web = Web::usual().post(TOKEN, 200, &bound());
    let prover = prover();

    let tokens = ask(&web, &mut DpopBinding::new(&prover)).await.unwrap();

    assert_eq!(tokens.kind, TokenKind::Dpop);
    let proof = claims(web.posted(TOKEN).header("dpop").unwrap());
    assert_eq!(
        (&proof["htm"], &proof["htu"]),
        (&json!("POST"), &json!(TOKEN))
    );
    assert_eq!(proof.get("nonce"), None);
    assert_eq!(proof.get("ath"), None);
}

#[tokio::test]
async fn a_nonce_is_taken_up_once_and_kept() {
    let web = wants("n-1");
    let prover = prover();
    let mut binding = DpopBinding::new(&prover);

    ask(&web, &mut binding).await.unwrap();

    assert_eq!(binding.nonce.as_deref(), Some("n-1"));
    let proofs: Vec<_> = web
        .heard()
        .iter()
        .map(|heard| claims(heard.header("dpop").unwrap()))
        .collect();
    assert_eq!(proofs.len(), 2);
    assert_ne!(proofs[0]["jti"], proofs[1]["jti"]);
    ask(&web, &mut binding).await.unwrap();
    assert_eq!(web.heard().len(), 3, "the nonce is used from the start");
}

#[tokio::test]
async fn a_server_that_is_never_content_is_not_asked_for_ever() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let web = Web::usual().rule(move |_| {
        let nonce = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let headers = vec![("dpop-nonce".to_owned(), format!("n-{nonce}"))];
        Some(Ok(FetchResponse::new(
            400,
            headers,
            r#"{"error":"use_dpop_nonce"}"#,
        )))
    });
    let prover = prover();

    let failure = ask(&web, &mut DpopBinding::new(&prover)).await.unwrap_err();

    assert_eq!(failure.error_code(), Some("use_dpop_nonce"));
    assert_eq!(web.heard().len(), 2);
}

#[tokio::test]
async fn what_is_no_nonce_is_not_taken_for_one() {
    for nonce in ["", "a\"b", "a b"] {
        let web = wants(nonce);
        let prover = prover();
        let mut binding = DpopBinding::new(&prover);

        assert!(ask(&web, &mut binding).await.is_err());

        assert_eq!((web.heard().len(), binding.nonce), (1, None), "{nonce}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_bound_is_taken_only_where_that_is_of_use() {
    let web = Web::usual();
    let prover = prover();

    let tokens = ask(&web, &mut DpopBinding::new(&prover)).await.unwrap();
    let failure = ask(&web, &mut DpopBinding::new(&prover).required(true))
        .await
        .unwrap_err();

    assert_eq!(tokens.kind, TokenKind::Bearer);
    assert!(failure.reason().contains("not bound"), "{failure}");
}

#[tokio::test]
async fn a_client_that_signs_signs_anew_when_it_asks_again() {
    let web = wants("n-1");
    let (server, client) = (server(), ClientRegistration::with_key("x"));
    let (prover, key) = (prover(), SigningKey::generate().unwrap());
    let endpoint = TokenEndpoint::new(&server, &client).key(&key);

    let mut binding = DpopBinding::new(&prover);
    client_credentials(&web, &endpoint, SERVER, None, Some(&mut binding))
        .await
        .unwrap();

    let heard = web.heard();
    let id = |heard: &Heard| claims(&heard.field("client_assertion").unwrap())["jti"].clone();
    assert_ne!(id(&heard[0]), id(&heard[1]));
}
