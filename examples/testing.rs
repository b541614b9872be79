//! A server and its tests, in one file.
//!
//! In your project these would be `#[tokio::test(start_paused = true)]` functions. Here they run with `--check`:
//!
//! ```console
//! $ cargo example testing -- --check
//! ```
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle::{
    Context, Elicitation, Server, Tool, ToolError,
    testing::{self, Peer, SideEffects, ToolCase},
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The item to order.
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct Consent {
    /// Whether to continue.
    sure: bool,
}

/// A shop; `effects` records the side effects of its tools.
fn shop(effects: SideEffects) -> Server {
    let order = move |args: Order, cx: Context| {
        let effects = effects.clone();
        async move {
            cx.progress(1, 2).await;
            let consent = cx.elicit(Elicitation::form::<Consent>("Really?")).await?;
            if !consent.accepted().is_some_and(|consent| consent.sure) {
                return Err(ToolError::new("nothing was ordered"));
            }
            cx.once("order", async || {
                effects.record(format!("ordered {}", args.item));
                Ok(())
            })
            .await?;
            Ok(format!("{} is on its way", args.item))
        }
    };
    Server::new("shop", "1.0.0").tool(Tool::new("order", order).description("Orders something"))
}

/// A client that accepts everything.
fn agrees(_method: &str, _params: &Value) -> Value {
    json!({ "action": "accept", "content": { "sure": true } })
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if !std::env::args().any(|argument| argument == "--check") {
        println!("these are tests: run them with `--check`");
        return;
    }
    orders_only_with_consent().await;
    every_client_is_served().await;
    nothing_is_ordered_twice().await;
}

async fn orders_only_with_consent() {
    let effects = SideEffects::default();
    let declines = |_: &str, _: &Value| json!({ "action": "decline" });
    let connect = Peer::connect(shop(effects.clone())).legacy("2025-11-25");
    let mut peer = connect.respond_with(declines).await;

    let answer = peer.call_tool("order", json!({ "item": "tea" })).await;

    assert_eq!(answer.expect_tool_error(), "nothing was ordered");
    assert!(effects.recorded().is_empty());
    let progress = peer.expect_notification("notifications/progress").await;
    assert_eq!(progress["total"], 2.0);
    peer.expect_no_message().await;
    println!("{}", peer.transcript());
}

/// On every transport and in every revision; in revisions without forms, the tool fails with a message.
async fn every_client_is_served() {
    for edge in testing::all_combinations() {
        let mut peer = edge
            .connect(shop(SideEffects::default()))
            .respond_with(agrees)
            .await;
        let answer = peer.call_tool("order", json!({ "item": "tea" })).await;
        println!("{edge}: {}", answer.text());
    }
}

/// In a session, in round trips on alternating instances, and as a task.
async fn nothing_is_ordered_twice() {
    let trial = ToolCase::new("order", json!({ "item": "tea" }));

    let trace = testing::assert_equivalent(trial, shop, agrees).await;

    assert_eq!(trace.effects, ["ordered tea"]);
    println!("\nin every way: {}", trace.result["content"][0]["text"]);
}
