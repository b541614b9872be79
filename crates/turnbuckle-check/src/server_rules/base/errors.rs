//! Error responses and their codes.

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
    .requirement("The server returns error -32601 for an unknown method.")
    .hint("Return error -32601 when no handler is registered for the method.")
    .active(|ctx| Box::pin(unknown_method(ctx))),
    Rule::server("base.parse-error", Area::Base, &["base.error.parse"])
        .requirement("The error for input that is not JSON has the code -32700.")
        .hint("Use the code -32700 for input that cannot be parsed.")
        .active(|ctx| Box::pin(parse_error(ctx))),
    Rule::server("base.parse-error-answered", Area::Base, &[])
        .requirement("The server returns an error for input that is not JSON.")
        .hint("Return error -32700 for input that cannot be parsed, instead of dropping it.")
        .active(|ctx| Box::pin(parse_error_answered(ctx))),
    Rule::server(
        "base.invalid-request",
        Area::Base,
        &["base.error.invalid-request"],
    )
    .requirement("The error for JSON that is not a valid request has the code -32600.")
    .hint("Use the code -32600 for a message with an id but without a string `method`.")
    .active(|ctx| Box::pin(invalid_request(ctx))),
    Rule::server("base.invalid-request-answered", Area::Base, &[])
        .requirement("The server returns an error for a message that has an id and is not a valid request.")
        .hint("Return error -32600 instead of dropping the message: its sender waits for a response.")
        .active(|ctx| Box::pin(invalid_request_answered(ctx))),
    Rule::server(
        "base.invalid-params",
        Area::Base,
        &["base.error.invalid-params"],
    )
    .requirement("The server returns error -32602 for a request without a required parameter.")
    .hint("Validate the parameters of each method, and return error -32602 if they are invalid.")
    .active(|ctx| Box::pin(invalid_params(ctx))),
    Rule::server(
        "base.reserved-codes",
        Area::Base,
        &["base.error.reserved-range-undefined"],
    )
    .requirement("The server uses codes from -32020 to -32099 only if the specification defines them.")
    .hint("Use custom error codes outside of -32768 to -32000.")
    .passive(reserved_codes),
    Rule::server(
        "base.retired-codes",
        Area::Base,
        &["base.error.retired-codes"],
    )
    .requirement("The server does not use the codes -32002 and -32042, which this revision retired.")
    .hint("Use -32602 for an unknown resource, and `input_required` for a URL elicitation.")
    .passive(retired_codes),
    Rule::server(
        "base.legacy-codes",
        Area::Base,
        &["base.error.legacy-range-avoid"],
    )
    .requirement("The server does not use codes from -32000 to -32019.")
    .hint("Use custom error codes outside of -32768 to -32000.")
    .passive(legacy_codes),
    Rule::server("base.own-codes", Area::Base, &["base.error.app-range"])
        .requirement("Custom error codes are outside of the range that JSON-RPC reserves.")
        .hint("Use custom error codes outside of -32768 to -32000.")
        .passive(own_codes),
    Rule::server(
        "base.code-meanings",
        Area::Base,
        &["base.error.reserved-range-meaning"],
    )
    .requirement("The server uses -32020 for HTTP headers only, and -32022 for unsupported versions only.")
    .hint("Use -32020 only for HTTP headers, and -32022 only if the version of the request is not supported.")
    .passive(code_meanings),
    Rule::server("base.short-errors", Area::Base, &["base.error.message-short"])
        .requirement("The message of an error is one short sentence.")
        .hint("Describe the error in one sentence, and put details into `data`.")
        .passive(short_errors),
];

/// The length from which the message of an error counts as long, in characters.
const MIN_LONG_MESSAGE: usize = 500;

async fn unknown_method(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let response = session
        .request("turnbuckle/no-such-method", json!({}))
        .await?;
    response.expect_error(&[-32601])
}

async fn parse_error(ctx: &CheckContext) -> Outcome {
    let outcome = send_invalid_json(ctx).await?;
    has_code(&outcome, &[-32700], "input that is not JSON")
}

async fn parse_error_answered(ctx: &CheckContext) -> Outcome {
    check_rejected(&send_invalid_json(ctx).await?)
}

async fn invalid_request(ctx: &CheckContext) -> Outcome {
    let outcome = send_invalid_request(ctx).await?;
    // A method that is not a string cannot be sent in a header, so the header is missing too.
    let codes: &[i64] = match outcome.status {
        Some(_) => &[-32600, -32020],
        None => &[-32600],
    };
    has_code(&outcome, codes, "an invalid request")
}

async fn invalid_request_answered(ctx: &CheckContext) -> Outcome {
    check_rejected(&send_invalid_request(ctx).await?)
}

async fn send_invalid_json(ctx: &CheckContext) -> Result<ProbeOutcome, NotPassed> {
    let session = ctx.session().await?;
    let text = r#"{"jsonrpc": "2.0", "id": "cut", "method": "#;
    ProbeOutcome::send(ctx, session, text, &[json!("cut")]).await
}

async fn send_invalid_request(ctx: &CheckContext) -> Result<ProbeOutcome, NotPassed> {
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

fn has_code(outcome: &ProbeOutcome, codes: &[i64], input: &str) -> Outcome {
    match outcome.error() {
        Some((number, code)) if codes.contains(&code) => {
            Evidence::from_entries([outcome.sent, number])
        }
        Some((number, code)) => {
            let observed = format!("error {code} instead of {} for {input}", codes[0]);
            Err(NotPassed::violation(observed, [outcome.sent, number]))
        }
        None => Err(NotPassed::not_tested(format!(
            "the server returned no JSON-RPC error for {input}"
        ))),
    }
}

fn check_rejected(outcome: &ProbeOutcome) -> Outcome {
    match (outcome.is_rejected(), outcome.status) {
        (true, _) => Evidence::from_entries(outcome.entries()),
        (false, Some(status)) => {
            let observed = format!("HTTP status {status} without an error");
            Err(NotPassed::violation(observed, outcome.entries()))
        }
        (false, None) => Err(NotPassed::violation("no response", outcome.entries())),
    }
}

async fn invalid_params(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let capabilities = session.capabilities();
    let requests = [
        ("tools", "tools/call", json!({ "arguments": {} })),
        ("prompts", "prompts/get", json!({ "arguments": {} })),
        ("resources", "resources/read", json!({})),
    ];
    let mut entries = Vec::new();
    for (capability, method, params) in requests {
        if capabilities.get(capability).is_some() {
            entries.extend(
                check_missing_parameter(session, method, params)
                    .await?
                    .entries,
            );
        }
    }
    if entries.is_empty() {
        Err(NotPassed::not_applicable(
            "the server declares neither tools nor prompts nor resources",
        ))
    } else {
        Evidence::from_entries(entries)
    }
}

async fn check_missing_parameter(session: &Session, method: &str, params: Value) -> Outcome {
    let id = format!("missing parameter of {method}");
    let request = session.request_builder.request(id, method, params);
    let pending = session.send_message(request, true).await?;
    let response = session.wait_response(pending).await?;
    // In the modern era, the name is missing in a header too.
    let codes: &[i64] = match (response.status, session.request_builder.has_handshake()) {
        (Some(_), false) => &[-32602, -32020],
        _ => &[-32602],
    };
    response
        .expect_error(codes)
        .map_err(|failure| failure.in_context(&format!("`{method}` without a name")))
}

fn reserved_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let defined = [-32020, -32021, -32022];
    // Another rule checks retired codes.
    let is_undefined =
        |code| (-32099..=-32020).contains(&code) && code != -32042 && !defined.contains(&code);
    check_no_code(transcript, is_undefined)
}

fn retired_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    check_no_code(transcript, |code| [-32002, -32042].contains(&code))
}

fn legacy_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    check_no_code(transcript, |code| {
        (-32019..=-32000).contains(&code) && code != -32002
    })
}

fn own_codes(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let standard = [-32700, -32600, -32601, -32602, -32603];
    check_no_code(transcript, |code| {
        (-32768..=-32100).contains(&code) && !standard.contains(&code)
    })
}

fn code_meanings(ctx: &CheckContext, transcript: &Transcript) -> Outcome {
    let is_supported = |request: Option<usize>| {
        let version = request.and_then(|request| version(transcript, request));
        version.is_some_and(|version| version == ctx.revision.as_str())
    };
    let errors = errors(transcript);
    for (request, number, error) in &errors {
        let observed = match error["code"].as_i64() {
            Some(-32020) if ctx.target.can_observe(Transports::Ndjson) => {
                "error -32020 on a transport without headers"
            }
            Some(-32022) if is_supported(*request) => "error -32022 for a supported version",
            _ => continue,
        };
        return Err(NotPassed::violation(
            observed,
            request.iter().chain([number]).copied(),
        ));
    }
    Evidence::from_entries(errors.iter().map(|(_, number, _)| *number).take(3))
}

fn short_errors(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut errors = errors(transcript);
    // The message may repeat deliberately invalid input.
    errors.retain(|(request, ..)| {
        request.is_some_and(|request| !transcript.entry(request).deliberately_invalid)
    });
    for (request, number, error) in &errors {
        let message = error["message"].as_str().unwrap_or_default();
        let observed = match message.chars().count() {
            long @ MIN_LONG_MESSAGE.. => format!("a message of {long} characters"),
            _ if message.trim_end().contains('\n') => "a message of several lines".to_owned(),
            _ => continue,
        };
        return Err(NotPassed::violation(
            observed,
            request.iter().chain([number]).copied(),
        ));
    }
    Evidence::from_entries(errors.iter().map(|(_, number, _)| *number).take(3))
}

/// Returns the version in `_meta` of a request.
fn version(transcript: &Transcript, request: usize) -> Option<Value> {
    let version = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
    transcript.entry(request).json()?.pointer(version).cloned()
}

/// Checks that no error in the transcript has a forbidden code.
///
/// Ignores requests without a version, which a server may process as an earlier revision.
fn check_no_code(transcript: &Transcript, is_forbidden: impl Fn(i64) -> bool) -> Outcome {
    let mut errors = errors(transcript);
    errors.retain(|(request, ..)| {
        request.is_some_and(|request| version(transcript, request).is_some())
    });
    for (request, number, error) in &errors {
        if let Some(code) = error["code"].as_i64().filter(|code| is_forbidden(*code)) {
            let observed = format!("error {code}");
            return Err(NotPassed::violation(
                observed,
                request.iter().chain([number]).copied(),
            ));
        }
    }
    Evidence::from_entries(errors.iter().map(|(_, number, _)| *number).take(3))
}

/// Returns all errors: the entry of the request, the entry of the error, and the error.
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
