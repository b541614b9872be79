//! Tokens that are bound to a key.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use super::*;
use crate::{
    AuthorizationStep,
    client::{oauth::DpopMode, store::MemoryStore},
};

/// The claims of a proof, and the key that signed it.
fn proof(jwt: &str) -> (Value, Value) {
    let part = |at: usize| -> Value {
        let part = jwt.split('.').nth(at).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    (part(1), part(0)["jwk"].clone())
}

/// An authorization server that binds tokens and requires a nonce in every proof.
fn binding(nonce: &'static str) -> FakeHttp {
    FakeHttp::usual().rule(move |request| {
        if request.url != "https://as.example/token" {
            return None;
        }
        let (claims, _) = proof(request.header("dpop").expect("a proof is sent"));
        let mut response = if claims["nonce"] == nonce {
json_response(
                200,
                r#"{"access_token":"bound","token_type":"DPoP","refresh_token":"refresh","expires_in":3600}"#,
            )
} else {
json_response(400, r#"{"error":"use_dpop_nonce"}"#)
};
        response.headers.push(("dpop-nonce".to_owned(), nonce.to_owned()));
        Some(Ok(response))
    })
}

#[tokio::test(start_paused = true)]
async fn each_request_has_a_new_proof_with_the_nonce_of_the_server() {
    let user = FakeUser::willing();
    let http = binding("as-nonce");
    let oauth = client(&http, &user);
    let seen = Mutex::new(Vec::new());
    // Like the HTTP client, passes the nonce before the 401 response.
    let authenticate = |sent: &SentCredentials| {
        let Some(dpop) = &sent.dpop else {
            return Err((401, "DPoP".to_owned()));
        };
        assert_eq!(sent.authorization.as_deref(), Some("DPoP bound"));
        let (claims, key) = proof(dpop);
        assert_eq!(
            (&claims["htm"], &claims["htu"]),
            (&json!("POST"), &json!(SERVER))
        );
        assert!(claims["ath"].is_string());
        let had = claims["nonce"].clone();
        seen.lock().unwrap().push((claims["jti"].clone(), key));
        oauth.set_dpop_nonce("rs-nonce");
        if had == "rs-nonce" {
            Ok(())
        } else {
            Err((401, r#"DPoP error="use_dpop_nonce""#.to_owned()))
        }
    };

    for _ in 0..2 {
        assert_eq!(call(&oauth, authenticate).await.unwrap(), CallEnd::Accepted);
    }

    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 3, "later proofs have the nonce");
    assert!(seen.iter().all(|(_, key)| *key == seen[0].1));
    assert!(seen[0].0 != seen[1].0 && seen[1].0 != seen[2].0);
    let thumbprint = parameter(&user.shown()[0], "dpop_jkt");
    assert!(
        thumbprint.is_some(),
        "the login is bound to the key as well"
    );
    let tokens = http
        .requests()
        .into_iter()
        .filter(|it| it.url.ends_with("/token"));
    assert_eq!(tokens.count(), 2, "once without and once with the nonce");
}

#[tokio::test(start_paused = true)]
async fn endless_nonce_challenges_are_given_up() {
    let user = FakeUser::willing();
    let oauth = client(&binding("n"), &user);
    let count = AtomicUsize::new(0);
    let authenticate = |sent: &SentCredentials| match sent.dpop {
        None => Err((401, "DPoP".to_owned())),
        Some(_) => {
            oauth.set_dpop_nonce(&format!("nonce-{}", count.fetch_add(1, Ordering::Relaxed)));
            Err((401, r#"DPoP error="use_dpop_nonce""#.to_owned()))
        }
    };

    assert_eq!(
        call(&oauth, authenticate).await.unwrap(),
        CallEnd::Rejected(401)
    );
    assert!(count.load(Ordering::Relaxed) <= 4);
    assert_eq!(user.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_key_is_stored_with_the_login_and_used_for_refreshes() {
    let (user, store) = (FakeUser::willing(), MemoryStore::new());
    let http = binding("n");
    client(&http, &user)
        .store(store.clone())
        .dpop(DpopMode::Always)
        .log_in(&[])
        .await
        .unwrap();
    let (_, first) = proof(
        http.last_post("https://as.example/token")
            .header("dpop")
            .unwrap(),
    );
    let oauth = client(&http, &user).store(store);
    let has_refused = std::sync::atomic::AtomicBool::new(false);

    let ended = call(&oauth, |sent| {
        let (_, key) = proof(sent.dpop.as_ref().unwrap());
        assert_eq!(key, first);
        if has_refused.swap(true, Ordering::Relaxed) {
            Ok(())
        } else {
            Err((401, "DPoP".to_owned()))
        }
    });

    assert_eq!(ended.await.unwrap(), CallEnd::Accepted);
    let refresh = http.last_post("https://as.example/token");
    assert_eq!(
        refresh.field("grant_type").as_deref(),
        Some("refresh_token")
    );
    let (_, key) = proof(refresh.header("dpop").unwrap());
    assert_eq!(key, first);
    assert_eq!(user.shown().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unbound_token_is_rejected_if_dpop_is_required() {
    let user = FakeUser::willing();
    let oauth = client(&FakeHttp::usual(), &user).dpop(DpopMode::Always);

    let error = oauth.log_in(&[]).await.unwrap_err();

    assert_eq!(error.step(), AuthorizationStep::Token);
    assert!(oauth.stored_login().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_nonce_challenge_without_a_key_leads_to_a_login() {
    let user = FakeUser::willing();
    let oauth = client(&binding("n"), &user);

    let ended = call(&oauth, |sent| match sent.dpop {
        Some(_) => Ok(()),
        None => Err((401, r#"DPoP error="use_dpop_nonce""#.to_owned())),
    });

    assert_eq!(ended.await.unwrap(), CallEnd::Accepted);
    assert_eq!(user.shown().len(), 1);
}
