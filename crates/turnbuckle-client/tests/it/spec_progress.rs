//! Progress: how it is asked for, and what is made of it.

use std::{
    collections::HashSet,
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, CallError, Client, Timeouts};
use turnbuckle_spec_coverage::req;

use crate::fake_lines::{EVERY, FakeServer};

type Told = Arc<Mutex<Vec<f64>>>;

fn token(call: &Value) -> Value {
    call["params"]["_meta"]["progressToken"].clone()
}

#[tokio::test(start_paused = true)]
async fn each_open_call_has_a_token_of_its_own() {
    req!("progress.token.type", "progress.token.unique");
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        let client = server.connect().await;
        let calls: Vec<_> = (0..5)
            .map(|_| {
                let call = client.call_tool("slow", json!({})).on_progress(|_| {});
                tokio::spawn(call.into_future())
            })
            .collect();

        let mut tokens = HashSet::new();
        for _ in &calls {
            let call = server.next("tools/call").await;
            let token = token(&call);
            assert!(token.is_string() || token.is_i64(), "{call}");
            assert!(tokens.insert(token.to_string()), "{call}");
        }
        calls.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_its_call_and_nobody_else() {
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        let client = server.connect().await;
        let told = [Told::default(), Told::default()];
        let calls = told.clone().map(|told| {
            let call = client
                .call_tool("slow", json!({}))
                .on_progress(move |progress| told.lock().unwrap().push(progress.progress));
            tokio::spawn(call.into_future())
        });
        let asked = [
            server.next("tools/call").await,
            server.next("tools/call").await,
        ];

        server.progress(&asked[0], 1.0).await;
        server.progress(&asked[1], 10.0).await;
        server.progress(&asked[0], 2.5).await;
        for call in &asked {
            server.reply(call, json!({ "content": [] })).await;
        }

        for call in calls {
            call.await.unwrap().unwrap();
        }
        // Which call was first on the wire is not said.
        let mut told = told.map(|told| told.lock().unwrap().clone());
        told.sort_by(|one, other| one[0].total_cmp(&other[0]));
        assert_eq!(told, [vec![1.0, 2.5], vec![10.0]], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_go_on_is_not_told() {
    let server = FakeServer::modern();
    server.hold("tools/call");
    let client = server.connect().await;
    let told = Told::default();
    let call = client.call_tool("slow", json!({})).on_progress({
        let told = told.clone();
        move |progress| told.lock().unwrap().push(progress.progress)
    });
    let call = tokio::spawn(call.into_future());
    let asked = server.next("tools/call").await;

    for progress in [2.0, 1.0, 2.0, 3.0, -1.0] {
        server.progress(&asked, progress).await;
    }
    server.reply(&asked, json!({ "content": [] })).await;

    call.await.unwrap().unwrap();
    assert_eq!(*told.lock().unwrap(), [2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn progress_for_nobody_is_odd_and_keeps_nobody_waiting() {
    for revision in EVERY {
        let server = FakeServer::speaking(revision);
        server.hold("tools/call");
        let odd = Arc::new(Mutex::new(Vec::new()));
        let client = Client::builder("test", "1").on_anomaly({
            let odd = odd.clone();
            move |oddity| odd.lock().unwrap().push(oddity)
        });
        let client = server.connect_as(client).await;
        let call = client.call_tool("slow", json!({})).timeouts(Timeouts {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(100),
        });
        let call = tokio::spawn(call.into_future());
        let asked = server.next("tools/call").await;

        for token in [
            json!("someone's"),
            json!(-5),
            token(&asked).to_string().into(),
        ] {
            tokio::time::sleep(Duration::from_secs(3)).await;
            server
                .notify(
                    "notifications/progress",
                    json!({ "progressToken": token, "progress": 1 }),
                )
                .await;
        }

        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, CallError::TimedOut { .. }), "{error:?}");
        let odd = odd.lock().unwrap();
        let foreign = |oddity: &&Anomaly| matches!(oddity, Anomaly::UnknownProgressToken(_));
        assert_eq!(odd.iter().filter(foreign).count(), 3, "{revision}: {odd:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_gives_more_time_up_to_the_last_moment() {
    let server = FakeServer::modern();
    server.hold("tools/call");
    let client = server.connect().await;
    let begun = tokio::time::Instant::now();
    let call = client.call_tool("slow", json!({})).timeouts(Timeouts {
        idle: Duration::from_secs(10),
        total: Duration::from_secs(35),
    });
    let call = tokio::spawn(call.into_future());
    let asked = server.next("tools/call").await;

    for progress in 1..10 {
        tokio::time::sleep(Duration::from_secs(6)).await;
        server.progress(&asked, f64::from(progress)).await;
        if call.is_finished() {
            break;
        }
    }

    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { limit, .. } if limit.as_secs() == 35),
        "{error:?}"
    );
    assert!((35..=36).contains(&begun.elapsed().as_secs()));
    server.next("notifications/cancelled").await;
}
