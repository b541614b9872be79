//! Calls that continue with any state and any responses: state that was not sealed for this very call is rejected.
//!
//! Three lines are a round trip: the name of a tool and its arguments, `requestState`, `inputResponses`, all as JSON with
//! marks. An empty line leaves its member out.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use turnbuckle_fuzz::{
    bounded, full_server,
    line_peer::{LinePeer, modern},
    marks::Marks,
};

fuzz_target!(|input: &str| bounded::run(run(input)));

/// A tool with its arguments, as they were written.
type Call = (String, String);

async fn run(input: &str) {
    let mut peer = LinePeer::new(full_server::server());
    let mut marks = Marks::default();
    let mut given: HashMap<String, Call> = HashMap::new();
    let mut lines = input.lines();
    while let Some(line) = lines.next() {
        let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
        let [state, responses] = [(); 2].map(|()| {
            let line = marks.fill(lines.next().unwrap_or_default().as_bytes());
            String::from_utf8(line).expect("text stays text")
        });

        let round = round(tool, arguments, &state, &responses);
        let messages = peer.send(round.as_bytes()).await;

        let call = (tool.to_owned(), arguments.to_owned());
        for message in &messages {
            if let Ok(Value::String(state)) = serde_json::from_str(&state) {
                check_response(given.get(&state), &call, message);
            }
            if let Some(state) = message["result"]["requestState"].as_str() {
                given.insert(state.to_owned(), call.clone());
            }
            marks.note_message(message);
        }
    }
    peer.finish().await;
}

/// The line of a request; its parts may be invalid JSON.
fn round(tool: &str, arguments: &str, state: &str, responses: &str) -> String {
    let name = Value::from(tool);
    let meta = &modern(Value::Object(Default::default()))["_meta"];
    let mut params = format!(r#""name":{name},"arguments":{arguments},"_meta":{meta}"#);
    for (member, json) in [("requestState", state), ("inputResponses", responses)] {
        if !json.is_empty() {
            params.push_str(&format!(r#","{member}":{json}"#));
        }
    }
    let request =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#);
    request.replace('\n', " ") + "\n"
}

fn check_response(given_for: Option<&Call>, call: &Call, message: &Value) {
    let Some(given_for) = given_for else {
        assert!(
            message.get("result").is_none(),
            "opened with foreign state: {message}"
        );
        return;
    };
    if given_for.0 != call.0 {
        assert!(
            message.get("result").is_none(),
            "opened for another tool: {message}"
        );
    }
    if given_for == call {
        let text = message["error"]["message"].as_str().unwrap_or_default();
        assert!(
            !text.contains("is not valid for this call"),
            "own state rejected: {message}"
        );
    }
}
