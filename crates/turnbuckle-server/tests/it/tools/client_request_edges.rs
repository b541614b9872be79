//! Edge cases of client requests.
#![expect(
    clippy::needless_pass_by_value,
    reason = "so that a test says `json!` where it is needed"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_server::{
    CacheHint, ClientRequestError, Context, Elicitation, Resource, Server, Tool,
    testing::{SideEffects, ToolCase, assert_equivalent},
};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{Peer, modern_with};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Amount {
    #[expect(dead_code, reason = "only part of what the state is bound to")]
    amount: serde_json::Number,
}

fn accept() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

/// A stateless call of a client with form elicitation.
fn round(name: &str, arguments: Value, more: Value) -> Value {
    let mut params = json!({ "name": name, "arguments": arguments });
    let more = more.as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(more);
    modern_with(params, json!({ "elicitation": {} }))
}

/// The retry that accepts the request `name`.
fn retry(asked: &Value) -> Value {
    let state = &asked["result"]["requestState"];
    assert!(state.is_string(), "{asked}");
    json!({ "inputResponses": { "name": accept() }, "requestState": state })
}

fn server_with_elicitation(server: &str) -> Server {
    let ask = async |cx: Context| {
        let name = cx
            .elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?
            .accepted();
        Ok(name.map_or_else(String::new, |it| it.name))
    };
    let pay = async |_: Amount, cx: Context| {
        cx.elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?;
        Ok("paid".to_owned())
    };
    Server::new(server, "1")
        .tool(Tool::new("ask", ask))
        .tool(Tool::new("pay", pay))
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_input_request_key_is_an_error() {
    let stubborn = |_: SideEffects| {
        let ask = async |cx: Context| {
            loop {
                let name = cx
                    .elicit(Elicitation::form::<Name>("Who?").key("name"))
                    .await?
                    .accepted();
                if name.is_none() {
                    return Ok("never".to_owned());
                }
            }
        };
        Server::new("stubborn", "1").tool(Tool::new("ask", ask))
    };

    let trace = assert_equivalent(ToolCase::new("ask", json!({})), stubborn, |_, _| accept()).await;

    let text = trace.result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("duplicate key `name`"), "{text}");
    assert_eq!(trace.result["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn client_request_ids_are_unique() {
    req!("base.request.id-unique-session");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let capabilities = json!({ "elicitation": {} });
        let mut peer =
            Peer::initialized(server_with_elicitation("a"), "2025-11-25", capabilities).await;
        peer.request("tools/call", json!({ "name": "ask" })).await;
        ids.push(peer.next().await["id"].clone());
    }

    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn a_client_request_of_a_background_task_fails_after_its_call_ended() {
    for modern in [true, false] {
        let (tell, mut received) = tokio::sync::mpsc::unbounded_channel();
        let leave = move |cx: Context| {
            let tell = tell.clone();
            async move {
                tokio::spawn(async move {
                    // After the response, client requests are no longer possible.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let response = cx
                        .elicit(Elicitation::form::<Name>("Who?").key("name"))
                        .await;
                    tell.send(matches!(
                        response,
                        Err(ClientRequestError::CallEnded { .. })
                    ))
                });
                Ok("left".to_owned())
            }
        };
        let server = Server::new("leaving", "1").tool(Tool::new("leave", leave));
        let mut peer = if modern {
            Peer::new(server)
        } else {
            Peer::initialized(server, "2025-11-25", json!({ "elicitation": {} })).await
        };
        let params = if modern {
            round("leave", json!({}), json!({}))
        } else {
            json!({ "name": "leave" })
        };

        peer.call("tools/call", params).await;

        assert_eq!(received.recv().await, Some(true), "modern: {modern}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_input_request_ends_the_round_trip_even_if_the_handler_continues() {
    let hasty = |_: SideEffects| {
        let ask = async |cx: Context| {
            tokio::select! {
                biased;
                name = cx.elicit(Elicitation::form::<Name>("Who?").key("name")) => {
                    Ok(name?.accepted().map_or_else(String::new, |it| it.name))
                }
                () = tokio::task::yield_now() => Ok("missing".to_owned()),
            }
        };
        Server::new("hasty", "1").tool(Tool::new("ask", ask))
    };
    let mut peer = Peer::new(hasty(SideEffects::default()));

    let asked = peer
        .call("tools/call", round("ask", json!({}), json!({})))
        .await;
    let done = peer
        .call("tools/call", round("ask", json!({}), retry(&asked)))
        .await;

    assert_eq!(done["result"]["content"][0]["text"], "Ada", "{done}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_repeats_its_input_request_under_the_same_key() {
    let old = server_with_elicitation("a").state_keys([b"a secret of both"]);
    let replacement = async |_: Amount, cx: Context| {
        cx.elicit(Elicitation::form::<Name>("Who deletes everything?").key("name"))
            .await?;
        Ok("deleted".to_owned())
    };
    let new = Server::new("a", "2")
        .state_keys([b"a secret of both"])
        .tool(Tool::new("ask", replacement));

    let arguments = json!({ "amount": 1 });
    let first = round("ask", arguments.clone(), json!({}));
    let asked = Peer::new(old).call("tools/call", first).await;
    let second = round("ask", arguments, retry(&asked));
    let asked_again = Peer::new(new).call("tools/call", second).await;

    let client_request = &asked_again["result"]["inputRequests"]["name"]["params"]["message"];
    assert_eq!(client_request, "Who deletes everything?", "{asked_again}");
}

#[tokio::test(start_paused = true)]
async fn state_is_bound_to_the_server_and_to_every_digit_of_the_arguments() {
    req!("mrtr.state.request-binding");
    let server = |name| server_with_elicitation(name).state_keys([b"a secret of both"]);
    let paid = |peer: Peer, amount: &'static str, more: Value| async move {
        let mut peer = peer;
        // Written as text: these numbers do not survive conversion to a JSON value.
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": round("pay", json!({ "amount": "AMOUNT" }), more) });
        peer.send_line(&message.to_string().replace("\"AMOUNT\"", amount))
            .await;
        peer.next().await
    };
    let (small, large) = ("100000000000000000000001", "100000000000000000000002");

    let asked = paid(Peer::new(server("a")), small, json!({})).await;
    let elsewhere = paid(Peer::new(server("b")), small, retry(&asked)).await;
    let other_amount = paid(Peer::new(server("a")), large, retry(&asked)).await;
    let same = paid(Peer::new(server("a")), small, retry(&asked)).await;

    assert_eq!(elsewhere["error"]["code"], -32602, "{elsewhere}");
    assert_eq!(other_amount["error"]["code"], -32602, "{other_amount}");
    assert_eq!(same["result"]["content"][0]["text"], "paid", "{same}");
}

#[tokio::test(start_paused = true)]
async fn results_that_contain_input_responses_are_not_cacheable() {
    let read = async |cx: Context| {
        let name = cx
            .elicit(Elicitation::form::<Name>("Who reads?").key("name"))
            .await?
            .accepted();
        Ok(name.map_or_else(String::new, |it| it.name))
    };
    let hint = CacheHint::public(Duration::from_secs(60));
    let server = Server::new("a", "1").resource(Resource::new("note://me", "me", read).cache(hint));
    let mut peer = Peer::new(server);
    let params = |more: Value| {
        let mut params = json!({ "uri": "note://me" });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        modern_with(params, json!({ "elicitation": {} }))
    };

    let asked = peer.call("resources/read", params(json!({}))).await;
    let read = peer.call("resources/read", params(retry(&asked))).await;

    assert_eq!(read["result"]["contents"][0]["text"], "Ada", "{read}");
    assert_eq!(read["result"]["ttlMs"], 0);
    assert_eq!(read["result"]["cacheScope"], "private");
}

#[tokio::test(start_paused = true)]
async fn a_client_request_may_have_an_unlimited_timeout() {
    let server = server_with_elicitation("a").client_request_timeout(Duration::MAX, Duration::MAX);
    let mut peer = Peer::initialized(server, "2025-11-25", json!({ "elicitation": {} })).await;

    peer.request("tools/call", json!({ "name": "ask" })).await;
    let client_request = peer.next().await;
    peer.send(json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": accept() }))
        .await;

    assert_eq!(peer.next().await["result"]["content"][0]["text"], "Ada");
}

#[tokio::test(start_paused = true)]
async fn a_side_effect_runs_exactly_once_for_concurrent_callers() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let order = move |cx: Context| {
        let count = counted.clone();
        async move {
            cx.exactly_once("order-1", async || {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok(count.fetch_add(1, Ordering::Relaxed))
            })
            .await
        }
    };
    let mut peer = Peer::new(Server::new("shop", "1").tool(Tool::new("order", order)));

    for _ in 0..3 {
        peer.request("tools/call", round("order", json!({}), json!({})))
            .await;
    }
    for _ in 0..3 {
        let response = peer.next().await;
        assert_eq!(response["result"]["structuredContent"], 0, "{response}");
    }

    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_state_does_not_repeat_side_effects() {
    req!("mrtr.state.single-use");
    let redeemed = Arc::new(AtomicUsize::new(0));
    let counted = redeemed.clone();
    let redeem = move |cx: Context| {
        let count = counted.clone();
        async move {
            cx.elicit(Elicitation::form::<Name>("Who?").key("name"))
                .await?;
            cx.exactly_once("coupon-1", async || {
                Ok(count.fetch_add(1, Ordering::Relaxed))
            })
            .await
        }
    };
    let mut peer = Peer::new(Server::new("shop", "1").tool(Tool::new("redeem", redeem)));
    let asked = peer
        .call("tools/call", round("redeem", json!({}), json!({})))
        .await;

    for _ in 0..3 {
        let response = peer
            .call("tools/call", round("redeem", json!({}), retry(&asked)))
            .await;
        assert_eq!(response["result"]["structuredContent"], 0, "{response}");
    }

    assert_eq!(redeemed.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_side_effect_is_reported_and_not_repeated() {
    let order = async |cx: Context| {
        cx.exactly_once("order-1", async || {
            tokio::time::sleep(Duration::from_secs(1_000)).await;
            Ok("ordered".to_owned())
        })
        .await
    };
    let mut peer = Peer::new(Server::new("shop", "1").tool(Tool::new("order", order)));
    let first = peer
        .request("tools/call", round("order", json!({}), json!({})))
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    peer.cancel(first).await;

    let second = peer
        .call("tools/call", round("order", json!({}), json!({})))
        .await;

    let text = second["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("it is unknown whether it took effect"),
        "{text}"
    );
}
