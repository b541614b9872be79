//! A turnbuckle server with an authenticator, in both eras and on both transports.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use turnbuckle_auth::{Challenge, Scopes};
use turnbuckle_client::{CallError, Client, LifecycleMode, http::HttpTarget};
use turnbuckle_protocol::{
    Principal,
    authenticator::{AuthRejection, AuthRequest, Authenticator, BoxFuture, MetadataDocument},
};
use turnbuckle_server::{
    Context, Server, Tool,
    http::{self as server_http, HttpSse},
};

use crate::authorization::credentials::TestCredentials;

/// Accepts any token; from the second on it has the scope `write`.
struct TokenAuthenticator;

impl Authenticator for TokenAuthenticator {
    fn authenticate<'a>(
        &'a self,
        elicitation: AuthRequest<'a>,
    ) -> BoxFuture<'a, Result<Arc<Principal>, AuthRejection>> {
        let token = elicitation
            .authorization
            .first()
            .copied()
            .unwrap_or_default();
        let admitted = match token.strip_prefix("Bearer token-") {
            None => Err(AuthRejection::new(401, "who is it?").challenge(Challenge::bearer())),
            Some(number) => {
                let mut principal = Principal::new("door", "ada");
                if number != "1" {
                    principal.scopes.insert("write".to_owned());
                }
                Ok(Arc::new(principal))
            }
        };
        Box::pin(std::future::ready(admitted))
    }

    fn insufficient_scope(&self, _: &Principal, needed: &BTreeSet<String>) -> AuthRejection {
        let needed: Vec<_> = needed.iter().map(String::as_str).collect();
        let scopes: Scopes = needed.join(" ").parse().unwrap();
        let challenge = Challenge::bearer()
            .error("insufficient_scope", "more is needed")
            .scope(&scopes);
        AuthRejection::new(403, "more is needed").challenge(challenge)
    }

    fn metadata_document<'a>(&'a self, _: &'a str) -> Option<BoxFuture<'a, MetadataDocument>> {
        None
    }
}

/// Serves in memory; returns a function that creates a target.
fn serve() -> impl Fn(&str) -> HttpTarget {
    let tool = |name: &'static str| {
        Tool::raw(
            name,
            json!({ "type": "object" }),
            async move |_: Value, _: Context| Ok(name.to_owned()),
        )
    };
    let server = Server::new("guarded", "1.0")
        .tool(tool("read"))
        .tool(tool("write").scopes(["write"]));
    let (connector, listener) = server_http::memory();
    let http = server_http::Http::new(server)
        .allow_host("own.test")
        .http_sse(HttpSse::new())
        .authenticator(TokenAuthenticator);
    tokio::spawn(http.serve(listener));
    move |path| {
        let connector = connector.clone();
        HttpTarget::new(format!("http://own.test{path}")).connector(move || {
            let connector = connector.clone();
            async move { connector.connect().await }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_a_call_and_a_larger_scope() {
    for era in [
        LifecycleMode::Auto,
        LifecycleMode::Modern,
        LifecycleMode::Legacy,
    ] {
        let credentials = TestCredentials::with_login_time(Duration::from_secs(300));
        let target = serve()("/mcp").authorization(credentials.clone());

        let client = Client::builder("test", "1")
            .lifecycle_mode(era)
            .connect(target)
            .await;
        let client = client.unwrap();
        client.call_tool("read", json!({})).await.unwrap();
        let before = credentials.logins();
        client.call_tool("write", json!({})).await.unwrap();

        assert_eq!((before, credentials.logins()), (1, 2));
        let rejections = credentials.rejections();
        assert_eq!((rejections[0].status, rejections[0].generation), (401, 0));
        let last = rejections.last().unwrap();
        assert_eq!((last.status, last.generation), (403, 1));
        assert_eq!(last.challenges, ["Bearer write"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_over_http_sse() {
    let credentials = TestCredentials::with_login_time(Duration::from_secs(300));
    let target = serve()("/sse")
        .http_sse_only()
        .authorization(credentials.clone());

    let client = Client::builder("test", "1").connect(target).await.unwrap();
    client.call_tool("read", json!({})).await.unwrap();
    // A response on the stream lacks an HTTP status.
    let error = client.call_tool("write", json!({})).await.unwrap_err();

    assert!(error.rpc().is_some(), "{error:?}");
    assert_eq!(credentials.logins(), 1);
}

#[tokio::test(start_paused = true)]
async fn insufficient_scope_is_reported_with_the_required_scope() {
    let credentials = TestCredentials::default();
    let target = serve()("/mcp").authorization(credentials.clone());
    let client = Client::builder("test", "1").connect(target).await.unwrap();
    credentials.give_up();

    let error = client.call_tool("write", json!({})).await.unwrap_err();

    assert_eq!(error.status().unwrap(), 403);
    assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
    client.call_tool("read", json!({})).await.unwrap();
}
