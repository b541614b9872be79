//! Long-running calls: progress, logs, cancellation, panics.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Notify;
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{Context, Server, Tool, ToolError};
use turnbuckle_spec_coverage::req;

use crate::{
    ndjson::test_client::{LEGACY, Peer, modern},
    spec::revision_client::{EVERY, RevisionClient},
};

/// Counts drops.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Guard(Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A tool that never returns, and counts its drops.
fn forever() -> (Tool, Drops) {
    let drops = Drops::default();
    let counted = drops.clone();
    let tool = Tool::new("forever", move || {
        let guard = Guard(counted.clone());
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok(String::new())
        }
    });
    (tool, drops)
}

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {} })
}

#[tokio::test(start_paused = true)]
async fn cancellation_drops_the_handler_and_is_not_answered_in_both_eras() {
    req!(
        "cancellation.receiver.stop",
        "cancellation.receiver.free",
        "cancellation.receiver.no-response",
        "stdio.cancel.stop",
        "stdio.cancel.silence"
    );

    for revision in LEGACY {
        let (tool, drops) = forever();
        let mut peer =
            Peer::initialized(Server::new("s", "1").tool(tool), revision, json!({})).await;

        for (params, dropped) in [(call("forever"), 1), (modern(call("forever")), 2)] {
            let id = peer.request("tools/call", params).await;
            peer.expect_no_message().await;
            assert_eq!(drops.count(), dropped - 1);

            peer.cancel(id).await;
            peer.expect_no_message().await;
            assert_eq!(drops.count(), dropped);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_of_an_unknown_request_is_ignored() {
    req!(
        "cancellation.receiver.ignore",
        "cancellation.invalid-ignored",
        "cancellation.race"
    );
    let hello = Tool::new("hello", async || Ok("hello".to_owned()));
    for revision in EVERY {
        let server = Server::new("s", "1").tool(hello.clone());
        let mut client = RevisionClient::new(revision, server).await;
        let finished = client.request("tools/call", call("hello")).await;
        let peer = &mut client.peer;
        peer.next().await;

        peer.cancel(finished).await;
        peer.cancel(4711).await;
        for params in [
            json!({}),
            json!({ "requestId": null }),
            json!({ "requestId": [1] }),
        ] {
            peer.notify("notifications/cancelled", params).await;
        }

        // The connection still works, without messages about it.
        client.result("tools/call", call("hello")).await;
    }
}

#[tokio::test]
async fn a_cancellation_is_handled_while_a_tool_blocks_its_thread() {
    let gate = Arc::new((std::sync::Mutex::new(false), std::sync::Condvar::new()));
    let opened = gate.clone();
    let block = Tool::blocking("block", move || {
        let (open, changed) = &*gate;
        let guard = open.lock().unwrap();
        drop(changed.wait_while(guard, |open| !*open).unwrap());
        Ok("done".to_owned())
    });
    let (forever, drops) = forever();
    let server = Server::new("s", "1").tool(block).tool(forever);
    let mut peer = Peer::initialized(server, "2025-06-18", json!({})).await;
    let blocking = peer.request("tools/call", call("block")).await;
    let waiting = peer.request("tools/call", call("forever")).await;

    peer.cancel(waiting).await;
    assert_eq!(peer.call("ping", json!({})).await["result"], json!({}));
    peer.cancel(blocking).await;
    assert_eq!(peer.call("ping", json!({})).await["result"], json!({}));

    assert_eq!(drops.count(), 1);
    *opened.0.lock().unwrap() = true;
    opened.1.notify_all();
    assert_eq!(peer.finish().await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn detached_work_outlives_a_cancellation() {
    let done = Arc::new(Notify::new());
    let finished = done.clone();
    let tool = Tool::new("detach", move |cx: Context| {
        let finished = finished.clone();
        async move {
            cx.detach(async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                finished.notify_one();
            })
            .await;
            Ok(String::new())
        }
    });
    let mut peer =
        Peer::initialized(Server::new("s", "1").tool(tool), "2025-11-25", json!({})).await;
    let id = peer.request("tools/call", call("detach")).await;
    peer.expect_no_message().await;

    peer.cancel(id).await;

    done.notified().await;
    peer.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_internal_error_without_details() {
    req!("base.error.internal");
    let at_once = Tool::new(
        "at_once",
        || -> std::future::Ready<Result<String, ToolError>> { panic!("secret") },
    );
    let first = Tool::new("first", async || -> Result<String, ToolError> {
        panic!("secret")
    });
    let later = Tool::new("later", async || -> Result<String, ToolError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        panic!("secret")
    });
    let blocking = Tool::blocking("blocking", || -> Result<String, ToolError> {
        panic!("secret")
    });
    let server = Server::new("s", "1")
        .tool(at_once)
        .tool(first)
        .tool(later)
        .tool(blocking);
    for revision in LEGACY {
        let mut peer = Peer::initialized(server.clone(), revision, json!({})).await;

        for tool in ["at_once", "first", "later", "blocking"] {
            for params in [call(tool), modern(call(tool))] {
                let response = peer.call("tools/call", params).await;

                assert_eq!(response["error"]["code"], -32603, "{tool}");
                assert!(!response.to_string().contains("secret"));
            }
        }
        assert_eq!(peer.call("ping", json!({})).await["result"], json!({}));
    }
}

fn counting() -> Server {
    let count = Tool::new("count", async |cx: Context| {
        for step in [1.0, 0.5, 1.0, 2.5, f64::NAN, 3.0] {
            cx.progress_message(step, Some(3.0), "counting").await;
            tokio::task::yield_now().await;
        }
        let late = cx.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            late.progress(9, 9).await;
        });
        Ok("counted".to_owned())
    });
    Server::new("s", "1").tool(count)
}

#[tokio::test(start_paused = true)]
async fn progress_only_increases_and_ends_with_the_response() {
    req!(
        "progress.increase",
        "progress.stop",
        "progress.shape",
        "progress.send",
        "progress.send-server",
        "progress.float",
        "progress.token.active",
        "base.inflight-notifications"
    );
    for revision in LEGACY {
        let mut peer = Peer::initialized(counting(), revision, json!({})).await;
        for token in [json!("t"), json!(7)] {
            let mut legacy = call("count");
            legacy["_meta"] = json!({ "progressToken": token });

            for params in [legacy.clone(), modern(legacy)] {
                let id = peer.request("tools/call", params).await;

                for step in [1.0, 2.5, 3.0] {
                    let message = peer.next().await;
                    assert_eq!(message["method"], "notifications/progress");
                    assert_eq!(message["params"]["progressToken"], token);
                    assert_eq!(message["params"]["progress"].as_f64(), Some(step));
                    if revision.starts_with("2025") {
                        assert_eq!(message["params"]["message"], "counting");
                    }
                }
                assert_eq!(peer.next().await["id"], id);
                peer.expect_no_message().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_token_there_is_no_progress() {
    let mut peer = Peer::initialized(counting(), "2025-06-18", json!({})).await;

    let response = peer.call("tools/call", call("count")).await;

    assert_eq!(response["result"]["content"][0]["text"], "counted");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_revision_gets_progress_without_a_message() {
    let mut peer = Peer::initialized(counting(), "2024-11-05", json!({})).await;
    let mut params = call("count");
    params["_meta"] = json!({ "progressToken": 1 });
    peer.request("tools/call", params).await;

    let message = peer.next().await;

    assert_eq!(message["params"].get("message"), None);
    assert_eq!(message["params"]["progress"].as_f64(), Some(1.0));
}

fn logging() -> Server {
    let log = Tool::new("log", async |cx: Context| {
        cx.log(LogLevel::Debug, "fine").await;
        cx.log(LogLevel::Info, json!({ "seen": 1 })).await;
        cx.log_as(LogLevel::Error, Some("disk"), "full").await;
        Ok("logged".to_owned())
    });
    Server::new("s", "1").tool(log)
}

/// Calls the logging tool and returns the levels received before its response.
async fn levels(peer: &mut Peer, params: Value) -> Vec<String> {
    let id = peer.request("tools/call", params).await;
    let mut levels = Vec::new();
    loop {
        let message = peer.next().await;
        if message["id"] == id {
            return levels;
        }
        assert_eq!(message["method"], "notifications/message");
        let data = &message["params"]["data"];
        let logger = message["params"].get("logger");
        match message["params"]["level"].as_str() {
            Some("debug") => assert_eq!((data, logger), (&json!("fine"), None)),
            Some("info") => assert_eq!((data, logger), (&json!({ "seen": 1 }), None)),
            _ => assert_eq!((data, logger), (&json!("full"), Some(&json!("disk")))),
        }
        levels.push(message["params"]["level"].as_str().unwrap().to_owned());
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_receives_log_messages_of_its_level() {
    req!(
        "logging.message.shape",
        "logging.set-level.answer",
        "logging.set-level.respect",
        "logging.set-level.default",
        "logging.error.invalid-level"
    );

    for revision in LEGACY {
        let mut peer = Peer::initialized(logging(), revision, json!({})).await;
        assert_eq!(levels(&mut peer, call("log")).await, ["info", "error"]);

        let set = peer
            .call("logging/setLevel", json!({ "level": "debug" }))
            .await;
        assert_eq!(set["result"], json!({}));
        assert_eq!(
            levels(&mut peer, call("log")).await,
            ["debug", "info", "error"]
        );

        peer.call("logging/setLevel", json!({ "level": "emergency" }))
            .await;
        assert_eq!(levels(&mut peer, call("log")).await, [] as [&str; 0]);

        let wrong = peer
            .call("logging/setLevel", json!({ "level": "loud" }))
            .await;
        assert_eq!(wrong["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_receives_only_what_it_requested() {
    req!(
        "logging.request.opt-in",
        "logging.request.at-or-above",
        "logging.request.invalid-level",
        "logging.message.shape"
    );
    let mut peer = Peer::initialized(logging(), "2025-06-18", json!({})).await;
    peer.call("logging/setLevel", json!({ "level": "debug" }))
        .await;
    let at = |level: &str| {
        let mut params = modern(call("log"));
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        params
    };

    assert_eq!(
        levels(&mut peer, modern(call("log"))).await,
        [] as [&str; 0]
    );
    assert_eq!(levels(&mut peer, at("info")).await, ["info", "error"]);
    assert_eq!(levels(&mut peer, at("critical")).await, [] as [&str; 0]);
    let wrong = peer.call("tools/call", at("loud")).await;
    assert_eq!(wrong["error"]["code"], -32602);
}
