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

/// An authorization server that binds tokens, and wants a nonce in every proof.
fn binding(nonce: &'static str) -> Web {
    Web::usual().rule(move |heard| {
        if heard.url != "https://as.example/token" {
            return None;
        }
        let (claims, _) = proof(heard.header("dpop").expect("a proof is sent"));
        let mut answer = if claims["nonce"] == nonce {
json_response(
                200,
                r#"{"access_token":"bound","token_type":"DPoP","refresh_token":"refresh","expires_in":3600}"#,
            )
} else {
json_response(400, r#"{"error":"use_dpop_nonce"}"#)
};
        answer.headers.push(("dpop-nonce".to_owned(), nonce.to_owned()));
        Some(Ok(answer))
    })
}

#[tokio::test(start_paused = true)]
async fn each_request_has_a_proof_of_its_own_with_the_nonce_of_the_server() {
    let person = Person::willing();
    let web = binding("as-nonce");
    let oauth = client(&web, &person);
    let seen = Mutex::new(Vec::new());
    // As the client on HTTP does, tells the nonce before the refusal.
    let judge = |sent: &Sent| {
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
        assert_eq!(call(&oauth, judge).await.unwrap(), Ended::In);
    }

    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 3, "the nonce is known from then on");
    assert!(seen.iter().all(|(_, key)| *key == seen[0].1));
    assert!(seen[0].0 != seen[1].0 && seen[1].0 != seen[2].0);
    let thumbprint = parameter(&person.seen()[0], "dpop_jkt");
    assert!(
        thumbprint.is_some(),
        "the login is bound to the key as well"
    );
    let tokens = web
        .heard()
        .into_iter()
        .filter(|it| it.url.ends_with("/token"));
    assert_eq!(tokens.count(), 2, "once without and once with the nonce");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_likes_the_nonce_is_left() {
    let person = Person::willing();
    let oauth = client(&binding("n"), &person);
    let count = AtomicUsize::new(0);
    let judge = |sent: &Sent| match sent.dpop {
        None => Err((401, "DPoP".to_owned())),
        Some(_) => {
            oauth.set_dpop_nonce(&format!("nonce-{}", count.fetch_add(1, Ordering::Relaxed)));
            Err((401, r#"DPoP error="use_dpop_nonce""#.to_owned()))
        }
    };

    assert_eq!(call(&oauth, judge).await.unwrap(), Ended::Refused(401));
    assert!(count.load(Ordering::Relaxed) <= 4);
    assert_eq!(person.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_key_is_kept_with_the_login_and_refreshes_it() {
    let (person, store) = (Person::willing(), MemoryStore::new());
    let web = binding("n");
    client(&web, &person)
        .store(store.clone())
        .dpop(DpopMode::Always)
        .log_in(&[])
        .await
        .unwrap();
    let (_, first) = proof(
        web.posted("https://as.example/token")
            .header("dpop")
            .unwrap(),
    );
    let oauth = client(&web, &person).store(store);
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

    assert_eq!(ended.await.unwrap(), Ended::In);
    let refresh = web.posted("https://as.example/token");
    assert_eq!(
        refresh.field("grant_type").as_deref(),
        Some("refresh_token")
    );
    let (_, key) = proof(refresh.header("dpop").unwrap());
    assert_eq!(key, first);
    assert_eq!(person.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_bound_although_it_should_be_is_not_used() {
    let person = Person::willing();
    let oauth = client(&Web::usual(), &person).dpop(DpopMode::Always);

    let failure = oauth.log_in(&[]).await.unwrap_err();

    assert_eq!(failure.step(), AuthorizationStep::Token);
    assert!(oauth.stored_login().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_nonce_that_is_wanted_before_there_is_a_key_leads_to_a_login() {
    let person = Person::willing();
    let oauth = client(&binding("n"), &person);

    let ended = call(&oauth, |sent| match sent.dpop {
        Some(_) => Ok(()),
        None => Err((401, r#"DPoP error="use_dpop_nonce""#.to_owned())),
    });

    assert_eq!(ended.await.unwrap(), Ended::In);
    assert_eq!(person.seen().len(), 1);
}
