//! Odd things that somebody may send: the server stays there.

use serde_json::{Value, json};

use super::poke::Poked;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::Session;
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("robustness.odd-json", Area::Robustness, &[])
        .says("Odd JSON does no harm: deep nesting, names twice, numbers out of range, parameters of a wrong type.")
        .cure("Limit depth and catch what the parser throws; answer with an error and go on.")
        .ask(|visit| Box::pin(odd_json(visit))),
    Rule::server("robustness.long-text", Area::Robustness, &[])
        .says("A long text does no harm.")
        .cure("Accept messages up to a limit, refuse longer ones with an error, and go on.")
        .ask(|visit| Box::pin(long_text(visit))),
    Rule::server("robustness.odd-names", Area::Robustness, &[])
        .says("A call of a tool with an odd name is answered.")
        .cure("Look a name up as it is, and answer that there is no such tool.")
        .ask(|visit| Box::pin(odd_names(visit))),
    Rule::server("robustness.goes-on", Area::Robustness, &[])
        .says("After something that is no message the conversation goes on.")
        .cure("Answer with an error, or pass over it, and read the next message.")
        .ask(|visit| Box::pin(goes_on(visit))),
    Rule::server("robustness.odd-lines", Area::Robustness, &[])
        .says("Odd lines do no harm: empty ones, ends with a carriage return, bytes that are no UTF-8.")
        .cure("Pass over empty lines, accept `\\r\\n`, and answer other bytes with the error -32700.")
        .on(On::Lines)
        .ask(|visit| Box::pin(odd_lines(visit))),
    Rule::server("robustness.stray-response", Area::Robustness, &[])
        .says("A response that answers nothing is passed over.")
        .cure("Drop responses whose id you do not know, and send nothing back.")
        .on(On::Lines)
        .ask(|visit| Box::pin(stray_response(visit))),
];

/// The longest text that is sent: more than a pipe holds.
const LONG: usize = 128 * 1024;

/// How deep the nesting is that is sent.
const DEEP: usize = 1000;

async fn odd_json(visit: &Visit) -> Outcome {
    let session = conversation(visit).await?;
    let whole = |name: &'static str, odd: &str| {
        let method = session.speech.harmless();
        let params = json!({ "odd": "here" });
        let request = session.speech.request(name, method, params).to_string();
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
        let mut request = session.speech.request(name, "tools/list", json!({}));
        request["params"] = params;
        pokes.push((name, request.to_string()));
    }
    stays(visit, session, &pokes).await
}

async fn long_text(visit: &Visit) -> Outcome {
    let session = conversation(visit).await?;
    let name = "a long text";
    let params = json!({ "odd": "x".repeat(LONG) });
    let request = session
        .speech
        .request(name, session.speech.harmless(), params);
    stays(visit, session, &[(name, request.to_string())]).await
}

async fn odd_names(visit: &Visit) -> Outcome {
    visit.capability("/tools").await?;
    let session = conversation(visit).await?;
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
        let request = session.speech.request(name, "tools/call", params);
        let pending = session.send(request, true).await?;
        let shown: String = name.chars().take(20).collect();
        let answer = session
            .answer(pending)
            .await
            .map_err(|unmet| after(&format!("the name {shown:?}"), unmet))?;
        entries.extend(answer.entries());
    }
    Seen::at(entries)
}

async fn goes_on(visit: &Visit) -> Outcome {
    let session = conversation(visit).await?;
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
    stays(visit, session, &pokes).await
}

async fn odd_lines(visit: &Visit) -> Outcome {
    let session = visit.rough().await?;
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
        let written = session.line()?.write_bytes(bytes, true).await;
        let sent = written.map_err(|error| Unmet::not_tested(error.to_string()))?;
        let answer = session.ask(session.speech.harmless(), Value::Null).await;
        let answer = answer.map_err(|unmet| after(name, unmet))?;
        entries.extend([sent].into_iter().chain(answer.entries()));
    }
    let method = session.speech.harmless();
    let request = session
        .speech
        .request("carriage-return", method, Value::Null);
    let id = request.get("id").cloned();
    let pending = session
        .send_text(id, &format!("{request}\r"), Vec::new(), true)
        .await?;
    let answer = session.answer(pending).await;
    let answer = answer.map_err(|unmet| after("a line that ends with `\\r\\n`", unmet))?;
    entries.extend(answer.entries());
    Seen::at(entries)
}

async fn stray_response(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    if !session.speech.has_handshake() {
        return Err(Unmet::not_applicable("clients send no responses"));
    }
    let stray = json!({ "jsonrpc": "2.0", "id": "never-asked", "result": {} });
    let ids = [json!("never-asked")];
    let poked = Poked::with(visit, session, &stray.to_string(), &ids).await?;
    match (poked.replies.first(), &poked.after) {
        (Some((number, _)), _) => Err(Unmet::broken(
            "an answer to a response",
            [poked.sent, *number],
        )),
        (None, Err(unmet)) => Err(after("a response that answers nothing", unmet.clone())),
        (None, Ok(_)) => Seen::at(poked.entries()),
    }
}

/// Returns the shared conversation where every request has a connection of its own; else one that may break.
async fn conversation(visit: &Visit) -> Result<&Session, Unmet> {
    let shared = visit.session().await?;
    match shared.http() {
        Ok(_) => Ok(shared),
        Err(_) => visit.rough().await,
    }
}

/// Says odd things, one after the other, and makes sure that the server answers afterwards.
///
/// What has an id has its name for one.
async fn stays(visit: &Visit, session: &Session, pokes: &[(&str, String)]) -> Outcome {
    let mut entries = Vec::new();
    for (name, text) in pokes {
        let poked = Poked::with(visit, session, text, &[json!(name)]).await;
        let poked = poked.map_err(|unmet| after(name, unmet))?;
        if let Some(status @ 500..) = poked.status {
            let what = format!("the status {status} after {name}");
            return Err(Unmet::broken(what, poked.entries()));
        }
        match &poked.after {
            Ok(answer) => entries.extend([poked.sent].into_iter().chain(answer.entries())),
            Err(unmet) => return Err(after(name, unmet.clone())),
        }
    }
    Seen::at(entries)
}

fn after(name: &str, unmet: Unmet) -> Unmet {
    unmet.at(&format!("after {name}"))
}
