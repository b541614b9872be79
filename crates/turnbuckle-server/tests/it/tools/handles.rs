//! Handles: values of one call, used in a later one.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, Handle, HandleError, HandleValue, Prompt, Server, Tool, ndjson::NdjsonServer,
};
use turnbuckle_spec_coverage::req;
use turnbuckle_store::{Store, StoreLimits};

use crate::{
    http::test_client::HttpTestClient,
    ndjson::test_client::{LEGACY, Peer},
};

const HOUR: Duration = Duration::from_secs(3600);
const KEYS: [&str; 1] = ["a secret of sixteen bytes or more"];
const START_AGAIN: &str = "this handle is invalid or has expired: start again without it";

#[derive(Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
}

impl HandleValue for Cart {
    const NAME: &'static str = "cart";
}

/// Has the fields of a cart, but another type.
#[derive(Serialize, Deserialize)]
struct Wishes {
    items: Vec<String>,
}

impl HandleValue for Wishes {
    const NAME: &'static str = "wishes";
}

#[derive(Deserialize, JsonSchema)]
struct CreateCart {
    item: String,
    seconds: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// The cart of an earlier call.
    cart: Handle<Cart>,
}

#[derive(Deserialize, JsonSchema)]
struct CountWishes {
    wishes: Handle<Wishes>,
}

#[derive(Serialize, JsonSchema)]
struct CreatedCart {
    cart: Handle<Cart>,
    count: usize,
}

impl CreateCart {
    fn cart(&self) -> (Cart, Duration) {
        let items = vec![self.item.clone()];
        (Cart { items }, Duration::from_secs(self.seconds))
    }
}

fn server() -> Server {
    named("shop")
}

fn named(name: &str) -> Server {
    Server::new(name, "1")
        .state_keys(KEYS)
        .tool(Tool::new("seal", async |args: CreateCart, cx: Context| {
            let (cart, lifetime) = args.cart();
            Ok(cx.create_handle(&cart, lifetime)?)
        }))
        .tool(Tool::new("keep", async |args: CreateCart, cx: Context| {
            let (cart, lifetime) = args.cart();
            Ok(cx.store_handle(&cart, lifetime).await?)
        }))
        .tool(Tool::new("begin", async |args: CreateCart, cx: Context| {
            let (cart, lifetime) = args.cart();
            let count = cart.items.len();
            let cart = cx.create_handle(&cart, lifetime)?;
            Ok(CreatedCart { cart, count })
        }))
        .tool(Tool::new("count", async |args: Count, cx: Context| {
            let cart = cx.resolve_handle(&args.cart).await?;
            Ok(format!("{} in it", cart.items.len()))
        }))
        .tool(Tool::new(
            "count_wishes",
            async |args: CountWishes, cx: Context| {
                let wishes = cx.resolve_handle(&args.wishes).await?;
                Ok(format!("{} in it", wishes.items.len()))
            },
        ))
        .prompt(Prompt::new("ask", async |args: Count, cx: Context| {
            let cart = cx.resolve_handle(&args.cart).await?;
            Ok(format!("Count {}.", cart.items.len()))
        }))
}

fn client_of(server: Server, who: &str) -> Peer {
    Peer::with(NdjsonServer::new(server).principal(Principal::new("issuer", who)))
}

async fn call(peer: &mut Peer, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let response = peer.call_modern("tools/call", params).await;
    assert!(response["result"].is_object(), "{response}");
    response["result"].clone()
}

/// Creates a cart and returns its handle.
async fn begin(peer: &mut Peer, tool: &str) -> String {
    let started = call(peer, tool, json!({ "item": "green tea", "seconds": 60 })).await;
    assert_eq!(started.get("isError"), None, "{started}");
    text(&started)
}

/// Counts the items of a cart. `Err` is the message for the model.
async fn count(peer: &mut Peer, handle: &str) -> Result<String, String> {
    let counted = call(peer, "count", json!({ "cart": handle })).await;
    match counted.get("isError") {
        None => Ok(text(&counted)),
        Some(_) => Err(text(&counted)),
    }
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_later_call_resolves_the_handle_of_an_earlier_one() {
    let mut peer = Peer::new(server());

    for tool in ["seal", "keep"] {
        let handle = begin(&mut peer, tool).await;

        for _ in 0..2 {
            assert_eq!(count(&mut peer, &handle).await, Ok("1 in it".to_owned()));
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&handle).unwrap();
        let item = b"green tea";
        assert!(bytes.windows(item.len()).all(|bytes| bytes != item));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_created_in_a_session_resolves_in_every_revision() {
    let server = server();
    let handle = begin(&mut Peer::new(server.clone()), "keep").await;

    for revision in LEGACY {
        let mut peer = Peer::initialized(server.clone(), revision, json!({})).await;
        let counted = peer.call_tool("count", json!({ "cart": handle })).await;
        assert_eq!(text(&counted["result"]), "1 in it", "{revision}");
    }
}

#[tokio::test]
async fn handles_connect_stateless_http_requests() {
    let arguments = json!({ "item": "green tea", "seconds": 60 });
    let mut caller = HttpTestClient::new(server());
    caller.principal = Some(Principal::new("issuer", "ada"));

    let started = caller.modern_tool("begin", arguments).await.json().await;
    let handle = &started["result"]["structuredContent"]["cart"];
    // Another token of the same caller.
    let mut again = Principal::new("issuer", "ada");
    again.scopes.insert("more".to_owned());
    caller.principal = Some(again);
    let counted = caller.modern_tool("count", json!({ "cart": handle })).await;

    assert_eq!(text(&counted.json().await["result"]), "1 in it");
}

#[tokio::test(start_paused = true)]
async fn the_schema_describes_a_handle_as_opaque_text() {
    let mut peer = Peer::new(server());

    let listed = peer.call_modern("tools/list", json!({})).await;

    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(
        tool("count")["inputSchema"]["properties"]["cart"],
        json!({ "type": "string", "description": "The cart of an earlier call." })
    );
    let wishes = &tool("count_wishes")["inputSchema"]["properties"]["wishes"];
    assert_eq!(wishes["type"], "string");
    assert!(wishes["description"].is_string());
    assert_eq!(
        tool("begin")["outputSchema"]["properties"]["cart"]["type"],
        "string"
    );
    // Alone, a handle is plain text.
    assert_eq!(tool("seal").get("outputSchema"), None);
}

#[tokio::test(start_paused = true)]
async fn another_instance_resolves_a_handle_with_the_same_keys_and_store() {
    let store = Store::memory();
    let one = server().store(store.clone());
    let (sealed, kept) = {
        let mut peer = client_of(one, "ada");
        (
            begin(&mut peer, "seal").await,
            begin(&mut peer, "keep").await,
        )
    };
    let rotated = ["another secret, by now the first", KEYS[0]];

    let mut same = client_of(server().store(store.clone()), "ada");
    let mut other_store = client_of(server().state_keys(rotated), "ada");
    let mut other_keys = client_of(
        server()
            .store(store)
            .state_keys(["a key of this server only"]),
        "ada",
    );

    assert!(count(&mut same, &sealed).await.is_ok());
    assert!(count(&mut same, &kept).await.is_ok());
    assert!(count(&mut other_store, &sealed).await.is_ok());
    assert_eq!(
        count(&mut other_store, &kept).await,
        Err(START_AGAIN.to_owned())
    );
    assert_eq!(
        count(&mut other_keys, &sealed).await,
        Err(START_AGAIN.to_owned())
    );
    assert_eq!(
        count(&mut other_keys, &kept).await,
        Err(START_AGAIN.to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn every_invalid_handle_has_the_same_error() {
    req!("tools.state.handle");
    let store = Store::memory();
    let server = server().store(store.clone());
    for tool in ["seal", "keep"] {
        let mut ada = client_of(server.clone(), "ada");
        let handle = begin(&mut ada, tool).await;
        let mut altered = handle.clone().into_bytes();
        altered[40] = if altered[40] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).unwrap();
        let expired = call(&mut ada, tool, json!({ "item": "green tea", "seconds": 0 })).await;

        let mut responses = Vec::new();
        for cart in [
            altered,
            text(&expired),
            String::new(),
            "cart-1".to_owned(),
            "ä".to_owned(),
            handle[..handle.len() - 4].to_owned(),
            "A".repeat(1_000_000),
        ] {
            responses.push(count(&mut ada, &cart).await);
        }
        responses.push(count(&mut client_of(server.clone(), "bob"), &handle).await);
        responses.push(count(&mut Peer::new(server.clone()), &handle).await);
        let other_name = named("other").store(store.clone());
        responses.push(count(&mut client_of(other_name, "ada"), &handle).await);
        let other_type = call(&mut ada, "count_wishes", json!({ "wishes": handle })).await;
        assert_eq!(other_type["isError"], true);
        responses.push(Err(text(&other_type)));

        for response in responses {
            assert_eq!(response, Err(START_AGAIN.to_owned()), "{tool}");
        }
        assert!(count(&mut ada, &handle).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_value_expires() {
    let mut peer = Peer::new(server());
    let handle = begin(&mut peer, "keep").await;

    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(count(&mut peer, &handle).await.is_ok());
    tokio::time::advance(Duration::from_secs(2)).await;

    assert_eq!(count(&mut peer, &handle).await, Err(START_AGAIN.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_invalid_handle_in_a_prompt_is_an_invalid_params_error() {
    let mut peer = Peer::new(server());
    let handle = begin(&mut peer, "seal").await;
    let get = |cart: &str| json!({ "name": "ask", "arguments": { "cart": cart } });

    let good = peer.call_modern("prompts/get", get(&handle)).await;
    let bad = peer.call_modern("prompts/get", get("cart-1")).await;

    assert_eq!(good["result"]["messages"][0]["content"]["text"], "Count 1.");
    assert_eq!(bad["error"]["code"], -32602);
    assert_eq!(bad["error"]["message"], START_AGAIN);
}

#[tokio::test(start_paused = true)]
async fn a_large_value_can_be_stored() {
    let large = Tool::new("large", async |cx: Context| {
        let items = vec!["x".repeat(64 * 1024)];
        let cart = Cart { items };
        let sealed = cx.create_handle(&cart, HOUR).map(drop);
        assert!(matches!(sealed, Err(HandleError::TooLarge { .. })));
        assert!(
            sealed
                .unwrap_err()
                .to_string()
                .contains("Context::store_handle")
        );
        Ok(cx.store_handle(&cart, HOUR).await?)
    });
    let largest = Tool::new("largest", async |cx: Context| {
        let items = vec!["x".repeat(64 * 1024 - 100)];
        Ok(cx.create_handle(&Cart { items }, Duration::MAX)?)
    });
    let mut peer = Peer::new(server().tool(large).tool(largest));

    let kept = text(&call(&mut peer, "large", json!({})).await);
    let sealed = text(&call(&mut peer, "largest", json!({})).await);

    assert!(kept.len() < 300);
    assert!(count(&mut peer, &kept).await.is_ok());
    assert!(count(&mut peer, &sealed).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_oversized_handle_is_logged_and_hidden_from_the_model() {
    let large = Tool::new("large", async |cx: Context| {
        let items = vec!["x".repeat(100_000)];
        Ok(cx.create_handle(&Cart { items }, HOUR)?)
    });
    let mut peer = Peer::new(server().tool(large));

    let failed = call(&mut peer, "large", json!({})).await;

    assert_eq!(failed["isError"], true);
    assert!(text(&failed).contains("incident"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn one_caller_cannot_fill_the_store() {
    let mut limits = StoreLimits::default();
    limits.request_states.max_states_per_owner = 2;
    let server = server().store(Store::memory_with(limits));
    let mut ada = client_of(server.clone(), "ada");
    let mut bob = client_of(server, "bob");
    let cart = json!({ "item": "green tea", "seconds": 60 });

    begin(&mut ada, "keep").await;
    begin(&mut ada, "keep").await;
    let refused = call(&mut ada, "keep", cart.clone()).await;
    begin(&mut bob, "keep").await;
    tokio::time::advance(Duration::from_secs(61)).await;

    assert_eq!(refused["isError"], true);
    assert!(text(&refused).contains("try again later"), "{refused}");
    begin(&mut ada, "keep").await;
}
