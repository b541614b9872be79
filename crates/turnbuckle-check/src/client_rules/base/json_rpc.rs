//! JSON-RPC messages.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::{
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
    },
    mock_server::{
        Scenario,
        scenario::{PING, UNKNOWN, UNKNOWN_NOTIFICATION},
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns, check_each},
    },
    rule::{Area, Rule},
};

const NO_MESSAGES: &str = "the client sent no message";

pub(crate) const RULES: &[Rule] = &[
    Rule::client(
        "client.base.json-rpc",
        Area::Base,
        &["base.jsonrpc.conform", "base.jsonrpc.version-field"],
    )
    .requirement("Every message is a JSON-RPC 2.0 request, notification or response.")
    .hint("Set `\"jsonrpc\": \"2.0\"` in every message, with a `method`, a `result` or an `error`.")
    .scenarios(&[], json_rpc),
    Rule::client(
        "client.base.params-object",
        Area::Base,
        &["schema.message-valid"],
    )
    .requirement("`params` is an object or is omitted.")
    .hint("Send `params` as an object, never as an array; omit it if it is empty.")
    .scenarios(&[], params_object),
    Rule::client(
        "client.base.id-type",
        Area::Base,
        &["base.request.id-type", "base.request.id-not-null"],
    )
    .requirement("The id of a request is a string or an integer.")
    .hint("Use a counter or strings as request ids.")
    .scenarios(&[], id_type),
    Rule::client(
        "client.base.id-unique",
        Area::Base,
        &[
            "base.request.id-unique-session",
            "base.request.id-unique-inflight",
        ],
    )
    .requirement(
        "Request ids are unique: within a session, and since 2026-07-28 among requests in flight.",
    )
    .hint("Give every request a new id.")
    .scenarios(&[], id_unique),
    Rule::client(
        "client.base.notification-without-id",
        Area::Base,
        &["base.notification.no-id"],
    )
    .requirement("A notification does not have an id.")
    .hint("Omit `id` from messages with a method that starts with `notifications/`.")
    .scenarios(&[], notification_without_id),
    Rule::client(
        "client.base.no-batch",
        Area::Base,
        &[
            "base.batch.removed",
            "base.batch.no-initialize",
            "http.post.body-single",
            "http.post.body-single-modern",
        ],
    )
    .requirement(
        "Messages are not sent in batches; in 2025-03-26, `initialize` is not part of a batch.",
    )
    .hint("Send each message separately.")
    .scenarios(&[], no_batch),
    Rule::client(
        "client.base.batch-received",
        Area::Base,
        &["base.batch.receive"],
    )
    .requirement("A response in a batch is accepted.")
    .hint("In 2025-03-26, process each message of an array like a single message.")
    .scenarios(&[Scenario::Batches], batch_received),
    Rule::client(
        "client.base.same-id",
        Area::Base,
        &["base.response.same-id"],
    )
    .requirement("The id of a response equals the id of its request, including the type.")
    .hint("Return the id unchanged; do not convert numbers to strings.")
    .scenarios(&[Scenario::ServerRequests], same_id),
    Rule::client("client.base.one-of", Area::Base, &["base.response.one-of"])
        .requirement("A response has either a result or an error.")
        .hint(
            "Omit `error` from responses with a result, and `result` from responses with an error.",
        )
        .scenarios(&[Scenario::ServerRequests], one_of),
    Rule::client(
        "client.base.error-object",
        Area::Base,
        &["base.error.code-message", "base.error.code-integer"],
    )
    .requirement("An error has an integer `code` and a string `message`.")
    .hint("Set `code` and `message` in every error.")
    .scenarios(&[Scenario::ServerRequests], error_object),
    Rule::client(
        "client.base.unknown-method",
        Area::Base,
        &["base.error.method-not-found"],
    )
    .requirement("A request with an unknown method returns error -32601.")
    .hint("Return error -32601 when no handler is registered for the method.")
    .scenarios(&[Scenario::ServerRequests], unknown_method),
    Rule::client(
        "client.base.no-reply",
        Area::Base,
        &["base.notification.no-reply"],
    )
    .requirement("A notification, known or unknown, gets no response.")
    .hint("Ignore notifications without a handler.")
    .scenarios(&[Scenario::NotificationsFirst], no_reply),
    Rule::client(
        "client.base.no-responses",
        Area::Base,
        &[
            "base.client-no-responses",
            "http.post.no-responses",
            "stdio.client.no-responses",
        ],
    )
    .requirement("Since 2026-07-28, a client sends no responses.")
    .hint("Send input responses as `inputResponses` of the next request.")
    .scenarios(&[Scenario::NotificationsFirst], no_responses),
];

/// Returns an error in revisions without server requests.
pub(in crate::client_rules) fn require_server_requests(
    runs: &ScenarioRuns,
) -> Result<(), NotPassed> {
    if runs.revision.is_stateless() {
        Err(NotPassed::not_applicable(
            "servers send no requests in this revision",
        ))
    } else {
        Ok(())
    }
}

fn json_rpc(runs: &ScenarioRuns) -> Outcome {
    for (number, head, entry) in runs.all().flat_map(ScenarioRun::http_requests) {
        let message = head.start_line.starts_with("POST /mcp") && !entry.truncated;
        if message && entry.json().is_none() {
            return Err(NotPassed::violation("the body is not JSON", [number]));
        }
    }
    check_each(runs.messages(), NO_MESSAGES, |message| {
        let jsonrpc = &message.value["jsonrpc"];
        if jsonrpc != "2.0" {
            let observed = format!("`jsonrpc` is {jsonrpc}");
            return Some(("base.jsonrpc.version-field", observed));
        }
        let is_one =
            message.method().is_some() || (message.is_response() && message.id().is_some());
        (!is_one).then(|| {
            let observed = "the message is not a request, notification or response".to_owned();
            ("base.jsonrpc.conform", observed)
        })
    })
}

fn params_object(runs: &ScenarioRuns) -> Outcome {
    let with_method = runs.messages().filter(|message| message.method().is_some());
    check_each(with_method, NO_MESSAGES, |message| {
        let params = message.value.get("params")?;
        (!params.is_object()).then(|| format!("`params` is {params}"))
    })
}

fn id_type(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.requests(), NO_MESSAGES, |message| {
        let id = message.id()?;
        let is_valid = id.is_string() || id.is_i64() || id.is_u64();
        let requirement = if id.is_null() {
            "base.request.id-not-null"
        } else {
            "base.request.id-type"
        };
        (!is_valid).then(|| (requirement, format!("the id is {id}")))
    })
}

fn id_unique(runs: &ScenarioRuns) -> Outcome {
    let in_flight_only = runs.revision.is_stateless();
    let mut evidence = Vec::new();
    for run in runs.all() {
        // A repeated request after an interrupted stream is covered by another rule.
        if in_flight_only && run.scenario == Scenario::InterruptedStream {
            continue;
        }
        let mut earlier: Vec<&ClientMessage> = Vec::new();
        for message in run.requests() {
            let begins = message.method() == Some("initialize");
            // A new session resets the ids: after a lost one, or on another connection.
            if begins && !in_flight_only {
                earlier.clear();
            }
            let mut same = earlier.iter().filter(|other| message.is_same_server(other));
            let open = |other: &ClientMessage| {
                run.response_to(other)
                    .is_none_or(|(number, _)| number > message.number)
            };
            let duplicate =
                same.find(|other| other.id() == message.id() && (!in_flight_only || open(other)));
            if let Some(duplicate) = duplicate.filter(|_| message.id() != Some(&Value::Null)) {
                let observed = format!("two requests have the id {}", message.value["id"]);
                return Err(NotPassed::violation(
                    observed,
                    [duplicate.number, message.number],
                ));
            }
            if !run.is_http_rejected(message) {
                earlier.push(message);
            }
            if evidence.len() < 3 {
                evidence.push(message.number);
            }
        }
    }
    Evidence::from_entries(evidence)
}

fn notification_without_id(runs: &ScenarioRuns) -> Outcome {
    let notifications = runs.messages().filter(|message| message.is_notification());
    let mut evidence = Vec::new();
    for message in notifications {
        if let Some(id) = message.id() {
            let observed = format!("a notification has the id {id}");
            return Err(NotPassed::violation(observed, [message.number]));
        }
        evidence.push(message.number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "the client sends no notifications",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn no_batch(runs: &ScenarioRuns) -> Outcome {
    let allowed = runs.revision == Revision::V2025_03_26;
    let mut evidence = Vec::new();
    let entries = runs.all().flat_map(|run| &run.entries);
    for (number, entry) in entries.filter(|(_, entry)| entry.direction == Direction::Received) {
        let Some(message) = entry.json() else {
            continue;
        };
        if let Value::Array(batch) = &message {
            if !allowed {
                return Err(NotPassed::violation("the client sent a batch", [*number]));
            }
            if batch
                .iter()
                .any(|message| message["method"] == "initialize")
            {
                return Err(NotPassed::violation(
                    "`initialize` is in a batch",
                    [*number],
                ));
            }
        }
        if evidence.len() < 3 {
            evidence.push(*number);
        }
    }
    Evidence::from_entries(evidence)
}

fn batch_received(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::Batches)?;
    let id = PING.into();
    let Some(client_request) = run.request_entry(&id) else {
        return Err(NotPassed::not_tested("the client requested no list"));
    };
    match run.client_response(&id) {
        Some(reply) => Evidence::from_entries([client_request, reply.number]),
        None => {
            let observed = "a request in a batch gets no response";
            Err(NotPassed::violation(observed, [client_request]))
        }
    }
}

fn same_id(runs: &ScenarioRuns) -> Outcome {
    require_server_requests(runs)?;
    let mut evidence = Vec::new();
    for run in runs.all() {
        for message in run
            .messages()
            .iter()
            .filter(|message| message.is_response())
        {
            // Errors for unreadable messages lack an id; the mock server sends no such message.
            let Some(id) = message.id().filter(|id| !id.is_null()) else {
                continue;
            };
            if run.request_entry(id).is_none() {
                let observed = format!("no request was sent with the id {id}");
                return Err(NotPassed::violation(observed, [message.number]));
            }
            evidence.push(message.number);
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("the client sent no response"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn responses(runs: &ScenarioRuns) -> impl Iterator<Item = &ClientMessage> {
    let no_method =
        |message: &&ClientMessage| message.value.get("method").is_none() && message.id().is_some();
    runs.messages().filter(no_method)
}

fn one_of(runs: &ScenarioRuns) -> Outcome {
    require_server_requests(runs)?;
    check_each(responses(runs), "the client sent no response", |message| {
        let has = |name| message.value.get(name).is_some();
        (has("result") && has("error"))
            .then(|| "a response has both a result and an error".to_owned())
    })
}

fn error_object(runs: &ScenarioRuns) -> Outcome {
    require_server_requests(runs)?;
    let errors = responses(runs).filter(|message| message.value.get("error").is_some());
    check_each(errors, "the client returned no error", |message| {
        let error = &message.value["error"];
        let code = error["code"].is_i64() || error["code"].is_u64();
        let requirement = if !code && error.get("code").is_some() {
            "base.error.code-integer"
        } else {
            "base.error.code-message"
        };
        let is_valid = code && error["message"].is_string();
        (!is_valid).then(|| (requirement, format!("the error is {error}")))
    })
}

fn unknown_method(runs: &ScenarioRuns) -> Outcome {
    require_server_requests(runs)?;
    let run = runs.get(Scenario::ServerRequests)?;
    let id = UNKNOWN.into();
    let Some(client_request) = run.request_entry(&id) else {
        return Err(NotPassed::not_tested(
            "the client made no request during which the server could send one",
        ));
    };
    let Some(reply) = run.client_response(&id) else {
        if run.client_response(&PING.into()).is_none() {
            return Err(NotPassed::not_tested("the client sends no responses"));
        }
        return Err(match same_id(runs) {
            Err(NotPassed::Violation { observed, .. }) => NotPassed::not_tested(observed),
            _ => NotPassed::violation("no response", [client_request]),
        });
    };
    match &reply.value["error"]["code"] {
        code if code == -32601 => Evidence::from_entries([client_request, reply.number]),
        Value::Null => Err(NotPassed::violation(
            "a result instead of the error -32601",
            [client_request, reply.number],
        )),
        code if code.is_i64() => {
            let observed = format!("the error {code} instead of -32601");
            Err(NotPassed::violation(
                observed,
                [client_request, reply.number],
            ))
        }
        _ => Err(NotPassed::not_tested("the error lacks a code")),
    }
}

fn no_reply(runs: &ScenarioRuns) -> Outcome {
    if runs.revision.is_stateless() {
        return Err(NotPassed::not_applicable(
            "clients send no responses in this revision",
        ));
    }
    let run = runs.get(Scenario::NotificationsFirst)?;
    let notification = run.entries.iter().find(|(_, entry)| {
        entry.direction == Direction::Sent && entry.text.contains(UNKNOWN_NOTIFICATION)
    });
    let Some((notified_at, _)) = notification else {
        return Err(NotPassed::not_tested(
            "the client made no request during which the server could send a notification",
        ));
    };
    let replies = run
        .messages()
        .iter()
        .filter(|message| message.number > *notified_at);
    for message in replies {
        let responses = message.is_response() && message.id().is_none_or(Value::is_null);
        if responses {
            return Err(NotPassed::violation(
                "the client responded to a notification",
                [*notified_at, message.number],
            ));
        }
    }
    Evidence::from_entries([*notified_at])
}

fn no_responses(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.messages(), NO_MESSAGES, |message| {
        message
            .is_response()
            .then(|| "the client sent a response".to_owned())
    })
}
