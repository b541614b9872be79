//! Details of tools, ids and builders.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use serde_json::json;
use turnbuckle_protocol::{Meta, types::Icon};
use turnbuckle_server::{Prompt, Resource, ResourceTemplate, Server, Tool, Variables};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{Peer, modern};

fn hello() -> Server {
    Server::new("hello", "1").tool(Tool::new("hi", async || Ok("hello".to_owned())))
}

#[tokio::test(start_paused = true)]
async fn a_subscription_carries_the_id_of_its_request() {
    req!("subscriptions.id.value");
    for id in ["1e400", "123456789012345678901234567890", "1.0", "\"l:0\""] {
        let mut peer = Peer::new(hello());
        let params = modern(json!({ "notifications": { "toolsListChanged": true } }));
        peer.send_line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#
        ))
        .await;
        let acknowledged = peer.next_line().await;
        peer.end_input().await;
        let goodbye = peer.next_line().await;
        let end = peer.next_line().await;

        let tag = format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#);
        assert!(acknowledged.contains(&tag), "{acknowledged}");
        assert!(
            goodbye.contains(&format!(r#""requestId":{id}"#)),
            "{goodbye}"
        );
        assert!(
            end.contains(&tag) && end.contains(&format!(r#""id":{id}"#)),
            "{end}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_over_the_limit_is_rejected() {
    let mut peer =
        Peer::new(hello().resource(turnbuckle_server::Resource::text("note://a", "a", "text")));
    let long = vec!["x".repeat(8 * 1024); 20];

    let response = peer
        .call_modern(
            "subscriptions/listen",
            json!({ "notifications": { "resourceSubscriptions": long } }),
        )
        .await;

    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[tokio::test(start_paused = true)]
async fn an_error_truncates_a_long_name() {
    let mut peer = Peer::new(hello());

    let response = peer
        .call_modern("tools/call", json!({ "name": "\u{7f}".repeat(100_000) }))
        .await;

    assert_eq!(response["error"]["code"], -32602);
    assert!(response.to_string().len() < 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_an_output_schema_returns_structured_content_even_if_empty() {
    req!("tools.output.structured-any");
    let some = Tool::new("some", async || Ok(Some(7)));
    let none = Tool::new("none", async || Ok(None::<u32>));
    let mut peer = Peer::new(Server::new("options", "1").tool(some).tool(none));

    for (tool, expected) in [("some", json!(7)), ("none", json!(null))] {
        let response = peer
            .call_modern("tools/call", json!({ "name": tool }))
            .await;
        assert_eq!(
            response["result"].get("structuredContent"),
            Some(&expected),
            "{response}"
        );
    }
}

#[test]
fn abandoned_work_is_never_started() {
    // One thread for all blocking work: the second job waits.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (release, wait) = mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let started = Arc::new(AtomicUsize::new(0));
        let counted = started.clone();
        let block = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            let _ = wait.lock().unwrap().recv_timeout(Duration::from_secs(20));
            Ok("done".to_owned())
        };
        let mut peer = Peer::new(Server::new("slow", "1").tool(Tool::blocking("block", block)));
        let first = peer
            .request("tools/call", modern(json!({ "name": "block" })))
            .await;
        let second = peer
            .request("tools/call", modern(json!({ "name": "block" })))
            .await;
        while started.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }

        peer.cancel(second).await;
        peer.call_modern("tools/list", json!({})).await;
        release.send(()).unwrap();

        assert_eq!(peer.next().await["id"], first);
        peer.call_modern("tools/list", json!({})).await;
        assert_eq!(started.load(Ordering::Relaxed), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn a_changed_clone_is_independent() {
    let server = hello();
    let _other = server
        .clone()
        .tool(Tool::new("bye", async || Ok(String::new())));

    let list = Peer::new(server).call_modern("tools/list", json!({})).await;

    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_entry_lists_the_settings_that_all_of_them_have() {
    let meta = || {
        let mut meta = Meta::new();
        meta.insert("example.com/color", "red").unwrap();
        meta
    };
    macro_rules! described {
        ($entry:expr) => {
            $entry
                .title("Title")
                .description("Text")
                .icon(Icon::new("data:image/png;base64,"))
                .meta(meta())
        };
    }
    let template = ResourceTemplate::new("log://{day}", "log", async |_: Variables| Ok(""));
    let server = hello()
        .tool(described!(Tool::new("hi", async || Ok("".to_owned()))))
        .prompt(described!(Prompt::new("review", async || Ok("Review."))))
        .resource(described!(Resource::text("note://a", "a", "A")))
        .template(described!(template));
    let mut peer = Peer::new(server);

    for (method, list) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let response = peer.call_modern(method, json!({})).await;
        let entry = &response["result"][list][0];

        assert_eq!(entry["title"], "Title", "{response}");
        assert_eq!(entry["description"], "Text", "{response}");
        assert_eq!(
            entry["icons"][0]["src"], "data:image/png;base64,",
            "{response}"
        );
        assert_eq!(
            entry["_meta"],
            json!({ "example.com/color": "red" }),
            "{response}"
        );
    }
}
