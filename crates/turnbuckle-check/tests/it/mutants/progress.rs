//! Progress of requests: not quite right.

use serde_json::{Value, json};

use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("progress.known-token", "a number comes back as a text").map_sent(|outgoing| {
            let token = outgoing.message.pointer_mut("/params/progressToken");
            if let Some(token) = token.filter(|token| token.is_number()) {
                *token = token.to_string().into();
            }
        }),
        Mutant::new("progress.known-token", "a token that nobody has given")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_progress(outgoing) {
                    outgoing.message["params"]["progressToken"] = "made up".into();
                }
            }),
        Mutant::new("progress.known-token", "progress that nobody asked for")
            .on_ndjson()
            .map_sent(|outgoing| {
                let asked = outgoing.request.as_ref().map(|asked| &asked["params"]);
                if asked.is_some_and(|asked| {
                    asked["name"] == "count" && asked["_meta"]["progressToken"].is_null()
                }) {
                    outgoing.before.push(progress(&json!(0), 1));
                }
            }),
        Mutant::new("progress.increases", "the same value again and again").map_sent(|outgoing| {
            if is_progress(outgoing) {
                outgoing.message["params"]["progress"] = 1.into();
            }
        }),
        Mutant::new(
            "progress.ends-with-answer",
            "a last report after the answer",
        )
        .on_ndjson()
        .map_sent(|outgoing| {
            let asked = outgoing.request.as_ref().map(|asked| &asked["params"]);
            let token = asked
                .filter(|asked| asked["name"] == "count")
                .map(|asked| &asked["_meta"]["progressToken"]);
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
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
