//! Progress tokens and progress reports.

use std::{
    collections::HashSet,
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use turnbuckle_client::{Anomaly, CallError, Client, Timeouts};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MockServer};

type ProgressReports = Arc<Mutex<Vec<f64>>>;

fn token(call: &Value) -> Value {
    call["params"]["_meta"]["progressToken"].clone()
}

#[tokio::test(start_paused = true)]
async fn every_pending_call_has_its_own_progress_token() {
    req!("progress.token.type", "progress.token.unique");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
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
async fn progress_reaches_only_its_call() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let client = server.connect().await;
        let reported = [ProgressReports::default(), ProgressReports::default()];
        let calls = reported.clone().map(|reported| {
            let call = client
                .call_tool("slow", json!({}))
                .on_progress(move |progress| reported.lock().unwrap().push(progress.progress));
            tokio::spawn(call.into_future())
        });
        let requested = [
            server.next("tools/call").await,
            server.next("tools/call").await,
        ];

        server.progress(&requested[0], 1.0).await;
        server.progress(&requested[1], 10.0).await;
        server.progress(&requested[0], 2.5).await;
        for call in &requested {
            server.reply(call, json!({ "content": [] })).await;
        }

        for call in calls {
            call.await.unwrap().unwrap();
        }
        // The order of the calls on the wire is not defined.
        let mut reported = reported.map(|reported| reported.lock().unwrap().clone());
        reported.sort_by(|one, other| one[0].total_cmp(&other[0]));
        assert_eq!(reported, [vec![1.0, 2.5], vec![10.0]], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_that_does_not_increase_is_not_reported() {
    let server = MockServer::modern();
    server.withhold("tools/call");
    let client = server.connect().await;
    let reported = ProgressReports::default();
    let call = client.call_tool("slow", json!({})).on_progress({
        let reported = reported.clone();
        move |progress| reported.lock().unwrap().push(progress.progress)
    });
    let call = tokio::spawn(call.into_future());
    let requested = server.next("tools/call").await;

    for progress in [2.0, 1.0, 2.0, 3.0, -1.0] {
        server.progress(&requested, progress).await;
    }
    server.reply(&requested, json!({ "content": [] })).await;

    call.await.unwrap().unwrap();
    assert_eq!(*reported.lock().unwrap(), [2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn progress_with_an_unknown_token_is_an_anomaly() {
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        server.withhold("tools/call");
        let anomaly = Arc::new(Mutex::new(Vec::new()));
        let client = Client::builder("test", "1").on_anomaly({
            let anomaly = anomaly.clone();
            move |oddity| anomaly.lock().unwrap().push(oddity)
        });
        let client = server.connect_with(client).await;
        let call = client.call_tool("slow", json!({})).timeouts(Timeouts {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(100),
        });
        let call = tokio::spawn(call.into_future());
        let requested = server.next("tools/call").await;

        for token in [
            json!("someone's"),
            json!(-5),
            token(&requested).to_string().into(),
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
        let anomaly = anomaly.lock().unwrap();
        let unknown = |oddity: &&Anomaly| matches!(oddity, Anomaly::UnknownProgressToken(_));
        assert_eq!(
            anomaly.iter().filter(unknown).count(),
            3,
            "{revision}: {anomaly:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_idle_timeout_until_it_expires() {
    let server = MockServer::modern();
    server.withhold("tools/call");
    let client = server.connect().await;
    let started_at = tokio::time::Instant::now();
    let call = client.call_tool("slow", json!({})).timeouts(Timeouts {
        idle: Duration::from_secs(10),
        total: Duration::from_secs(35),
    });
    let call = tokio::spawn(call.into_future());
    let requested = server.next("tools/call").await;

    for progress in 1..10 {
        tokio::time::sleep(Duration::from_secs(6)).await;
        server.progress(&requested, f64::from(progress)).await;
        if call.is_finished() {
            break;
        }
    }

    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(error, CallError::TimedOut { limit, .. } if limit.as_secs() == 35),
        "{error:?}"
    );
    assert!((35..=36).contains(&started_at.elapsed().as_secs()));
    server.next("notifications/cancelled").await;
}
