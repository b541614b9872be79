//! Mutants of responses to server requests.

use http::Method;
use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::mutant::{Mutant, OutgoingMessage};

const LEGACY: Revision = Revision::V2025_11_25;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.asked.ping", "a ping with a result").map_sent(|outgoing| {
            if outgoing.method().is_empty() && outgoing.message["id"] == 7001 {
                outgoing.message["result"] = json!({ "pong": true });
            }
        }),
        Mutant::new("client.roots.files", "a root on the web")
            .for_requirement("roots.uri.file")
            .in_revision(LEGACY)
            .map_response_to("ask-roots", |message| {
                message["result"]["roots"][0]["uri"] = "https://example.com/".into();
            }),
        Mutant::new("client.roots.files", "no list of roots")
            .for_requirement("roots.list.shape")
            .in_revision(LEGACY)
            .map_response_to("ask-roots", |message| message["result"] = json!({})),
        Mutant::new("client.roots.files", "a root without a URI")
            .for_requirement("roots.list.shape")
            .in_revision(LEGACY)
            .map_response_to("ask-roots", |message| {
                message["result"]["roots"] = json!([{ "name": "files" }]);
            }),
        Mutant::new(
            "client.roots.files",
            "a root on the web, in an input response",
        )
        .for_requirement("roots.uri.file")
        .map_sent(|outgoing| {
            let place = "/params/inputResponses/ask-roots/roots/0/uri";
            if let Some(root) = outgoing.message.pointer_mut(place) {
                *root = "https://example.com/".into();
            }
        }),
        Mutant::new("client.roots.no-list-changed", "notifies of changed roots")
            .on_ndjson()
            .map_sent(|outgoing| {
                if outgoing.method() == "tools/list" {
                    let method = "notifications/roots/list_changed";
                    outgoing
                        .before
                        .push(json!({ "jsonrpc": "2.0", "method": method }));
                }
            }),
        Mutant::new("client.sampling.result", "no model in the result")
            .in_revision(LEGACY)
            .map_response_to("ask-model", |message| {
                message["result"]["model"] = Value::Null;
            }),
        Mutant::new("client.sampling.no-tools", "undeclared tools")
            .in_revision(LEGACY)
            .map_response_to("ask-tools", |message| {
                let content = json!({ "type": "text", "text": "Hello." });
                let result = json!({ "role": "assistant", "model": "parrot", "content": content });
                *message = json!({ "jsonrpc": "2.0", "id": "ask-tools", "result": result });
            }),
        Mutant::new("client.sampling.declared", "undeclared sampling").requests_input(
            "initialize",
            |message| {
                let capabilities = message["params"]["capabilities"].as_object_mut();
                capabilities.unwrap().remove("sampling");
            },
        ),
        Mutant::new("client.elicitation.action", "an unknown action")
            .in_revision(LEGACY)
            .map_response_to("ask-form", |message| {
                message["result"]["action"] = "reject".into();
            }),
        Mutant::new("client.elicitation.action", "content without consent")
            .in_revision(LEGACY)
            .map_response_to("ask-form", |message| {
                message["result"]["action"] = "decline".into();
            }),
        Mutant::new("client.elicitation.valid", "a name that is a number")
            .in_revision(LEGACY)
            .map_response_to("ask-form", |message| {
                message["result"]["content"]["name"] = 7.into();
            }),
        Mutant::new(
            "client.elicitation.form-by-default",
            "rejects a missing mode",
        )
        .in_revision(LEGACY)
        .map_response_to("ask-form", |message| reject(message, "ask-form")),
        Mutant::new(
            "client.elicitation.undeclared-mode",
            "undeclared URL elicitation",
        )
        .in_revision(LEGACY)
        .requests_input("initialize", |message| {
            message["params"]["capabilities"]["elicitation"] = json!({ "form": {} });
        }),
        Mutant::new("client.elicitation.no-prefetch", "fetches the URL first").requests(
            |outgoing_request| {
                let body: Value =
                    serde_json::from_slice(outgoing_request.request.body()).unwrap_or_default();
                if body["params"].get("inputResponses").is_some() {
                    outgoing_request.before = Some((Method::GET, "/visit"));
                }
            },
        ),
        Mutant::new("client.rounds.state", "trims the state")
            .for_requirement("mrtr.client.echo-state")
            .map_sent(|outgoing| {
                if let Some(Value::String(state)) =
                    outgoing.message.pointer_mut("/params/requestState")
                {
                    *state = state.trim().to_owned();
                }
            }),
        Mutant::new(
            "client.rounds.no-state",
            "the state of an earlier round trip",
        )
        .map_sent(|outgoing| {
            let Some(params) = answers(outgoing) else {
                return;
            };
            match params.get("requestState").cloned() {
                Some(state) => outgoing.state.message = Some(state),
                None => {
                    outgoing.message["params"]["requestState"] =
                        outgoing.state.message.clone().into();
                }
            }
        }),
        Mutant::new("client.rounds.new-id", "the id of the first round trip").map_sent(
            |outgoing| {
                if outgoing.method() == "tools/call" {
                    let first = outgoing.message["params"].get("inputResponses").is_none();
                    if first {
                        outgoing.state.message = Some(outgoing.message["id"].clone());
                    } else {
                        outgoing.message["id"] = outgoing.state.message.clone().into();
                    }
                }
            },
        ),
        Mutant::new("client.rounds.same-params", "other arguments").map_sent(|outgoing| {
            if answers(outgoing).is_some() {
                outgoing.message["params"]["arguments"] = json!({ "city": "Ulm" });
            }
        }),
        Mutant::new("client.rounds.answers", "input responses in envelopes")
            .for_requirement("mrtr.input-response.shape")
            .map_sent(|outgoing| {
                if let Some(answer) = outgoing
                    .message
                    .pointer_mut("/params/inputResponses/ask-model")
                {
                    *answer = json!({ "result": answer });
                }
            }),
        Mutant::new("client.rounds.scope", "the state in all requests").map_sent(|outgoing| {
            if outgoing.method() == "prompts/get" {
                outgoing.message["params"]["requestState"] = "x".into();
            }
        }),
    ]
}

fn reject(message: &mut Value, id: &str) {
    let error = json!({ "code": -32602, "message": "which mode?" });
    *message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
}

fn answers<'a>(outgoing: &'a OutgoingMessage<'_>) -> Option<&'a Value> {
    let params = outgoing.message.get("params")?;
    params.get("inputResponses").map(|_| params)
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
