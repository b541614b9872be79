//! Logins that take as long as people do: meanwhile nobody's patience runs out.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use turnbuckle_client::{
    CallError, Client, ConnectError, LifecycleMode, SubscriptionEvent, Timeouts,
};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{
    fake_http::{FakeHttp, Reply, Seen},
    http_peer::{LATEST_LEGACY, MODERN, at, by_method, on_call, output, posted, settle, speaking},
    wallet::{Wallet, guarded, token},
};

const MINUTE: Duration = Duration::from_secs(60);

/// A person who takes five minutes to log in.
fn slow() -> Wallet {
    Wallet::taking(5 * MINUTE)
}

async fn connect(fake: &FakeHttp, revision: &str, wallet: &Wallet) -> Client {
    let target = at(fake).authorization(wallet.clone());
    speaking(revision).connect(target).await.unwrap()
}

/// Lets a message in from this token on, and all others from the first.
fn from(method: &'static str, number: u64) -> impl Fn(&Seen) -> u64 + Send + Sync + 'static {
    move |seen| if seen.rpc() == method { number } else { 1 }
}

#[tokio::test(start_paused = true)]
async fn connecting_waits_for_a_login() {
    for (revision, era) in [
        (MODERN, LifecycleMode::Auto),
        (MODERN, LifecycleMode::Modern),
        (LATEST_LEGACY, LifecycleMode::Auto),
        (LATEST_LEGACY, LifecycleMode::Legacy),
    ] {
        let fake = guarded(revision, |_| 1, |_| None);
        let begun = Instant::now();

        let builder = Client::builder("test", "1").lifecycle_mode(era);
        let target = at(&fake).authorization(slow());
        builder.connect(target).await.unwrap();

        assert!(begun.elapsed() >= 5 * MINUTE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_nobody_answers_waits_for_a_login_too() {
    let fake = guarded(LATEST_LEGACY, from("notifications/initialized", 2), |_| {
        None
    });
    let wallet = slow().with_token();

    connect(&fake, LATEST_LEGACY, &wallet).await;

    let sent = posted(&fake, "notifications/initialized");
    assert_eq!(sent.iter().map(token).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_login() {
    for revision in [LATEST_LEGACY, MODERN] {
        let fake = guarded(revision, from("tools/call", 2), |_| None);
        let client = connect(&fake, revision, &slow().with_token()).await;
        let begun = Instant::now();

        client.call_tool("a", json!({})).await.unwrap();

        assert!(begun.elapsed() >= 5 * MINUTE);
        assert!(posted(&fake, "notifications/cancelled").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn not_even_the_total_runs_out() {
    let fake = guarded(
        MODERN,
        from("tools/call", 2),
        on_call(|seen| {
            let answer =
                json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": output("done") });
            Reply::events(|events| async move {
                sleep(MINUTE * 5 / 6).await;
                events.message(&answer);
            })
        }),
    );
    let wallet = Wallet::taking(60 * MINUTE).with_token();
    let client = connect(&fake, MODERN, &wallet).await;

    let patience = Timeouts {
        idle: MINUTE,
        total: MINUTE,
    };
    let call = client.call_tool("a", json!({})).timeouts(patience);

    call.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_the_login_the_clock_starts_anew() {
    for revision in [LATEST_LEGACY, MODERN] {
        let fake = guarded(
            revision,
            from("tools/call", 2),
            on_call(|_| Reply::silence()),
        );
        let client = connect(&fake, revision, &slow().with_token()).await;
        let begun = Instant::now();

        let error = client.call_tool("a", json!({})).await.unwrap_err();

        let waited = begun.elapsed().as_secs();
        assert!(
            matches!(error, CallError::TimedOut { limit, .. } if limit == MINUTE),
            "{error:?}"
        );
        assert_eq!(waited, 6 * 60);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_after_the_login_is_given_up() {
    for revision in [LATEST_LEGACY, MODERN] {
        let fake = guarded(revision, |_| 1, |_| Some(Reply::silence()));
        let begun = Instant::now();

        let target = at(&fake).authorization(slow());
        let error = speaking(revision).connect(target).await.unwrap_err();

        assert!(matches!(error, ConnectError::TimedOut { .. }), "{error:?}");
        assert_eq!(begun.elapsed().as_secs(), 6 * 60);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_login_is_not_taken_from_later_rounds() {
    let fake = guarded(
        MODERN,
        from("tools/call", 2),
        on_call(|seen| {
            let first = seen.json()["params"].get("requestState").is_none();
            let result = if first {
                json!({ "resultType": "input_required", "requestState": "s" })
            } else {
                output("done")
            };
            let answer = json!({ "jsonrpc": "2.0", "id": seen.json()["id"], "result": result });
            Reply::events(|events| async move {
                sleep(MINUTE / 4).await;
                events.message(&answer);
            })
        }),
    );
    let client = connect(&fake, MODERN, &slow().with_token()).await;

    let patience = Timeouts {
        idle: MINUTE,
        total: MINUTE,
    };
    let call = client.call_tool("a", json!({})).timeouts(patience);

    call.await.unwrap();
    assert_eq!(posted(&fake, "tools/call").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn another_call_that_is_not_held_up_has_its_own_patience() {
    let fake = guarded(
        MODERN,
        |seen| {
            if seen.json()["params"]["name"] == "b" {
                2
            } else {
                1
            }
        },
        |seen| (seen.json()["params"]["name"] == "a").then(Reply::silence),
    );
    let client = connect(&fake, MODERN, &slow().with_token()).await;
    let begun = Instant::now();

    let silent = client.call_tool("a", json!({}));
    let held = client.call_tool("b", json!({}));
    let (silent, held) = tokio::join!(async { (silent.await, begun.elapsed()) }, async {
        held.await
    });

    held.unwrap();
    assert!(matches!(silent.0, Err(CallError::TimedOut { .. })));
    assert_eq!(silent.1.as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn listening_waits_for_a_login() {
    let fake = guarded(MODERN, from("subscriptions/listen", 2), |seen| {
        match seen.rpc().as_str() {
            "server/discover" => {
                let result = json!({
                    "resultType": "complete", "supportedVersions": [MODERN],
                    "capabilities": { "tools": { "listChanged": true } },
                    "ttlMs": 0, "cacheScope": "private",
                });
                Some(Reply::result(seen, &result))
            }
            "subscriptions/listen" => {
                let id = seen.json()["id"].clone();
                let message = |method: &str, mut params: serde_json::Value| {
                    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
                    json!({ "jsonrpc": "2.0", "method": method, "params": params })
                };
                let acknowledged = message(
                    "notifications/subscriptions/acknowledged",
                    json!({ "notifications": { "toolsListChanged": true } }),
                );
                let changed = message("notifications/tools/list_changed", json!({}));
                Some(Reply::events(|events| async move {
                    events.message(&acknowledged);
                    events.message(&changed);
                    events.closed().await;
                }))
            }
            _ => None,
        }
    });
    let client = connect(&fake, MODERN, &slow().with_token()).await;

    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut listening = client.listen(filter).await.unwrap();

    let first = listening.next().await.unwrap().unwrap();
    let second = listening.next().await.unwrap().unwrap();
    assert!(
        matches!(first, SubscriptionEvent::Acknowledged(_)),
        "{first:?}"
    );
    assert!(matches!(second, SubscriptionEvent::Change(_)), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_login() {
    let fake = guarded(LATEST_LEGACY, from("tools/call", 2), |_| None);
    let client = connect(&fake, LATEST_LEGACY, &slow().with_token()).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { calling.call_tool("a", json!({})).await });
    fake.first(|seen| seen.rpc() == "tools/call").await;
    settle().await;
    let begun = Instant::now();

    client.close().await;

    let error = call.await.unwrap().unwrap_err();
    assert!(matches!(error, CallError::Disconnected { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(by_method(&fake, "DELETE").len(), 1);
}
