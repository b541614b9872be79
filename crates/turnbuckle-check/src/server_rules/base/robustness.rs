//! Robustness against unusual input.

use serde_json::{Value, json};

use super::malformed_input::ProbeOutcome;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
        transcript_query::messages,
    },
    rule::{Area, Rule, Transports},
    session::Session,
};

/// The id of the rule that reports the end of a server.
pub(crate) const STAYS_ALIVE: &str = "robustness.stays-alive";

pub(crate) const RULES: &[Rule] = &[
    Rule::server(STAYS_ALIVE, Area::Robustness, &[])
        .requirement("The server runs until its client ends the connection.")
        .hint("Catch the error that ended the server, and return it as the error of the request.")
        .warns()
        .passive(|_, transcript| stays_alive(transcript)),
    Rule::server("robustness.odd-json", Area::Robustness, &[])
        .requirement("The server survives unusual JSON: deep nesting, duplicate names, numbers out of range, parameters of a wrong type.")
        .hint("Limit the nesting depth and handle parser errors; return an error and continue.")
        .active(|ctx| Box::pin(unusual_json(ctx))),
    Rule::server("robustness.long-text", Area::Robustness, &[])
        .requirement("The server survives a long string.")
        .hint("Accept messages up to a limit, return an error for longer ones, and continue.")
        .active(|ctx| Box::pin(long_text(ctx))),
    Rule::server("robustness.odd-names", Area::Robustness, &[])
        .requirement("The server responds to a call of a tool with an unusual name.")
        .hint("Look up the name unchanged, and return an error for an unknown tool.")
        .active(|ctx| Box::pin(unusual_names(ctx))),
    Rule::server("robustness.goes-on", Area::Robustness, &[])
        .requirement("The server continues after input that is not a message.")
        .hint("Return an error or ignore the input, and read the next message.")
        .active(|ctx| Box::pin(continues(ctx))),
    Rule::server("robustness.odd-lines", Area::Robustness, &[])
        .requirement("The server survives unusual lines: empty lines, CRLF line endings, invalid UTF-8.")
        .hint("Ignore empty lines, accept CRLF line endings, and return error -32700 for invalid UTF-8.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(unusual_lines(ctx))),
    Rule::server("robustness.stray-response", Area::Robustness, &[])
        .requirement("The server ignores a response to an unknown request.")
        .hint("Drop responses with an unknown id, and send nothing back.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(stray_response(ctx))),
];

/// The length of the longest text: more than a pipe buffers.
const LONG_TEXT_LENGTH: usize = 128 * 1024;

/// The nesting depth of the deepest value.
const NESTING_DEPTH: usize = 1000;

/// Reports the end of the server, with the message before it.
pub(crate) fn stays_alive(transcript: &Transcript) -> Outcome {
    match transcript.server_end() {
        None => {
            let received = messages(transcript, Direction::Received);
            Evidence::from_entries(received.map(|message| message.at).last())
        }
        Some(end) if end.is_known => Err(NotPassed::not_tested(end.observed)),
        Some(end) => Err(NotPassed::violation(end.observed, end.entries)),
    }
}

async fn unusual_json(ctx: &CheckContext) -> Outcome {
    let session = session_for_probes(ctx).await?;
    let request_with = |name: &'static str, value: &str| {
        let method = session.request_builder.noop_method();
        let params = json!({ "unusual": "here" });
        let request = session
            .request_builder
            .request(name, method, params)
            .to_string();
        (name, request.replace(r#""here""#, value))
    };
    let nested = format!("{}{}", "[".repeat(NESTING_DEPTH), "]".repeat(NESTING_DEPTH));
    let mut inputs = vec![
        request_with("deep nesting", &nested),
        request_with("a number out of range", "1e999"),
        request_with("a long integer", &"9".repeat(400)),
        request_with("a duplicate name", r#"{"a":1,"a":2}"#),
        request_with("an unpaired surrogate", r#""\ud800""#),
        request_with("a NUL in a string", r#""\u0000""#),
    ];
    for (name, params) in [
        ("a list of parameters", json!([1, 2])),
        ("a number for parameters", json!(5)),
        ("a string for parameters", json!("text")),
    ] {
        let mut request = session
            .request_builder
            .request(name, "tools/list", json!({}));
        request["params"] = params;
        inputs.push((name, request.to_string()));
    }
    still_responds(ctx, session, &inputs).await
}

async fn long_text(ctx: &CheckContext) -> Outcome {
    let session = session_for_probes(ctx).await?;
    let name = "a long string";
    let params = json!({ "unusual": "x".repeat(LONG_TEXT_LENGTH) });
    let request =
        session
            .request_builder
            .request(name, session.request_builder.noop_method(), params);
    still_responds(ctx, session, &[(name, request.to_string())]).await
}

async fn unusual_names(ctx: &CheckContext) -> Outcome {
    ctx.capability("/tools").await?;
    let session = session_for_probes(ctx).await?;
    let long = "n".repeat(10_000);
    let names = [
        "",
        "__proto__",
        "../../turnbuckle",
        "line\nbreak\u{0}\u{1b}[31m",
        "\u{202e}reversed \u{1f600}\u{0301}",
        long.as_str(),
    ];
    let mut entries = Vec::new();
    for name in names {
        let params = json!({ "name": name, "arguments": {} });
        let request = session.request_builder.request(name, "tools/call", params);
        let pending = session.send_message(request, true).await?;
        let shown: String = name.chars().take(20).collect();
        let response = session
            .wait_response(pending)
            .await
            .map_err(|failure| after(&format!("the name {shown:?}"), failure))?;
        entries.extend(response.entries());
    }
    Evidence::from_entries(entries)
}

async fn continues(ctx: &CheckContext) -> Outcome {
    let session = session_for_probes(ctx).await?;
    let inputs = [
        (
            "input that is not JSON",
            r#"{"jsonrpc": "2.0", "id": "#.to_owned(),
        ),
        ("a word", "hello".to_owned()),
        ("an empty object", "{}".to_owned()),
        ("an empty list", "[]".to_owned()),
        ("null", "null".to_owned()),
        (
            "an id that is an object",
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(),
        ),
    ];
    still_responds(ctx, session, &inputs).await
}

async fn unusual_lines(ctx: &CheckContext) -> Outcome {
    let session = ctx.scratch_session().await?;
    let lines: [(&str, &[u8]); 3] = [
        ("an empty line", b"\n"),
        ("a line of spaces", b"  \r\n"),
        (
            "invalid UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}\n",
        ),
    ];
    let mut entries = Vec::new();
    for (name, bytes) in lines {
        let written = session.ndjson()?.write_bytes(bytes, true).await;
        let sent = written.map_err(|error| NotPassed::not_tested(error.to_string()))?;
        let response = session
            .request(session.request_builder.noop_method(), Value::Null)
            .await;
        let response = response.map_err(|failure| after(name, failure))?;
        entries.extend([sent].into_iter().chain(response.entries()));
    }
    let method = session.request_builder.noop_method();
    let request = session
        .request_builder
        .request("carriage-return", method, Value::Null);
    let id = request.get("id").cloned();
    let pending = session
        .send_text(id, &format!("{request}\r"), Vec::new(), true)
        .await?;
    let response = session.wait_response(pending).await;
    let response = response.map_err(|failure| after("a line that ends with `\\r\\n`", failure))?;
    entries.extend(response.entries());
    Evidence::from_entries(entries)
}

async fn stray_response(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    if !session.request_builder.has_handshake() {
        return Err(NotPassed::not_applicable(
            "clients send no responses in this revision",
        ));
    }
    let stray = json!({ "jsonrpc": "2.0", "id": "never-sent", "result": {} });
    let ids = [json!("never-sent")];
    let outcome = ProbeOutcome::send(ctx, session, &stray.to_string(), &ids).await?;
    match (outcome.replies.first(), &outcome.after) {
        (Some((number, _)), _) => Err(NotPassed::violation(
            "a response to a response",
            [outcome.sent, *number],
        )),
        (None, Err(failure)) => Err(after("a response to an unknown request", failure.clone())),
        (None, Ok(_)) => Evidence::from_entries(outcome.entries()),
    }
}

/// Returns the shared session on HTTP, where requests do not share a connection, or a session that may break.
async fn session_for_probes(ctx: &CheckContext) -> Result<&Session, NotPassed> {
    let shared = ctx.session().await?;
    match shared.http() {
        Ok(_) => Ok(shared),
        Err(_) => ctx.scratch_session().await,
    }
}

/// Sends the inputs one after the other, and checks that the server responds to a request after each.
///
/// The id of an input is its name.
async fn still_responds(
    ctx: &CheckContext,
    session: &Session,
    inputs: &[(&str, String)],
) -> Outcome {
    let mut entries = Vec::new();
    for (name, text) in inputs {
        let outcome = ProbeOutcome::send(ctx, session, text, &[json!(name)]).await;
        let outcome = outcome.map_err(|failure| after(name, failure))?;
        if let Some(status @ 500..) = outcome.status {
            let observed = format!("HTTP status {status} after {name}");
            return Err(NotPassed::violation(observed, outcome.entries()));
        }
        match &outcome.after {
            Ok(response) => entries.extend([outcome.sent].into_iter().chain(response.entries())),
            Err(failure) => return Err(after(name, failure.clone())),
        }
    }
    Evidence::from_entries(entries)
}

fn after(name: &str, failure: NotPassed) -> NotPassed {
    failure.in_context(&format!("after {name}"))
}
