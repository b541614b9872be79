//! Client requests of stateless calls: round trips.

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
use turnbuckle_protocol::{Principal, types::LogLevel};
use turnbuckle_server::{
    Context, Elicitation, Prompt, Resource, SamplingBuilder, Server, Tool, ndjson::NdjsonServer,
};
use turnbuckle_spec_coverage::req;
use turnbuckle_store::Store;

use crate::ndjson::test_client::{Peer, modern_with};

const SECRET: [&str; 1] = ["a secret of both instances"];

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Paper {
    title: String,
}

fn server(drafts: &Arc<AtomicUsize>) -> Server {
    let drafts = drafts.clone();
    let sign = Tool::new("sign", move |paper: Paper, cx: Context| {
        let drafts = drafts.clone();
        async move {
            cx.progress(1, 3).await;
            cx.log(LogLevel::Info, "asking for a name").await;
            let Some(name) = cx
                .elicit(Elicitation::form::<Name>("Who signs?").key("name"))
                .await?
                .accepted()
            else {
                return Ok("not signed".to_owned());
            };
            let draft = cx
                .once("draft", async || {
                    let number = drafts.fetch_add(1, Ordering::SeqCst) + 1;
                    Ok(format!("draft {number}"))
                })
                .await?;
            cx.progress(2, 3).await;
            cx.log(LogLevel::Info, "asking the model").await;
            let said = cx.sample("polish", SamplingBuilder::text(&draft)).await?;
            cx.progress(3, 3).await;
            Ok(format!(
                "{}: {draft} by {}, {}",
                paper.title, name.name, said.model
            ))
        }
    });
    Server::new("rounds", "1").tool(sign).state_keys(SECRET)
}

fn everything() -> Value {
    json!({ "elicitation": {}, "sampling": {}, "roots": {} })
}

/// Parameters of a call, with those of a retry.
fn round(state: Option<&Value>, responses: Value) -> Value {
    round_of(
        json!({ "name": "sign", "arguments": { "title": "Deed" } }),
        state,
        responses,
    )
}

fn round_of(mut params: Value, state: Option<&Value>, responses: Value) -> Value {
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    if !responses.is_null() {
        params["inputResponses"] = responses;
    }
    modern_with(params, everything())
}

fn ada() -> Value {
    json!({ "name": { "action": "accept", "content": { "name": "Ada" } } })
}

fn thought() -> Value {
    json!({ "polish": { "role": "assistant", "content": { "type": "text", "text": "Hm." }, "model": "m" } })
}

fn state(response: &Value) -> &Value {
    assert_eq!(
        response["result"]["resultType"], "input_required",
        "{response}"
    );
    &response["result"]["requestState"]
}

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_continues_over_several_round_trips() {
    req!(
        "mrtr.result.input-requests",
        "mrtr.result.request-state",
        "mrtr.input-request.shape",
        "mrtr.server.repeat",
        "mrtr.only-way",
        "elicitation.request.input-required",
        "base.server-no-requests",
        "stdio.server.no-requests"
    );
    let drafts = Arc::default();
    let mut peer = Peer::new(server(&drafts));

    let first = peer.call("tools/call", round(None, Value::Null)).await;
    let client_request = &first["result"]["inputRequests"]["name"];
    assert_eq!(client_request["method"], "elicitation/create");
    assert_eq!(client_request["params"]["message"], "Who signs?");
    assert_eq!(client_request.as_object().unwrap().len(), 2);

    let second = peer
        .call("tools/call", round(Some(state(&first)), ada()))
        .await;
    let client_request = &second["result"]["inputRequests"]["polish"];
    assert_eq!(client_request["method"], "sampling/createMessage");
    assert_eq!(
        client_request["params"]["messages"][0]["content"]["text"],
        "draft 1"
    );

    let last = peer
        .call("tools/call", round(Some(state(&second)), thought()))
        .await;
    assert_eq!(text(&last), "Deed: draft 1 by Ada, m");
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(
        drafts.load(Ordering::SeqCst),
        1,
        "what is done once is not repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn any_instance_with_the_key_continues_a_call() {
    req!("stateless.no-affinity", "stateless.no-prior-context");
    let (first_drafts, second_drafts) = (Arc::default(), Arc::default());
    let mut one = Peer::new(server(&first_drafts));
    let mut two = Peer::new(server(&second_drafts));

    let first = one.call("tools/call", round(None, Value::Null)).await;
    one.finish().await;
    let second = two
        .call("tools/call", round(Some(state(&first)), ada()))
        .await;
    let mut three = Peer::new(server(&first_drafts));
    let last = three
        .call("tools/call", round(Some(state(&second)), thought()))
        .await;

    assert_eq!(text(&last), "Deed: draft 1 by Ada, m");
    assert_eq!(first_drafts.load(Ordering::SeqCst), 0);
    assert_eq!(second_drafts.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn invalid_state_is_rejected() {
    req!(
        "mrtr.state.untrusted",
        "mrtr.state.integrity",
        "mrtr.state.reject",
        "mrtr.state.request-binding"
    );
    let drafts = Arc::default();
    let mut peer = Peer::new(server(&drafts));
    let first = peer.call("tools/call", round(None, Value::Null)).await;
    let given = state(&first).as_str().unwrap();
    let mut other_server = Peer::new(server(&drafts).state_keys(["quite another secret"]));

    let foreign = other_server
        .call("tools/call", round(Some(&json!(given)), ada()))
        .await;
    assert_eq!(foreign["error"]["code"], -32602);

    for at in [0, given.len() / 2, given.len() - 1] {
        let mut tampered: Vec<char> = given.chars().collect();
        tampered[at] = if tampered[at] == 'A' { 'B' } else { 'A' };
        let tampered: String = tampered.into_iter().collect();
        let response = peer
            .call("tools/call", round(Some(&json!(tampered)), ada()))
            .await;
        assert_eq!(response["error"]["code"], -32602, "byte {at}");
    }
    for nonsense in [json!(""), json!("x"), json!("ä"), json!(7), json!({})] {
        let response = peer.call("tools/call", round(Some(&nonsense), ada())).await;
        assert_eq!(response["error"]["code"], -32602, "{nonsense}");
    }
    let other = json!({ "name": "sign", "arguments": { "title": "Will" } });
    let response = peer
        .call("tools/call", round_of(other, Some(&json!(given)), ada()))
        .await;
    assert_eq!(response["error"]["code"], -32602, "another call");
}

#[tokio::test(start_paused = true)]
async fn the_same_arguments_in_another_order_are_the_same_call() {
    #[derive(Deserialize, JsonSchema)]
    struct Two {
        a: u8,
        b: u8,
    }
    let tool = Tool::new("two", async |two: Two, cx: Context| {
        cx.roots("roots").await?;
        Ok(format!("{}{}", two.a, two.b))
    });
    let mut peer = Peer::new(Server::new("s", "1").tool(tool));
    let first = json!({ "name": "two", "arguments": { "a": 1, "b": 2 } });
    let retry = json!({ "name": "two", "arguments": { "b": 2, "a": 1 } });

    let asked = peer
        .call("tools/call", round_of(first, None, Value::Null))
        .await;
    let roots = json!({ "roots": { "roots": [] } });
    let done = peer
        .call("tools/call", round_of(retry, Some(state(&asked)), roots))
        .await;

    assert_eq!(text(&done), "12");
}

#[tokio::test(start_paused = true)]
async fn state_of_another_principal_is_rejected() {
    req!(
        "mrtr.state.principal",
        "elicitation.bind",
        "security.handle.not-auth",
        "security.handle.random"
    );
    let drafts = Arc::default();
    let as_who = |who: &str| {
        Peer::with(NdjsonServer::new(server(&drafts)).principal(Principal::new("here", who)))
    };
    let (mut ada_peer, mut bob) = (as_who("ada"), as_who("bob"));
    let first = ada_peer.call("tools/call", round(None, Value::Null)).await;

    let stolen = bob
        .call("tools/call", round(Some(state(&first)), ada()))
        .await;
    let own = ada_peer
        .call("tools/call", round(Some(state(&first)), ada()))
        .await;

    assert_eq!(stolen["error"]["code"], -32602);
    assert!(state(&own).is_string());
    let again = ada_peer.call("tools/call", round(None, Value::Null)).await;
    assert_ne!(state(&first), state(&again), "the state is unpredictable");
}

#[tokio::test]
async fn state_expires() {
    req!("mrtr.state.ttl");
    let drafts = Arc::default();
    let mut peer = Peer::new(server(&drafts).state_lifetime(Duration::ZERO));
    let first = peer.call("tools/call", round(None, Value::Null)).await;
    // The system clock cannot be paused, and expiry has a resolution of seconds.
    tokio::time::sleep(Duration::from_millis(1_100)).await;

    let late = peer
        .call("tools/call", round(Some(state(&first)), ada()))
        .await;

    assert_eq!(late["error"]["code"], -32602);
    assert!(
        late["error"]["message"]
            .as_str()
            .unwrap()
            .contains("expired")
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_input_response_is_requested_again_and_an_unknown_one_ignored() {
    req!(
        "mrtr.error.reask",
        "mrtr.error.ignore-extra",
        "mrtr.server.no-assumption"
    );
    let mut peer = Peer::new(server(&Arc::default()));
    let first = peer.call("tools/call", round(None, Value::Null)).await;

    let again = peer
        .call(
            "tools/call",
            round(Some(state(&first)), json!({ "unknown": 7 })),
        )
        .await;

    assert_eq!(
        again["result"]["inputRequests"]["name"],
        first["result"]["inputRequests"]["name"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_input_response_without_request_state_is_accepted() {
    let mut peer = Peer::new(server(&Arc::default()));

    let response = peer.call("tools/call", round(None, ada())).await;

    assert!(
        response["result"]["inputRequests"]["polish"].is_object(),
        "{response}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_sealed_input_response_cannot_be_replaced() {
    let mut peer = Peer::new(server(&Arc::default()));
    let first = peer.call("tools/call", round(None, Value::Null)).await;
    let second = peer
        .call("tools/call", round(Some(state(&first)), ada()))
        .await;
    let mut responses = thought();
    responses["name"] = json!({ "action": "accept", "content": { "name": "Eve" } });

    let last = peer
        .call("tools/call", round(Some(state(&second)), responses))
        .await;

    assert_eq!(text(&last), "Deed: draft 1 by Ada, m");
}

#[tokio::test(start_paused = true)]
async fn mismatched_input_responses_are_a_request_error() {
    req!(
        "mrtr.error.validate",
        "mrtr.error.protocol",
        "elicitation.form.validate-server"
    );
    let mut peer = Peer::new(server(&Arc::default()));
    for responses in [
        json!([]),
        json!("x"),
        json!({ "name": 7 }),
        json!({ "name": { "action": "shrug" } }),
        json!({ "name": { "action": "accept", "content": { "name": 7 } } }),
    ] {
        let response = peer
            .call("tools/call", round(None, responses.clone()))
            .await;

        assert_eq!(response["error"]["code"], -32602, "{responses}");
    }
}

#[tokio::test(start_paused = true)]
async fn declining_is_an_elicitation_outcome() {
    req!("elicitation.result.no-assumption");
    let mut peer = Peer::new(server(&Arc::default()));

    let declined = json!({ "name": { "action": "decline" } });
    let response = peer.call("tools/call", round(None, declined)).await;

    assert_eq!(text(&response), "not signed");
}

#[tokio::test(start_paused = true)]
async fn messages_of_an_earlier_round_trip_are_not_repeated() {
    let mut peer = Peer::new(server(&Arc::default()));
    let loud = |mut params: Value| {
        params["_meta"]["progressToken"] = json!(1);
        params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        params
    };

    let mut shown = Vec::new();
    let mut params = round(None, Value::Null);
    for responses in [ada(), thought(), Value::Null] {
        let id = peer.request("tools/call", loud(params)).await;
        let response = loop {
            let message = peer.next().await;
            if message["id"] == id {
                break message;
            }
            let params = &message["params"];
            shown.push(
                params
                    .get("progress")
                    .or(params.get("data"))
                    .unwrap()
                    .to_string(),
            );
        };
        params = round(response["result"].get("requestState"), responses);
    }

    let progress = |value: &str| value.parse::<f64>().ok();
    assert_eq!(shown.len(), 5, "{shown:?}");
    assert_eq!(progress(&shown[0]), Some(1.0));
    assert_eq!(shown[1], r#""asking for a name""#);
    assert_eq!(progress(&shown[2]), Some(2.0));
    assert_eq!(shown[3], r#""asking the model""#);
    assert_eq!(progress(&shown[4]), Some(3.0));
}

#[tokio::test(start_paused = true)]
async fn concurrent_input_requests_share_one_round_trip() {
    let both = Tool::new("both", async |cx: Context| {
        let (first, second) =
            tokio::join!(cx.roots("a"), cx.sample("b", SamplingBuilder::text("?")));
        Ok(format!("{} {}", first?.len(), second?.model))
    });
    let mut peer = Peer::new(Server::new("s", "1").tool(both));
    let call = json!({ "name": "both", "arguments": {} });

    let asked = peer
        .call("tools/call", round_of(call.clone(), None, Value::Null))
        .await;
    assert_eq!(
        asked["result"]["inputRequests"].as_object().unwrap().len(),
        2
    );
    let responses = json!({ "a": { "roots": [] }, "b": thought()["polish"] });
    let done = peer
        .call("tools/call", round_of(call, Some(state(&asked)), responses))
        .await;

    assert_eq!(text(&done), "0 m");
}

#[tokio::test(start_paused = true)]
async fn a_changed_input_request_is_an_error_that_names_it() {
    let runs = Arc::new(AtomicUsize::new(0));
    let tool = Tool::new("fickle", move |cx: Context| {
        let run = runs.fetch_add(1, Ordering::SeqCst);
        async move {
            cx.sample("mood", SamplingBuilder::text(format!("question {run}")))
                .await?;
            Ok(String::new())
        }
    });
    let mut peer = Peer::new(Server::new("s", "1").tool(tool));
    let call = json!({ "name": "fickle", "arguments": {} });
    let asked = peer
        .call("tools/call", round_of(call.clone(), None, Value::Null))
        .await;

    let response = peer
        .call(
            "tools/call",
            round_of(
                call,
                Some(state(&asked)),
                json!({ "mood": thought()["polish"] }),
            ),
        )
        .await;

    assert_eq!(response["error"]["code"], -32603);
    assert!(
        response["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`mood`")
    );
}

#[tokio::test(start_paused = true)]
async fn an_open_input_request_does_not_complete_a_timeout_or_select() {
    let tool = Tool::new("hasty", async |cx: Context| {
        let roots = tokio::time::timeout(Duration::from_secs(1), cx.roots("roots")).await;
        Ok(format!("{:?}", roots.map(|roots| roots.is_ok()).ok()))
    });
    let mut peer = Peer::new(Server::new("s", "1").tool(tool));
    let call = json!({ "name": "hasty", "arguments": {} });

    let asked = peer
        .call("tools/call", round_of(call.clone(), None, Value::Null))
        .await;
    let roots = json!({ "roots": { "roots": [] } });
    let done = peer
        .call("tools/call", round_of(call, Some(state(&asked)), roots))
        .await;

    assert_eq!(text(&done), "Some(true)");
}

#[tokio::test(start_paused = true)]
async fn a_large_journal_is_stored_by_the_server() {
    req!("stateless.explicit-handle");
    let store = Store::memory();
    let instance = || {
        let tool = Tool::new("large", async |cx: Context| {
            let large = cx.once("large", async || Ok("x".repeat(100_000))).await?;
            let roots = cx.roots("roots").await?;
            Ok(format!("{} {}", large.len(), roots.len()))
        });
        Server::new("s", "1")
            .tool(tool)
            .store(store.clone())
            .state_keys(SECRET)
    };
    let call = json!({ "name": "large", "arguments": {} });
    let roots = json!({ "roots": { "roots": [] } });
    let mut one = Peer::new(instance());
    let asked = one
        .call("tools/call", round_of(call.clone(), None, Value::Null))
        .await;
    one.finish().await;
    assert!(state(&asked).as_str().unwrap().len() < 1_000);

    let mut two = Peer::new(instance());
    let done = two
        .call(
            "tools/call",
            round_of(call.clone(), Some(state(&asked)), roots.clone()),
        )
        .await;
    assert_eq!(text(&done), "100000 0");

    let mut elsewhere = Peer::new(instance().store(Store::memory()));
    let lost = elsewhere
        .call("tools/call", round_of(call, Some(state(&asked)), roots))
        .await;
    assert_eq!(lost["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_changed_tool_starts_over() {
    let version = |schema: Value| {
        let tool = Tool::raw("t", schema, async |_: Value, cx: Context| {
            cx.roots("first").await?;
            cx.roots("second").await?;
            Ok("done".to_owned())
        });
        Server::new("s", "1").tool(tool).state_keys(SECRET)
    };
    let call = json!({ "name": "t", "arguments": {} });
    let mut old = Peer::new(version(json!({ "type": "object" })));
    let asked = old
        .call("tools/call", round_of(call.clone(), None, Value::Null))
        .await;
    let first = json!({ "first": { "roots": [] } });
    let asked = old
        .call(
            "tools/call",
            round_of(call.clone(), Some(state(&asked)), first),
        )
        .await;
    assert!(asked["result"]["inputRequests"]["second"].is_object());

    let mut new = Peer::new(version(
        json!({ "type": "object", "properties": { "new": { "type": "string" } } }),
    ));
    let second = json!({ "second": { "roots": [] } });
    let again = new
        .call("tools/call", round_of(call, Some(state(&asked)), second))
        .await;

    assert!(
        again["result"]["inputRequests"]["first"].is_object(),
        "{again}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_undeclared_capability_is_an_error_that_names_it() {
    req!(
        "meta.capability.missing-error",
        "meta.capability.undeclared-not-used",
        "mrtr.result.capability"
    );
    let mut peer = Peer::new(server(&Arc::default()));
    let call = json!({ "name": "sign", "arguments": { "title": "Deed" } });

    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let response = peer
            .call("tools/call", modern_with(call.clone(), capabilities))
            .await;

        assert_eq!(response["error"]["code"], -32021);
        assert!(response["error"]["data"]["requiredCapabilities"]["elicitation"].is_object());
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_and_resources_send_client_requests() {
    req!("mrtr.methods.allowed");
    let prompt = Prompt::new("p", async |cx: Context| {
        Ok(format!("{} roots", cx.roots("roots").await?.len()))
    });
    let resource = Resource::new("note://r", "r", async |cx: Context| {
        Ok(format!("{} roots", cx.roots("roots").await?.len()))
    });
    let mut peer = Peer::new(Server::new("s", "1").prompt(prompt).resource(resource));
    let roots = json!({ "roots": { "roots": [] } });
    for (method, params, path) in [
        (
            "prompts/get",
            json!({ "name": "p" }),
            "/result/messages/0/content/text",
        ),
        (
            "resources/read",
            json!({ "uri": "note://r" }),
            "/result/contents/0/text",
        ),
    ] {
        let asked = peer
            .call(method, round_of(params.clone(), None, Value::Null))
            .await;
        let done = peer
            .call(method, round_of(params, Some(state(&asked)), roots.clone()))
            .await;

        assert_eq!(done.pointer(path), Some(&json!("0 roots")), "{done}");
    }
}
