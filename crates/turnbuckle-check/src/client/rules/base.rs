//! Messages of JSON-RPC.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::client::Scene;
use crate::client::scene::{PING, UNHEARD_OF, UNKNOWN};
use crate::client::take::{Said, Take, Takes, every};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};
use crate::tape::Way;

const SILENT: &str = "the client said nothing";

pub(crate) const RULES: &[Rule] = &[
    Rule::client(
        "client.base.json-rpc",
        Area::Base,
        &["base.jsonrpc.conform", "base.jsonrpc.version-field"],
    )
    .says("Every message is one of JSON-RPC 2.0: a request, a notification or a response, and says so.")
    .cure("Write `\"jsonrpc\": \"2.0\"` into every message, and either a `method` or the answer to a request.")
    .watch(&[], json_rpc),
    Rule::client("client.base.params-object", Area::Base, &["schema.message-valid"])
        .says("`params` is an object, or is left out.")
        .cure("Send `params` as an object with named members, never as an array; leave it out where there are none.")
        .watch(&[], params_object),
    Rule::client(
        "client.base.id-type",
        Area::Base,
        &["base.request.id-type", "base.request.id-not-null"],
    )
    .says("The id of a request is a string or an integer.")
    .cure("Count requests with integers, or give them strings.")
    .watch(&[], id_type),
    Rule::client(
        "client.base.id-unique",
        Area::Base,
        &["base.request.id-unique-session", "base.request.id-unique-inflight"],
    )
    .says("No two requests have the same id: within a session, and since 2026-07-28 while one is not answered.")
    .cure("Give every request an id that none had before it.")
    .watch(&[], id_unique),
    Rule::client("client.base.notification-without-id", Area::Base, &["base.notification.no-id"])
        .says("A notification has no id.")
        .cure("Leave `id` out of messages whose method begins with `notifications/`.")
        .watch(&[], notification_without_id),
    Rule::client("client.base.no-batch", Area::Base, &[
        "base.batch.removed",
        "base.batch.no-initialize",
        "http.post.body-single",
        "http.post.body-single-modern",
    ])
    .says("Messages come one by one; only 2025-03-26 has batches, and `initialize` is in none.")
    .cure("Send each message on its own.")
    .watch(&[], no_batch),
    Rule::client("client.base.batch-received", Area::Base, &["base.batch.receive"])
        .says("An answer that comes in a batch is an answer.")
        .cure("In 2025-03-26, take an array apart and treat each of its messages as one that came alone.")
        .watch(&[Scene::Batched], batch_received),
    Rule::client("client.base.same-id", Area::Base, &["base.response.same-id"])
        .says("An answer has the id of a request, and the id has the same type.")
        .cure("Give the id of a request back as it came, and do not turn numbers into strings.")
        .watch(&[Scene::Asking], same_id),
    Rule::client("client.base.one-of", Area::Base, &["base.response.one-of"])
        .says("An answer has either a result or an error.")
        .cure("Leave `error` out of answers with a result, and `result` out of those with an error.")
        .watch(&[Scene::Asking], one_of),
    Rule::client("client.base.error-object", Area::Base, &[
        "base.error.code-message",
        "base.error.code-integer",
    ])
    .says("An error has a code that is an integer, and a message that is a string.")
    .cure("Give every error a `code` and a `message`.")
    .watch(&[Scene::Asking], error_object),
    Rule::client("client.base.unknown-method", Area::Base, &["base.error.method-not-found"])
        .says("A request for a method that the client does not know is answered with the error -32601.")
        .cure("Answer with the error -32601 when no handler has the name of the method.")
        .watch(&[Scene::Asking], unknown_method),
    Rule::client("client.base.no-reply", Area::Base, &["base.notification.no-reply"])
        .says("A notification is not answered, known or not.")
        .cure("Pass over notifications that nobody handles.")
        .watch(&[Scene::Chatty], no_reply),
    Rule::client("client.base.no-responses", Area::Base, &[
        "base.client-no-responses",
        "http.post.no-responses",
        "stdio.client.no-responses",
    ])
    .says("Since 2026-07-28 a client sends no responses: servers ask nothing.")
    .cure("Answer what a server asks by `inputResponses` of the next request.")
    .watch(&[Scene::Chatty], no_responses),
];

/// Returns why nothing can be seen of answers, where servers ask nothing.
pub(super) fn servers_ask(takes: &Takes) -> Result<(), Unmet> {
    match takes.revision >= Revision::MODERN {
        true => Err(Unmet::not_applicable(
            "servers ask nothing in this revision",
        )),
        false => Ok(()),
    }
}

fn json_rpc(takes: &Takes) -> Outcome {
    for (number, head, entry) in takes.all().flat_map(Take::exchanges) {
        let message = head.line.starts_with("POST /mcp") && !entry.cut;
        if message && entry.json().is_none() {
            return Err(Unmet::broken("the body is no JSON", [number]));
        }
    }
    every(takes.said(), SILENT, |said| {
        let message = &said.message;
        if message["jsonrpc"] != "2.0" {
            return Some(format!("`jsonrpc` is {}", message["jsonrpc"]));
        }
        let is_one = said.method().is_some() || (said.is_response() && said.id().is_some());
        (!is_one).then(|| "the message has neither a method nor an answer".to_owned())
    })
}

fn params_object(takes: &Takes) -> Outcome {
    let asking = takes.said().filter(|said| said.method().is_some());
    every(asking, SILENT, |said| {
        let params = said.message.get("params")?;
        (!params.is_object()).then(|| format!("`params` is {params}"))
    })
}

fn id_type(takes: &Takes) -> Outcome {
    every(takes.requests(), SILENT, |said| {
        let id = said.id()?;
        let right = id.is_string() || id.is_i64() || id.is_u64();
        (!right).then(|| format!("the id is {id}"))
    })
}

fn id_unique(takes: &Takes) -> Outcome {
    let in_flight_only = takes.revision >= Revision::MODERN;
    let mut evidence = Vec::new();
    for take in takes.all() {
        // Whoever makes a lost request again is judged by another rule.
        if in_flight_only && take.scene == Scene::Cut {
            continue;
        }
        let mut earlier: Vec<&Said> = Vec::new();
        for said in take.requests() {
            let begins = said.method() == Some("initialize");
            // A session of its own begins the count anew: after a lost one, or on another connection.
            if begins && !in_flight_only {
                earlier.clear();
            }
            let mut same = earlier.iter().filter(|other| said.is_beside(other));
            let open = |other: &Said| {
                take.answer(other)
                    .is_none_or(|(number, _)| number > said.number)
            };
            let twin =
                same.find(|other| other.id() == said.id() && (!in_flight_only || open(other)));
            if let Some(twin) = twin.filter(|_| said.id() != Some(&Value::Null)) {
                let what = format!("two requests have the id {}", said.message["id"]);
                return Err(Unmet::broken(what, [twin.number, said.number]));
            }
            if !take.is_refused(said) {
                earlier.push(said);
            }
            if evidence.len() < 3 {
                evidence.push(said.number);
            }
        }
    }
    Seen::at(evidence)
}

fn notification_without_id(takes: &Takes) -> Outcome {
    let notifications = takes.said().filter(|said| said.is_notification());
    let mut seen = Vec::new();
    for said in notifications {
        if let Some(id) = said.id() {
            let what = format!("a notification has the id {id}");
            return Err(Unmet::broken(what, [said.number]));
        }
        seen.push(said.number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("the client sends no notifications")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn no_batch(takes: &Takes) -> Outcome {
    let allowed = takes.revision == Revision::V2025_03_26;
    let mut seen = Vec::new();
    let entries = takes.all().flat_map(|take| &take.entries);
    for (number, entry) in entries.filter(|(_, entry)| entry.way == Way::Received) {
        let Some(message) = entry.json() else {
            continue;
        };
        if let Value::Array(batch) = &message {
            if !allowed {
                return Err(Unmet::broken("the client sent a batch", [*number]));
            }
            if batch
                .iter()
                .any(|message| message["method"] == "initialize")
            {
                return Err(Unmet::broken("`initialize` is in a batch", [*number]));
            }
        }
        if seen.len() < 3 {
            seen.push(*number);
        }
    }
    Seen::at(seen)
}

fn batch_received(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Batched)?;
    let id = PING.into();
    let Some(question) = take.question(&id) else {
        return Err(Unmet::not_tested("the client asked for no list"));
    };
    match take.reply(&id) {
        Some(reply) => Seen::at([question, reply.number]),
        None => {
            let what = "a request that came in a batch is not answered";
            Err(Unmet::broken(what, [question]))
        }
    }
}

fn same_id(takes: &Takes) -> Outcome {
    servers_ask(takes)?;
    let mut seen = Vec::new();
    for take in takes.all() {
        for said in take.said().iter().filter(|said| said.is_response()) {
            // Errors for what could not be read have no id, and no questions of ours are like that.
            let Some(id) = said.id().filter(|id| !id.is_null()) else {
                continue;
            };
            if take.question(id).is_none() {
                let what = format!("nobody has asked with the id {id}");
                return Err(Unmet::broken(what, [said.number]));
            }
            seen.push(said.number);
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("the client answered nothing")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

fn responses(takes: &Takes) -> impl Iterator<Item = &Said> {
    let no_method = |said: &&Said| said.message.get("method").is_none() && said.id().is_some();
    takes.said().filter(no_method)
}

fn one_of(takes: &Takes) -> Outcome {
    servers_ask(takes)?;
    every(responses(takes), "the client answered nothing", |said| {
        let has = |name| said.message.get(name).is_some();
        (has("result") && has("error"))
            .then(|| "an answer has both a result and an error".to_owned())
    })
}

fn error_object(takes: &Takes) -> Outcome {
    servers_ask(takes)?;
    let errors = responses(takes).filter(|said| said.message.get("error").is_some());
    every(errors, "the client answered with no error", |said| {
        let error = &said.message["error"];
        let code = error["code"].is_i64() || error["code"].is_u64();
        (!code || !error["message"].is_string()).then(|| format!("the error is {error}"))
    })
}

fn unknown_method(takes: &Takes) -> Outcome {
    servers_ask(takes)?;
    let take = takes.of(Scene::Asking)?;
    let id = UNKNOWN.into();
    let Some(question) = take.question(&id) else {
        return Err(Unmet::not_tested(
            "the client made no request during which it could be asked",
        ));
    };
    let Some(reply) = take.reply(&id) else {
        if take.reply(&PING.into()).is_none() {
            return Err(Unmet::not_tested("the client answers nothing"));
        }
        return Err(match same_id(takes) {
            Err(Unmet::Broken { what, .. }) => Unmet::not_tested(what),
            _ => Unmet::broken("the client did not answer", [question]),
        });
    };
    match &reply.message["error"]["code"] {
        code if code == -32601 => Seen::at([question, reply.number]),
        Value::Null => Err(Unmet::broken(
            "a result instead of the error -32601",
            [question, reply.number],
        )),
        code if code.is_i64() => {
            let what = format!("the error {code} instead of -32601");
            Err(Unmet::broken(what, [question, reply.number]))
        }
        _ => Err(Unmet::not_tested("the error has no code")),
    }
}

fn no_reply(takes: &Takes) -> Outcome {
    if takes.revision >= Revision::MODERN {
        return Err(Unmet::not_applicable(
            "clients answer nothing in this revision",
        ));
    }
    let take = takes.of(Scene::Chatty)?;
    let told = take
        .entries
        .iter()
        .find(|(_, entry)| entry.way == Way::Sent && entry.text.contains(UNHEARD_OF));
    let Some((told, _)) = told else {
        return Err(Unmet::not_tested(
            "the client made no request during which it could be told",
        ));
    };
    let replies = take.said().iter().filter(|said| said.number > *told);
    for said in replies {
        let answers = said.is_response() && said.id().is_none_or(Value::is_null);
        if answers {
            return Err(Unmet::broken(
                "the client answered a notification",
                [*told, said.number],
            ));
        }
    }
    Seen::at([*told])
}

fn no_responses(takes: &Takes) -> Outcome {
    every(takes.said(), SILENT, |said| {
        said.is_response()
            .then(|| "the client sent a response".to_owned())
    })
}
