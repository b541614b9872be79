//! Errors, and the codes that say which.

use serde_json::{Value, json};

use super::poke::Poked;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::Session;
use crate::tape::{Tape, Way};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "base.unknown-method",
        Area::Base,
        &["base.error.method-not-found"],
    )
    .says("A request for a method that is not there is answered with the error -32601.")
    .cure("Answer with the error -32601 when no handler has the name of the method.")
    .ask(|visit| Box::pin(unknown_method(visit))),
    Rule::server("base.parse-error", Area::Base, &["base.error.parse"])
        .says("The error for what is no JSON has the code -32700.")
        .cure("Use the code -32700 for input that cannot be parsed.")
        .ask(|visit| Box::pin(parse_error(visit))),
    Rule::server("base.parse-error-answered", Area::Base, &[])
        .says("What is no JSON is answered with an error, so that its sender learns of it.")
        .cure("Answer input that cannot be parsed with the error -32700 instead of dropping it.")
        .ask(|visit| Box::pin(parse_error_answered(visit))),
    Rule::server(
        "base.invalid-request",
        Area::Base,
        &["base.error.invalid-request"],
    )
    .says("The error for JSON that is no request has the code -32600.")
    .cure("Use the code -32600 for a message that has an id and no method that is a string.")
    .ask(|visit| Box::pin(invalid_request(visit))),
    Rule::server("base.invalid-request-answered", Area::Base, &[])
        .says("A message with an id that is no request is answered with an error.")
        .cure("Answer it with the error -32600 instead of dropping it: its sender waits.")
        .ask(|visit| Box::pin(invalid_request_answered(visit))),
    Rule::server(
        "base.invalid-params",
        Area::Base,
        &["base.error.invalid-params"],
    )
    .says("A request that lacks a required parameter is answered with the error -32602.")
    .cure("Validate the parameters of a method, and answer with the error -32602 if they do not fit.")
    .ask(|visit| Box::pin(invalid_params(visit))),
    Rule::server(
        "base.reserved-codes",
        Area::Base,
        &["base.error.reserved-range-undefined"],
    )
    .says("No error has a code from -32020 to -32099 that the specification does not define.")
    .cure("Choose codes of your own outside of -32768 to -32000.")
    .look(reserved_codes),
    Rule::server(
        "base.retired-codes",
        Area::Base,
        &["base.error.retired-codes"],
    )
    .says("No error has the code -32002 or -32042, which this revision has retired.")
    .cure("Use -32602 for a resource that is not there, and `input_required` to ask for a visit to a URL.")
    .look(retired_codes),
    Rule::server(
        "base.legacy-codes",
        Area::Base,
        &["base.error.legacy-range-avoid"],
    )
    .says("No error has a code from -32000 to -32019.")
    .cure("Choose codes of your own outside of -32768 to -32000.")
    .look(legacy_codes),
    Rule::server("base.own-codes", Area::Base, &["base.error.app-range"])
        .says("Codes of one's own are outside of what JSON-RPC reserves.")
        .cure("Choose codes of your own outside of -32768 to -32000.")
        .look(own_codes),
    Rule::server(
        "base.code-meanings",
        Area::Base,
        &["base.error.reserved-range-meaning"],
    )
    .says("The codes -32020 and -32022 are used for what they mean: headers, and versions that are not supported.")
    .cure("Use -32020 for headers of HTTP only, and -32022 only when you do not serve the version of the request.")
    .look(code_meanings),
    Rule::server("base.short-errors", Area::Base, &["base.error.message-short"])
        .says("The message of an error is one short sentence.")
        .cure("Say in a sentence what is wrong, and put the rest into `data`.")
        .look(short_errors),
];

/// The longest message of an error that counts as short.
const SHORT: usize = 500;

async fn unknown_method(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let answer = session.ask("turnbuckle/no-such-method", json!({})).await?;
    answer.expect_error(&[-32601])
}

async fn parse_error(visit: &Visit) -> Outcome {
    let poked = no_json(visit).await?;
    has_code(&poked, &[-32700], "what is no JSON")
}

async fn parse_error_answered(visit: &Visit) -> Outcome {
    refused(&no_json(visit).await?)
}

async fn invalid_request(visit: &Visit) -> Outcome {
    let poked = no_request(visit).await?;
    // A method that is no string cannot be said in a header, so a header is missing too.
    let codes: &[i64] = match poked.status {
        Some(_) => &[-32600, -32020],
        None => &[-32600],
    };
    has_code(&poked, codes, "what is no request")
}

async fn invalid_request_answered(visit: &Visit) -> Outcome {
    refused(&no_request(visit).await?)
}

async fn no_json(visit: &Visit) -> Result<Poked, Unmet> {
    let session = visit.session().await?;
    let text = r#"{"jsonrpc": "2.0", "id": "cut", "method": "#;
    Poked::with(visit, session, text, &[json!("cut")]).await
}

async fn no_request(visit: &Visit) -> Result<Poked, Unmet> {
    let session = visit.session().await?;
    let id = json!("no-method");
    let mut message = session
        .speech
        .request(id.clone(), session.speech.harmless(), Value::Null);
    message["method"] = json!(5);
    Poked::with(visit, session, &message.to_string(), &[id]).await
}

fn has_code(poked: &Poked, codes: &[i64], of: &str) -> Outcome {
    match poked.error() {
        Some((number, code)) if codes.contains(&code) => Seen::at([poked.sent, number]),
        Some((number, code)) => {
            let what = format!("the error {code} for {of} instead of {}", codes[0]);
            Err(Unmet::broken(what, [poked.sent, number]))
        }
        None => Err(Unmet::not_tested(format!(
            "{of} is not answered with an error of JSON-RPC"
        ))),
    }
}

fn refused(poked: &Poked) -> Outcome {
    match (poked.is_refused(), poked.status) {
        (true, _) => Seen::at(poked.entries()),
        (false, Some(status)) => {
            let what = format!("the status {status} and no error");
            Err(Unmet::broken(what, poked.entries()))
        }
        (false, None) => Err(Unmet::broken("no answer", poked.entries())),
    }
}

async fn invalid_params(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let capabilities = session.capabilities();
    let lacking = [
        ("tools", "tools/call", json!({ "arguments": {} })),
        ("prompts", "prompts/get", json!({ "arguments": {} })),
        ("resources", "resources/read", json!({})),
    ];
    let mut entries = Vec::new();
    for (capability, method, params) in lacking {
        if capabilities.get(capability).is_some() {
            entries.extend(lacks_parameter(session, method, params).await?.entries);
        }
    }
    match entries.is_empty() {
        true => Err(Unmet::not_applicable(
            "the server has neither tools nor prompts nor resources",
        )),
        false => Seen::at(entries),
    }
}

async fn lacks_parameter(session: &Session, method: &str, params: Value) -> Outcome {
    let id = format!("lacking {method}");
    let request = session.speech.request(id, method, params);
    let pending = session.send(request, true).await?;
    let answer = session.answer(pending).await?;
    // What the name would be is missing in a header too, where names stand in one.
    let codes: &[i64] = match (answer.status, session.speech.has_handshake()) {
        (Some(_), false) => &[-32602, -32020],
        _ => &[-32602],
    };
    answer
        .expect_error(codes)
        .map_err(|unmet| unmet.at(&format!("`{method}` without a name")))
}

fn reserved_codes(_: &Visit, tape: &Tape) -> Outcome {
    let defined = [-32020, -32021, -32022];
    // What is retired has a rule of its own.
    let odd =
        |code| (-32099..=-32020).contains(&code) && code != -32042 && !defined.contains(&code);
    no_error(tape, odd)
}

fn retired_codes(_: &Visit, tape: &Tape) -> Outcome {
    no_error(tape, |code| [-32002, -32042].contains(&code))
}

fn legacy_codes(_: &Visit, tape: &Tape) -> Outcome {
    no_error(tape, |code| {
        (-32019..=-32000).contains(&code) && code != -32002
    })
}

fn own_codes(_: &Visit, tape: &Tape) -> Outcome {
    let standard = [-32700, -32600, -32601, -32602, -32603];
    no_error(tape, |code| {
        (-32768..=-32100).contains(&code) && !standard.contains(&code)
    })
}

fn code_meanings(visit: &Visit, tape: &Tape) -> Outcome {
    let ours = |asked: Option<usize>| {
        let version = asked.and_then(|asked| version(tape, asked));
        version.is_some_and(|version| version == visit.revision.as_str())
    };
    let errors = errors(tape);
    for (asked, number, error) in &errors {
        let what = match error["code"].as_i64() {
            Some(-32020) if visit.target.shows(On::Lines) => {
                "the error -32020 where there are no headers"
            }
            Some(-32022) if ours(*asked) => "the error -32022 for a version that is supported",
            _ => continue,
        };
        return Err(Unmet::broken(what, asked.iter().chain([number]).copied()));
    }
    Seen::at(errors.iter().map(|(_, number, _)| *number).take(3))
}

fn short_errors(_: &Visit, tape: &Tape) -> Outcome {
    let mut errors = errors(tape);
    // What is odd on purpose may be repeated in the message.
    errors.retain(|(asked, ..)| asked.is_some_and(|asked| !tape.entry(asked).deliberate));
    for (asked, number, error) in &errors {
        let message = error["message"].as_str().unwrap_or_default();
        let what = match message.chars().count() {
            long @ SHORT.. => format!("a message of {long} characters"),
            _ if message.trim_end().contains('\n') => "a message of several lines".to_owned(),
            _ => continue,
        };
        return Err(Unmet::broken(what, asked.iter().chain([number]).copied()));
    }
    Seen::at(errors.iter().map(|(_, number, _)| *number).take(3))
}

/// Returns the version that a request says for itself, as it does where there is no handshake.
fn version(tape: &Tape, asked: usize) -> Option<Value> {
    let version = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
    tape.entry(asked).json()?.pointer(version).cloned()
}

/// Makes sure that no error on the tape has an odd code.
///
/// What does not say its version may be served as an earlier revision says, by those who serve one.
fn no_error(tape: &Tape, odd: impl Fn(i64) -> bool) -> Outcome {
    let mut errors = errors(tape);
    errors.retain(|(asked, ..)| asked.is_some_and(|asked| version(tape, asked).is_some()));
    for (asked, number, error) in &errors {
        if let Some(code) = error["code"].as_i64().filter(|code| odd(*code)) {
            let what = format!("the error {code}");
            return Err(Unmet::broken(what, asked.iter().chain([number]).copied()));
        }
    }
    Seen::at(errors.iter().map(|(_, number, _)| *number).take(3))
}

/// Returns all errors: what they answer, their entry and the error.
fn errors(tape: &Tape) -> Vec<(Option<usize>, usize, Value)> {
    let all = tape.all().into_iter().filter_map(|(number, entry)| {
        let message = entry.json().filter(|_| entry.way == Way::Received)?;
        let error = message.get("error").filter(|error| error.is_object())?;
        Some((entry.answers, number, error.clone()))
    });
    all.collect()
}
