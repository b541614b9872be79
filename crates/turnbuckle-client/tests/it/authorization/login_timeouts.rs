//! Logins of several minutes, which do not count toward the timeouts.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use turnbuckle_client::{
    CallError, Client, ConnectError, LifecycleMode, SubscriptionEvent, Timeouts,
};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{
    authorization::credentials::{TestCredentials, protected_server, token},
    servers::{
        mock_http::{MockHttpServer, MockResponse, RecordedRequest},
        mock_mcp_http::{
            LATEST_LEGACY, MODERN, builder_for, by_method, on_call, posted_messages,
            run_ready_tasks, target_of, text_result,
        },
    },
};

const MINUTE: Duration = Duration::from_secs(60);

/// Credentials with a login that takes five minutes.
fn slow() -> TestCredentials {
    TestCredentials::with_login_time(5 * MINUTE)
}

async fn connect(mock: &MockHttpServer, revision: &str, credentials: &TestCredentials) -> Client {
    let target = target_of(mock).authorization(credentials.clone());
    builder_for(revision).connect(target).await.unwrap()
}

/// Requires this token for one method, and the first token for all others.
fn from(
    method: &'static str,
    number: u64,
) -> impl Fn(&RecordedRequest) -> u64 + Send + Sync + 'static {
    move |request| if request.rpc() == method { number } else { 1 }
}

#[tokio::test(start_paused = true)]
async fn connecting_waits_for_a_login() {
    for (revision, era) in [
        (MODERN, LifecycleMode::Auto),
        (MODERN, LifecycleMode::Modern),
        (LATEST_LEGACY, LifecycleMode::Auto),
        (LATEST_LEGACY, LifecycleMode::Legacy),
    ] {
        let mock = protected_server(revision, |_| 1, |_| None);
        let started_at = Instant::now();

        let builder = Client::builder("test", "1").lifecycle_mode(era);
        let target = target_of(&mock).authorization(slow());
        builder.connect(target).await.unwrap();

        assert!(started_at.elapsed() >= 5 * MINUTE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_waits_for_a_login() {
    let mock = protected_server(LATEST_LEGACY, from("notifications/initialized", 2), |_| {
        None
    });
    let credentials = slow().with_token();

    connect(&mock, LATEST_LEGACY, &credentials).await;

    let sent = posted_messages(&mock, "notifications/initialized");
    assert_eq!(sent.iter().map(token).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_login() {
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = protected_server(revision, from("tools/call", 2), |_| None);
        let client = connect(&mock, revision, &slow().with_token()).await;
        let started_at = Instant::now();

        client.call_tool("a", json!({})).await.unwrap();

        assert!(started_at.elapsed() >= 5 * MINUTE);
        assert!(posted_messages(&mock, "notifications/cancelled").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_does_not_count_toward_the_total_timeout() {
    let mock = protected_server(
        MODERN,
        from("tools/call", 2),
        on_call(|request| {
            let response = json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": text_result("done") });
            MockResponse::events(|events| async move {
                sleep(MINUTE * 5 / 6).await;
                events.message(&response);
            })
        }),
    );
    let credentials = TestCredentials::with_login_time(60 * MINUTE).with_token();
    let client = connect(&mock, MODERN, &credentials).await;

    let patience = Timeouts {
        idle: MINUTE,
        total: MINUTE,
    };
    let call = client.call_tool("a", json!({})).timeouts(patience);

    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_login_restarts_the_idle_timeout() {
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = protected_server(
            revision,
            from("tools/call", 2),
            on_call(|_| MockResponse::silence()),
        );
        let client = connect(&mock, revision, &slow().with_token()).await;
        let started_at = Instant::now();

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        let waited = started_at.elapsed().as_secs();
        assert!(
            matches!(error, CallError::TimedOut { limit, .. } if limit == MINUTE),
            "{error:?}"
        );
        assert_eq!(waited, 6 * 60);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_after_the_login_times_out() {
    for revision in [LATEST_LEGACY, MODERN] {
        let mock = protected_server(revision, |_| 1, |_| Some(MockResponse::silence()));
        let started_at = Instant::now();

        let target = target_of(&mock).authorization(slow());
        let error = builder_for(revision).connect(target).await.unwrap_err();

        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
        assert_eq!(started_at.elapsed().as_secs(), 6 * 60);
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_does_not_count_toward_later_round_trips() {
    let mock = protected_server(
        MODERN,
        from("tools/call", 2),
        on_call(|request| {
            let first = request.json()["params"].get("requestState").is_none();
            let result = if first {
                json!({ "resultType": "input_required", "requestState": "s" })
            } else {
                text_result("done")
            };
            let response =
                json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result });
            MockResponse::events(|events| async move {
                sleep(MINUTE / 4).await;
                events.message(&response);
            })
        }),
    );
    let client = connect(&mock, MODERN, &slow().with_token()).await;

    let patience = Timeouts {
        idle: MINUTE,
        total: MINUTE,
    };
    let call = client.call_tool("a", json!({})).timeouts(patience);

    call.await.unwrap();
    assert_eq!(posted_messages(&mock, "tools/call").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_call_without_login_has_its_own_timeout() {
    let mock = protected_server(
        MODERN,
        |request| {
            if request.json()["params"]["name"] == "b" {
                2
            } else {
                1
            }
        },
        |request| (request.json()["params"]["name"] == "a").then(MockResponse::silence),
    );
    let client = connect(&mock, MODERN, &slow().with_token()).await;
    let started_at = Instant::now();

    let silent = client.call_tool("a", json!({}));
    let withheld = client.call_tool("b", json!({}));
    let (silent, withheld) = tokio::join!(async { (silent.await, started_at.elapsed()) }, async {
        withheld.await
    });

    withheld.unwrap();
    assert!(matches!(silent.0, Err(CallError::TimedOut { .. })));
    assert_eq!(silent.1.as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_waits_for_a_login() {
    let mock = protected_server(
        MODERN,
        from("subscriptions/listen", 2),
        |request| match request.rpc().as_str() {
            "server/discover" => {
                let result = json!({
                    "resultType": "complete", "supportedVersions": [MODERN],
                    "capabilities": { "tools": { "listChanged": true } },
                    "ttlMs": 0, "cacheScope": "private",
                });
                Some(MockResponse::result(request, &result))
            }
            "subscriptions/listen" => {
                let id = request.json()["id"].clone();
                let message = |method: &str, mut params: serde_json::Value| {
                    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
                    json!({ "jsonrpc": "2.0", "method": method, "params": params })
                };
                let acknowledged = message(
                    "notifications/subscriptions/acknowledged",
                    json!({ "notifications": { "toolsListChanged": true } }),
                );
                let changed = message("notifications/tools/list_changed", json!({}));
                Some(MockResponse::events(|events| async move {
                    events.message(&acknowledged);
                    events.message(&changed);
                    events.closed().await;
                }))
            }
            _ => None,
        },
    );
    let client = connect(&mock, MODERN, &slow().with_token()).await;

    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut subscription = client.listen(filter).await.unwrap();

    let first = subscription.next().await.unwrap().unwrap();
    let second = subscription.next().await.unwrap().unwrap();
    assert!(
        matches!(first, SubscriptionEvent::Acknowledged(_)),
        "{first:?}"
    );
    assert!(matches!(second, SubscriptionEvent::Change(_)), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_login() {
    let mock = protected_server(LATEST_LEGACY, from("tools/call", 2), |_| None);
    let client = connect(&mock, LATEST_LEGACY, &slow().with_token()).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { calling.call_tool("a", json!({})).await });
    mock.first(|request| request.rpc() == "tools/call").await;
    run_ready_tasks().await;
    let started_at = Instant::now();

    client.close().await;

    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
    assert!(started_at.elapsed() < Duration::from_secs(5));
    assert_eq!(by_method(&mock, "DELETE").len(), 1);
}
