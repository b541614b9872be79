//! Progress mutants.

use serde_json::{Value, json};

use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("progress.known-token", "a numeric token becomes a string").map_sent(
            |outgoing| {
                let token = outgoing.message.pointer_mut("/params/progressToken");
                if let Some(token) = token.filter(|token| token.is_number()) {
                    *token = token.to_string().into();
                }
            },
        ),
        Mutant::new("progress.known-token", "an unknown token")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_progress(outgoing) {
                    outgoing.message["params"]["progressToken"] = "made up".into();
                }
            }),
        Mutant::new("progress.known-token", "progress without a token")
            .on_ndjson()
            .map_sent(|outgoing| {
                let request = outgoing.request.as_ref().map(|request| &request["params"]);
                if request.is_some_and(|request| {
                    request["name"] == "count" && request["_meta"]["progressToken"].is_null()
                }) {
                    outgoing.before.push(progress(&json!(0), 1));
                }
            }),
        Mutant::new("progress.increases", "the same value twice").map_sent(|outgoing| {
            if is_progress(outgoing) {
                outgoing.message["params"]["progress"] = 1.into();
            }
        }),
        Mutant::new("progress.ends-with-answer", "progress after the response")
            .on_ndjson()
            .map_sent(|outgoing| {
                let request = outgoing.request.as_ref().map(|request| &request["params"]);
                let token = request
                    .filter(|request| request["name"] == "count")
                    .map(|request| &request["_meta"]["progressToken"]);
                if let Some(token) = token.filter(|token| !token.is_null()) {
                    outgoing.after.push(progress(token, 4));
                }
            }),
    ]
}

fn is_progress(outgoing: &OutgoingMessage) -> bool {
    outgoing.message["method"] == "notifications/progress"
}

fn progress(token: &Value, value: u8) -> Value {
    let params = json!({ "progressToken": token, "progress": value });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
