//! Odd things that somebody may send: the server stays there.

use serde_json::{Value, json};

use super::malformed_input::ProbeOutcome;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    rule::{Area, Rule, Transports},
    session::Session,
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("robustness.odd-json", Area::Robustness, &[])
        .requirement("Odd JSON does no harm: deep nesting, names twice, numbers out of range, parameters of a wrong type.")
        .fix("Limit depth and catch what the parser throws; answer with an error and go on.")
        .active(|ctx| Box::pin(odd_json(ctx))),
    Rule::server("robustness.long-text", Area::Robustness, &[])
        .requirement("A long text does no harm.")
        .fix("Accept messages up to a limit, refuse longer ones with an error, and go on.")
        .active(|ctx| Box::pin(long_text(ctx))),
    Rule::server("robustness.odd-names", Area::Robustness, &[])
        .requirement("A call of a tool with an odd name is answered.")
        .fix("Look a name up as it is, and answer that there is no such tool.")
        .active(|ctx| Box::pin(odd_names(ctx))),
    Rule::server("robustness.goes-on", Area::Robustness, &[])
        .requirement("After something that is no message the conversation goes on.")
        .fix("Answer with an error, or pass over it, and read the next message.")
        .active(|ctx| Box::pin(goes_on(ctx))),
    Rule::server("robustness.odd-lines", Area::Robustness, &[])
        .requirement("Odd lines do no harm: empty ones, ends with a carriage return, bytes that are no UTF-8.")
        .fix("Pass over empty lines, accept `\\r\\n`, and answer other bytes with the error -32700.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(odd_lines(ctx))),
    Rule::server("robustness.stray-response", Area::Robustness, &[])
        .requirement("A response that answers nothing is passed over.")
        .fix("Drop responses whose id you do not know, and send nothing back.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(stray_response(ctx))),
];

/// The longest text that is sent: more than a pipe holds.
const LONG: usize = 128 * 1024;

/// How deep the nesting is that is sent.
const DEEP: usize = 1000;

async fn odd_json(ctx: &CheckContext) -> Outcome {
    let session = conversation(ctx).await?;
    let whole = |name: &'static str, odd: &str| {
        let method = session.request_builder.noop_method();
        let params = json!({ "odd": "here" });
        let request = session
            .request_builder
            .request(name, method, params)
            .to_string();
        (name, request.replace(r#""here""#, odd))
    };
    let nested = format!("{}{}", "[".repeat(DEEP), "]".repeat(DEEP));
    let mut pokes = vec![
        whole("deep nesting", &nested),
        whole("a number out of range", "1e999"),
        whole("a long integer", &"9".repeat(400)),
        whole("a name twice", r#"{"a":1,"a":2}"#),
        whole("half a character", r#""\ud800""#),
        whole("a NUL in a string", r#""\u0000""#),
    ];
    for (name, params) in [
        ("a list of parameters", json!([1, 2])),
        ("a number for parameters", json!(5)),
        ("a text for parameters", json!("text")),
    ] {
        let mut request = session
            .request_builder
            .request(name, "tools/list", json!({}));
        request["params"] = params;
        pokes.push((name, request.to_string()));
    }
    still_responds(ctx, session, &pokes).await
}

async fn long_text(ctx: &CheckContext) -> Outcome {
    let session = conversation(ctx).await?;
    let name = "a long text";
    let params = json!({ "odd": "x".repeat(LONG) });
    let request =
        session
            .request_builder
            .request(name, session.request_builder.noop_method(), params);
    still_responds(ctx, session, &[(name, request.to_string())]).await
}

async fn odd_names(ctx: &CheckContext) -> Outcome {
    ctx.capability("/tools").await?;
    let session = conversation(ctx).await?;
    let long = "n".repeat(10_000);
    let names = [
        "",
        "__proto__",
        "../../turnbuckle",
        "line\nbreak\u{0}\u{1b}[31m",
        "\u{202e}turned \u{1f600}\u{0301}",
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

async fn goes_on(ctx: &CheckContext) -> Outcome {
    let session = conversation(ctx).await?;
    let pokes = [
        ("what is no JSON", r#"{"jsonrpc": "2.0", "id": "#.to_owned()),
        ("a word", "hello".to_owned()),
        ("an empty object", "{}".to_owned()),
        ("an empty list", "[]".to_owned()),
        ("null", "null".to_owned()),
        (
            "an id that is an object",
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_owned(),
        ),
    ];
    still_responds(ctx, session, &pokes).await
}

async fn odd_lines(ctx: &CheckContext) -> Outcome {
    let session = ctx.scratch_session().await?;
    let odd: [(&str, &[u8]); 3] = [
        ("an empty line", b"\n"),
        ("a line of spaces", b"  \r\n"),
        (
            "bytes that are no UTF-8",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}\n",
        ),
    ];
    let mut entries = Vec::new();
    for (name, bytes) in odd {
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
        return Err(NotPassed::not_applicable("clients send no responses"));
    }
    let stray = json!({ "jsonrpc": "2.0", "id": "never-asked", "result": {} });
    let ids = [json!("never-asked")];
    let outcome = ProbeOutcome::send(ctx, session, &stray.to_string(), &ids).await?;
    match (outcome.replies.first(), &outcome.after) {
        (Some((number, _)), _) => Err(NotPassed::violation(
            "an answer to a response",
            [outcome.sent, *number],
        )),
        (None, Err(failure)) => Err(after("a response that answers nothing", failure.clone())),
        (None, Ok(_)) => Evidence::from_entries(outcome.entries()),
    }
}

/// Returns the shared conversation where every request has a connection of its own; else one that may break.
async fn conversation(ctx: &CheckContext) -> Result<&Session, NotPassed> {
    let shared = ctx.session().await?;
    match shared.http() {
        Ok(_) => Ok(shared),
        Err(_) => ctx.scratch_session().await,
    }
}

/// Says odd things, one after the other, and makes sure that the server answers afterwards.
///
/// What has an id has its name for one.
async fn still_responds(
    ctx: &CheckContext,
    session: &Session,
    pokes: &[(&str, String)],
) -> Outcome {
    let mut entries = Vec::new();
    for (name, text) in pokes {
        let outcome = ProbeOutcome::send(ctx, session, text, &[json!(name)]).await;
        let outcome = outcome.map_err(|failure| after(name, failure))?;
        if let Some(status @ 500..) = outcome.status {
            let observed = format!("the status {status} after {name}");
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
    failure.at(&format!("after {name}"))
}
