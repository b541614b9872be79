//! Errors, and the codes that say which.

use serde_json::{Value, json};

use super::malformed_input::ProbeOutcome;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
    },
    rule::{Area, Rule, Transports},
    session::Session,
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "base.unknown-method",
        Area::Base,
        &["base.error.method-not-found"],
    )
    .requirement("A request for a method that is not there is answered with the error -32601.")
    .fix("Answer with the error -32601 when no handler has the name of the method.")
    .active(|ctx| Box::pin(unknown_method(ctx))),
    Rule::server("base.parse-error", Area::Base, &["base.error.parse"])
        .requirement("The error for what is no JSON has the code -32700.")
        .fix("Use the code -32700 for input that cannot be parsed.")
        .active(|ctx| Box::pin(parse_error(ctx))),
    Rule::server("base.parse-error-answered", Area::Base, &[])
        .requirement("What is no JSON is answered with an error, so that its sender learns of it.")
        .fix("Answer input that cannot be parsed with the error -32700 instead of dropping it.")
        .active(|ctx| Box::pin(parse_error_answered(ctx))),
    Rule::server(
        "base.invalid-request",
        Area::Base,
        &["base.error.invalid-request"],
    )
    .requirement("The error for JSON that is no request has the code -32600.")
    .fix("Use the code -32600 for a message that has an id and no method that is a string.")
    .active(|ctx| Box::pin(invalid_request(ctx))),
    Rule::server("base.invalid-request-answered", Area::Base, &[])
        .requirement("A message with an id that is no request is answered with an error.")
        .fix("Answer it with the error -32600 instead of dropping it: its sender waits.")
        .active(|ctx| Box::pin(invalid_request_answered(ctx))),
    Rule::server(
        "base.invalid-params",
        Area::Base,
        &["base.error.invalid-params"],
    )
    .requirement("A request that lacks a required parameter is answered with the error -32602.")
    .fix("Validate the parameters of a method, and answer with the error -32602 if they do not fit.")
    .active(|ctx| Box::pin(invalid_params(ctx))),
    Rule::server(
        "base.reserved-codes",
        Area::Base,
        &["base.error.reserved-range-undefined"],
    )
    .requirement("No error has a code from -32020 to -32099 that the specification does not define.")
    .fix("Choose codes of your own outside of -32768 to -32000.")
    .passive(reserved_codes),
    Rule::server(
        "base.retired-codes",
        Area::Base,
        &["base.error.retired-codes"],
    )
    .requirement("No error has the code -32002 or -32042, which this revision has retired.")
    .fix("Use -32602 for a resource that is not there, and `input_required` to ask for a visit to a URL.")
    .passive(retired_codes),
    Rule::server(
        "base.legacy-codes",
        Area::Base,
        &["base.error.legacy-range-avoid"],
    )
    .requirement("No error has a code from -32000 to -32019.")
    .fix("Choose codes of your own outside of -32768 to -32000.")
    .passive(legacy_codes),
    Rule::server("base.own-codes", Area::Base, &["base.error.app-range"])
        .requirement("Codes of one's own are outside of what JSON-RPC reserves.")
        .fix("Choose codes of your own outside of -32768 to -32000.")
        .passive(own_codes),
    Rule::server(
        "base.code-meanings",
        Area::Base,
        &["base.error.reserved-range-meaning"],
    )
    .requirement("The codes -32020 and -32022 are used for what they mean: headers, and versions that are not supported.")
    .fix("Use -32020 for headers of HTTP only, and -32022 only when you do not serve the version of the request.")
    .passive(code_meanings),
    Rule::server("base.short-errors", Area::Base, &["base.error.message-short"])
        .requirement("The message of an error is one short sentence.")
        .fix("Say in a sentence what is wrong, and put the rest into `data`.")
        .passive(short_errors),
];

/// The longest message of an error that counts as short.
const SHORT: usize = 500;

async fn unknown_method(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let response = session
        .request("turnbuckle/no-such-method", json!({}))
        .await?;
    response.expect_error(&[-32601])
}

async fn parse_error(ctx: &CheckContext) -> Outcome {
    let outcome = no_json(ctx).await?;
    has_code(&outcome, &[-32700], "what is no JSON")
}

async fn parse_error_answered(ctx: &CheckContext) -> Outcome {
    refused(&no_json(ctx).await?)
}

async fn invalid_request(ctx: &CheckContext) -> Outcome {
    let outcome = no_request(ctx).await?;
    // A method that is no string cannot be said in a header, so a header is missing too.
    let codes: &[i64] = match outcome.status {
        Some(_) => &[-32600, -32020],
        None => &[-32600],
    };
    has_code(&outcome, codes, "what is no request")
}

async fn invalid_request_answered(ctx: &CheckContext) -> Outcome {
    refused(&no_request(ctx).await?)
}

async fn no_json(ctx: &CheckContext) -> Result<ProbeOutcome, NotPassed> {
    let session = ctx.session().await?;
    let text = r#"{"jsonrpc": "2.0", "id": "cut", "method": "#;
    ProbeOutcome::send(ctx, session, text, &[json!("cut")]).await
}

async fn no_request(ctx: &CheckContext) -> Result<ProbeOutcome, NotPassed> {
    let session = ctx.session().await?;
    let id = json!("no-method");
    let mut message = session.request_builder.request(
        id.clone(),
        session.request_builder.noop_method(),
        Value::Null,
    );
    message["method"] = json!(5);
    ProbeOutcome::send(ctx, session, &message.to_string(), &[id]).await
}

fn has_code(outcome: &ProbeOutcome, codes: &[i64], of: &str) -> Outcome {
    match outcome.error() {
        Some((number, code)) if codes.contains(&code) => {
            Evidence::from_entries([outcome.sent, number])
        }
        Some((number, code)) => {
            let observed = format!("the error {code} for {of} instead of {}", codes[0]);
            Err(NotPassed::violation(observed, [outcome.sent, number]))
        }
        None => Err(NotPassed::not_tested(format!(
            "{of} is not answered with an error of JSON-RPC"
        ))),
    }
}

fn refused(outcome: &ProbeOutcome) -> Outcome {
    match (outcome.is_refused(), outcome.status) {
        (true, _) => Evidence::from_entries(outcome.entries()),
        (false, Some(status)) => {
            let observed = format!("the status {status} and no error");
            Err(NotPassed::violation(observed, outcome.entries()))
        }
        (false, None) => Err(NotPassed::violation("no answer", outcome.entries())),
    }
}

async fn invalid_params(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
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
    if entries.is_empty() {
        Err(NotPassed::not_applicable(
            "the server has neither tools nor prompts nor resources",
        ))
    } else {
        Evidence::from_entries(entries)
    }
}

async fn lacks_parameter(session: &Session, method: &str, params: Value) -> Outcome {
    let id = format!("lacking {method}");
    let request = session.request_builder.request(id, method, params);
    let pending = session.send_message(request, true).await?;
    let response = session.wait_response(pending).await?;
    // What the name would be is missing in a header too, where names stand in one.
    let codes: &[i64] = match (response.status, session.request_builder.has_handshake()) {
        (Some(_), false) => &[-32602, -32020],
        _ => &[-32602],
    };
    response
        .expect_error(codes)
        .map_err(|failure| failure.at(&format!("`{method}` without a name")))
}

fn reserved_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let defined = [-32020, -32021, -32022];
    // What is retired has a rule of its own.
    let odd =
        |code| (-32099..=-32020).contains(&code) && code != -32042 && !defined.contains(&code);
    no_error(transcript, odd)
}

fn retired_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    no_error(transcript, |code| [-32002, -32042].contains(&code))
}

fn legacy_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    no_error(transcript, |code| {
        (-32019..=-32000).contains(&code) && code != -32002
    })
}

fn own_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let standard = [-32700, -32600, -32601, -32602, -32603];
    no_error(transcript, |code| {
        (-32768..=-32100).contains(&code) && !standard.contains(&code)
    })
}

fn code_meanings(ctx: &CheckContext, transcript: &Transcript) -> Outcome {
    let ours = |asked: Option<usize>| {
        let version = asked.and_then(|asked| version(transcript, asked));
        version.is_some_and(|version| version == ctx.revision.as_str())
    };
    let errors = errors(transcript);
    for (asked, number, error) in &errors {
        let observed = match error["code"].as_i64() {
            Some(-32020) if ctx.target.can_observe(Transports::Ndjson) => {
                "the error -32020 where there are no headers"
            }
            Some(-32022) if ours(*asked) => "the error -32022 for a version that is supported",
            _ => continue,
        };
        return Err(NotPassed::violation(
            observed,
            asked.iter().chain([number]).copied(),
        ));
    }
    Evidence::from_entries(errors.iter().map(|(_, number, _)| *number).take(3))
}

fn short_errors(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut errors = errors(transcript);
    // What is odd on purpose may be repeated in the message.
    errors.retain(|(asked, ..)| {
        asked.is_some_and(|asked| !transcript.entry(asked).deliberately_invalid)
    });
    for (asked, number, error) in &errors {
        let message = error["message"].as_str().unwrap_or_default();
        let observed = match message.chars().count() {
            long @ SHORT.. => format!("a message of {long} characters"),
            _ if message.trim_end().contains('\n') => "a message of several lines".to_owned(),
            _ => continue,
        };
        return Err(NotPassed::violation(
            observed,
            asked.iter().chain([number]).copied(),
        ));
    }
    Evidence::from_entries(errors.iter().map(|(_, number, _)| *number).take(3))
}

/// Returns the version that a request says for itself, as it does where there is no handshake.
fn version(transcript: &Transcript, asked: usize) -> Option<Value> {
    let version = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
    transcript.entry(asked).json()?.pointer(version).cloned()
}

/// Makes sure that no error on the tape has an odd code.
///
/// What does not say its version may be served as an earlier revision says, by those who serve one.
fn no_error(transcript: &Transcript, odd: impl Fn(i64) -> bool) -> Outcome {
    let mut errors = errors(transcript);
    errors.retain(|(asked, ..)| asked.is_some_and(|asked| version(transcript, asked).is_some()));
    for (asked, number, error) in &errors {
        if let Some(code) = error["code"].as_i64().filter(|code| odd(*code)) {
            let observed = format!("the error {code}");
            return Err(NotPassed::violation(
                observed,
                asked.iter().chain([number]).copied(),
            ));
        }
    }
    Evidence::from_entries(errors.iter().map(|(_, number, _)| *number).take(3))
}

/// Returns all errors: what they answer, their entry and the error.
fn errors(transcript: &Transcript) -> Vec<(Option<usize>, usize, Value)> {
    let all = transcript.all().into_iter().filter_map(|(number, entry)| {
        let message = entry
            .json()
            .filter(|_| entry.direction == Direction::Received)?;
        let error = message.get("error").filter(|error| error.is_object())?;
        Some((entry.response_to, number, error.clone()))
    });
    all.collect()
}
