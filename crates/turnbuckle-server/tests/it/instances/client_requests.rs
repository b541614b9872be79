//! Responses to client requests that arrive at another instance.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use turnbuckle_server::{Context, Elicitation, SamplingBuilder, Server, Tool};

use super::test_registry::TwoInstances;
use crate::http::test_client::{HttpTestClient, SESSIONS, Stream};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// A server with a tool for each kind of client request.
fn server() -> Server {
    let ask = Tool::new("ask", async |cx: Context| {
        let outcome = cx
            .elicit(Elicitation::form::<Name>("Who?").key("name"))
            .await?;
        let name = outcome.accepted().map(|it| it.name);
        Ok(name.unwrap_or_else(|| "declined".to_owned()))
    });
    let think = Tool::new("think", async |cx: Context| {
        let sample = cx.sample("thought", SamplingBuilder::text("Think!"));
        Ok(sample.await?.model)
    });
    let look = Tool::new("look", async |cx: Context| {
        let roots = cx.roots("roots").await?;
        Ok(roots[0].uri.to_string())
    });
    Server::new("test", "1.0.0")
        .tool(ask)
        .tool(think)
        .tool(look)
}

/// The name of a tool, the result of the client, and the text of the tool.
fn cases(revision: &str) -> Vec<(&'static str, Value, &'static str)> {
    let sample =
        json!({ "role": "assistant", "content": { "type": "text", "text": "hm" }, "model": "m-1" });
    let roots = json!({ "roots": [{ "uri": "file:///a", "name": "a" }] });
    let mut cases = vec![("think", sample, "m-1"), ("look", roots, "file:///a")];
    if revision != "2025-03-26" {
        let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
        cases.push(("ask", answer, "Ada"));
    }
    cases
}

fn response(client_request: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": client_request["id"], "result": result })
}

/// Calls a tool, and reads its client request.
async fn call(caller: &HttpTestClient, tool: &str) -> (Stream, Value) {
    let mut stream = caller.tool(1, tool, json!({})).await.stream();
    if caller.version.as_deref() == Some("2025-11-25") {
        stream.prime().await;
    }
    let client_request = stream.message().await.unwrap();
    assert!(client_request["method"].is_string(), "{client_request}");
    (stream, client_request)
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap()
}

async fn session(revision: &str) -> [HttpTestClient; 2] {
    let capabilities = json!({ "sampling": {}, "elicitation": {}, "roots": {} });
    let caller = HttpTestClient::of_two(server());
    let caller = caller.in_session_with(revision, capabilities).await;
    [caller.at(0), caller.at(1)]
}

#[tokio::test(start_paused = true)]
async fn a_response_reaches_the_instance_that_waits_for_it() {
    for revision in SESSIONS {
        let instances = session(revision).await;
        for (tool, result, expected) in cases(revision) {
            for (here, there) in [(0, 1), (1, 0)] {
                let (stream, client_request) = call(&instances[here], tool).await;

                let answer = response(&client_request, &result);
                let accepted = instances[there].post(&answer).await;

                assert_eq!(accepted.status(), 202);
                let rest = stream.messages().await;
                assert_eq!(text(&rest[0]), expected, "{revision} {tool}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_client_reaches_the_instance_that_waits_for_it() {
    let [here, there] = session("2025-11-25").await;
    let (stream, client_request) = call(&here, "ask").await;

    let error = json!({ "code": -1, "message": "the user is away" });
    let answer = json!({ "jsonrpc": "2.0", "id": client_request["id"], "error": error });
    assert_eq!(there.post(&answer).await.status(), 202);

    let rest = stream.messages().await;
    assert!(rest[0].to_string().contains("the user is away"), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_response_fails_the_call_at_the_other_instance() {
    let [here, there] = session("2025-11-25").await;
    let (stream, client_request) = call(&here, "ask").await;
    let answer = json!({
        "jsonrpc": "2.0", "id": client_request["id"],
        "result": 1, "error": { "code": 1, "message": "both" },
    });

    let rejected = there.post(&answer).await;

    assert_eq!(rejected.status(), 400);
    assert_eq!(rejected.json().await.get("id"), None);
    let rest = stream.messages().await;
    assert_eq!(rest[0]["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_request_with_the_time_as_id_gets_its_error() {
    let [_, there] = session("2025-11-25").await;
    // Looks like the id of a client request of the other instance: bit 40 is set, and the slot is 0.
    let id = json!(1_790_000_000_000_i64);

    let malformed = json!({ "jsonrpc": "2.0", "id": id, "params": {} });
    let rejected = there.post(&malformed).await;

    assert_eq!(rejected.status(), 400);
    assert_eq!(rejected.json().await["id"], id);
}

#[tokio::test(start_paused = true)]
async fn progress_at_the_other_instance_extends_the_timeout() {
    let [here, there] = session("2025-11-25").await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    for reports_progress in [true, false] {
        let (stream, client_request) = call(&here, "ask").await;
        let token = &client_request["params"]["_meta"]["progressToken"];
        let progress = json!({
            "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": 1 },
        });

        for _ in 0..3 {
            sleep(Duration::from_secs(40)).await;
            if reports_progress {
                assert_eq!(there.post(&progress).await.status(), 202);
            }
        }
        let accepted = there.post(&response(&client_request, &answer)).await;

        assert_eq!(accepted.status(), 202);
        let rest = stream.messages().await;
        let result = &rest.last().unwrap()["result"];
        assert_eq!(result["isError"] == true, !reports_progress, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_of_another_session_is_not_accepted_for_this_one() {
    let [here, there] = session("2025-11-25").await;
    let mut thief = there.clone();
    (thief.session, thief.version) = (None, None);
    let thief = thief.in_session("2025-11-25").await;
    let (stream, client_request) = call(&here, "ask").await;
    let name = |name: &str| json!({ "action": "accept", "content": { "name": name } });

    let foreign = response(&client_request, &name("Eve"));
    assert_eq!(thief.post(&foreign).await.status(), 202);
    sleep(Duration::from_secs(1)).await;
    let own = response(&client_request, &name("Ada"));
    assert_eq!(there.post(&own).await.status(), 202);

    assert_eq!(text(&stream.messages().await[0]), "Ada");
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_responses_reaches_the_other_instance() {
    let [here, there] = session("2025-03-26").await;
    let (first, think) = call(&here, "think").await;
    let mut second = here.tool(2, "look", json!({})).await.stream();
    let look = second.message().await.unwrap();
    let cases = cases("2025-03-26");

    let batch = json!([response(&think, &cases[0].1), response(&look, &cases[1].1)]);
    assert_eq!(there.post(&batch).await.status(), 202);

    assert_eq!(text(&first.messages().await[0]), "m-1");
    assert_eq!(text(&second.messages().await[0]), "file:///a");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_cannot_be_stored_is_not_accepted() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (stream, client_request) = call(&instances.second, "ask").await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = response(&client_request, &answer);

    instances.registry.cut_off();
    let rejected = instances.first.post(&answer).await;
    instances.registry.reconnect();
    let accepted = instances.first.post(&answer).await;

    assert_eq!(rejected.status(), 503);
    assert!(rejected.header("retry-after").is_some());
    assert_eq!(accepted.status(), 202);
    assert_eq!(text(&stream.messages().await[0]), "Ada");
}

#[tokio::test(start_paused = true)]
async fn a_client_request_fails_when_its_instance_has_joined_again() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (stream, _) = call(&instances.first, "ask").await;

    instances.registry.cut_off();
    sleep(Duration::from_secs(25)).await;
    instances.registry.reconnect();
    let rest = timeout(Duration::from_secs(5), stream.messages()).await;

    assert_eq!(instances.registry.joined().len(), 2);
    let rest = rest.expect("the call does not wait for its timeout");
    let result = &rest.last().unwrap()["result"];
    assert_eq!(result["isError"], true, "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_response_for_an_instance_that_has_stopped_is_accepted_and_dropped() {
    let instances = TwoInstances::new(server).in_session("2025-11-25").await;
    let (stream, client_request) = call(&instances.first, "ask").await;
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    // The second instance joins before the first one is lost.
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    assert_eq!(instances.second.post(&ping).await.status(), 200);

    instances.registry.cut_off();
    sleep(Duration::from_secs(16)).await;
    let answer = response(&client_request, &answer);
    let accepted = instances.second.post(&answer).await;

    assert_eq!(accepted.status(), 202);
    drop(stream);
}
