//! Progress, and the timeouts that it restarts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use turnbuckle_client::{CallError, Timeouts};
use turnbuckle_server::{Context, Server, Tool, ToolError};

use crate::servers::turnbuckle::both_eras;

/// Works for ten seconds, and reports progress every second if it is requested.
async fn work(args: serde_json::Value, cx: Context) -> Result<String, ToolError> {
    for second in 1..=10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if args["reports"] == true {
            cx.progress(second, 10).await;
        }
    }
    Ok("done".to_owned())
}

fn server() -> Server {
    let tool = Tool::raw("work", json!({ "type": "object" }), work);
    Server::new("worker", "1.0").tool(tool)
}

fn timeouts(idle: u64, total: u64) -> Timeouts {
    Timeouts {
        idle: Duration::from_secs(idle),
        total: Duration::from_secs(total),
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported_in_order() {
    for client in both_eras(server).await {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&reports);

        let call = client
            .call_tool("work", json!({ "reports": true }))
            .on_progress(move |progress| recorded.lock().unwrap().push(progress));
        call.await.expect("the tool finishes");

        let reports = reports.lock().unwrap();
        let values: Vec<_> = reports.iter().map(|progress| progress.progress).collect();
        assert_eq!(values, (1..=10).map(f64::from).collect::<Vec<_>>());
        assert_eq!(reports[0].total, Some(10.0));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_available_as_a_stream() {
    for client in both_eras(server).await {
        let call = client.call_tool("work", json!({ "reports": true }));
        let (mut progress, call) = call.with_progress();
        let call = tokio::spawn(call.into_future());

        let mut count = 0;
        while progress.next().await.is_some() {
            count += 1;
        }

        assert_eq!(count, 10);
        call.await.unwrap().expect("the tool finishes");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_call_times_out() {
    for client in both_eras(server).await {
        let call = client
            .call_tool("work", json!({}))
            .timeouts(timeouts(3, 60));

        let error = call.await.unwrap_err();

        let three = Duration::from_secs(3);
        assert!(
            matches!(error, CallError::TimedOut { limit, .. } if limit == three),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_idle_timeout() {
    for client in both_eras(server).await {
        let call = client
            .call_tool("work", json!({ "reports": true }))
            .timeouts(timeouts(3, 60));

        call.await.expect("progress arrives in time");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_does_not_extend_the_total_timeout() {
    for client in both_eras(server).await {
        let call = client
            .call_tool("work", json!({ "reports": true }))
            .timeouts(timeouts(3, 5));

        let error = call.await.unwrap_err();

        let five = Duration::from_secs(5);
        assert!(
            matches!(error, CallError::TimedOut { limit, .. } if limit == five),
            "{error}"
        );
    }
}
