//! What a client answers when a server asks: whether it is there, for its roots, its model, its user.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use super::base::servers_ask;
use crate::client::Scene;
use crate::client::scene::{FORM, MODEL, PING, ROOTS, TOOLS, UNDECLARED, VISIT};
use crate::client::take::{Said, Take, Takes, every};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.asked.ping", Area::Base, &["ping.respond"])
        .says("`ping` is answered at once, with an empty result.")
        .cure("Answer `ping` with `{}`, also while you wait for something.")
        .watch(&[Scene::Asking], ping),
    Rule::client("client.roots.files", Area::Roots, &["roots.uri.file", "roots.list.shape"])
        .says("Roots are a list of `file://` URIs.")
        .cure("Answer `roots/list` with `roots`, each with a `uri` that begins with `file://`.")
        .watch(&[Scene::Asking], roots),
    Rule::client("client.roots.no-list-changed", Area::Roots, &["roots.list-changed.removed"])
        .says("Since 2026-07-28 nobody is told that roots have changed.")
        .cure("Do not send `notifications/roots/list_changed`: servers ask when they want to know.")
        .watch(&[], no_list_changed),
    Rule::client("client.sampling.result", Area::Sampling, &["sampling.result.shape"])
        .says("A message of the model has a role, a content and the name of the model.")
        .cure("Answer `sampling/createMessage` with `role`, `content` and `model`, or with an error.")
        .watch(&[Scene::Asking], sampled),
    Rule::client("client.sampling.no-tools", Area::Sampling, &["sampling.tools.client-error"])
        .says("Whoever has not declared `sampling.tools` refuses to sample with tools.")
        .cure("Answer `sampling/createMessage` with an error when it has `tools` and you have not declared that you know them.")
        .watch(&[Scene::Asking], no_tools),
    Rule::client("client.sampling.declared", Area::Sampling, &["sampling.capability"])
        .says("A client that samples declares the capability `sampling`.")
        .cure("Put `sampling` into the capabilities of `initialize`, or refuse `sampling/createMessage` with an error.")
        .watch(&[Scene::Asking], sampling_declared),
    Rule::client("client.elicitation.action", Area::Elicitation, &["elicitation.result.actions"])
        .says("A user accepts, declines or cancels, and a form is only filled in when it is accepted.")
        .cure("Answer `elicitation/create` with the action `accept`, `decline` or `cancel`, and with `content` only for a form that was accepted.")
        .watch(&[Scene::Asking], action),
    Rule::client("client.elicitation.valid", Area::Elicitation, &[
        "elicitation.form.validate-client",
        "elicitation.validate-2025-06-18",
    ])
    .says("What a user has filled in fits the form.")
    .cure("Compare the content with `requestedSchema` before you send it.")
    .watch(&[Scene::Asking], valid),
    Rule::client("client.elicitation.form-by-default", Area::Elicitation, &["elicitation.request.mode-default"])
        .says("A question without a mode is a form.")
        .cure("Treat `elicitation/create` without `mode` as one with the mode `form`.")
        .watch(&[Scene::Asking], form_by_default),
    Rule::client("client.elicitation.undeclared-mode", Area::Elicitation, &["elicitation.mode.undeclared-error"])
        .says("A mode that was not declared is refused with the error -32602.")
        .cure("Answer `elicitation/create` with the error -32602 when its mode is not among those that you declare.")
        .on(On::Http)
        .watch(&[Scene::Asking], undeclared_mode),
    Rule::client("client.elicitation.no-prefetch", Area::Elicitation, &["elicitation.url.no-prefetch"])
        .says("Nobody fetches a URL before the user agrees to visit it.")
        .cure("Leave the URL of `elicitation/create` alone until the user has seen it and agreed.")
        .on(On::Http)
        .watch(&[Scene::Asking], no_prefetch),
];

const NEVER: &str = "the client made no request during which it could be asked";
const NO_CALL: &str = "the client called no tool";

/// An answer to a question of ours, whichever way it came.
struct Answered<'a> {
    /// The entries that show it.
    entries: Vec<usize>,
    /// The result, or null.
    result: &'a Value,
    /// The error, or null.
    error: &'a Value,
}

/// Finds the answer to a question that the client was asked as one that declares it.
fn answered<'a>(takes: &'a Takes, key: &str, capability: &str) -> Result<Answered<'a>, Unmet> {
    let take = takes.of(Scene::Asking)?;
    if !declares(take, capability) {
        let why = format!("the client does not declare `{capability}`");
        return Err(Unmet::not_applicable(why));
    }
    let missing = || match take.asked("tools/call").next() {
        None => Unmet::not_tested(NO_CALL),
        Some(_) => Unmet::not_tested("the client gave no answer in time"),
    };
    if takes.revision >= Revision::MODERN {
        let answers = |said: &&Said| said.params()["inputResponses"].get(key).is_some();
        let said = take.requests().find(answers).ok_or_else(missing)?;
        let result = &said.params()["inputResponses"][key];
        if result.get("result").is_some() {
            return Err(Unmet::not_tested("the answer has an envelope"));
        }
        return Ok(Answered {
            entries: vec![said.number],
            result,
            error: &Value::Null,
        });
    }
    let id = json!(key);
    let question = take.question(&id).ok_or_else(missing)?;
    let reply = take.reply(&id).ok_or_else(missing)?;
    Ok(Answered {
        entries: vec![question, reply.number],
        result: &reply.message["result"],
        error: &reply.message["error"],
    })
}

/// Says whether the client declares a capability.
fn declares(take: &Take, capability: &str) -> bool {
    let pointer = format!("/{}", capability.replace('.', "/"));
    let hello = take.asked("initialize").last();
    let capabilities = match hello {
        Some(hello) => Some(&hello.params()["capabilities"]),
        None => take
            .requests()
            .find_map(|said| said.meta("clientCapabilities")),
    };
    capabilities.is_some_and(|all| all.pointer(&pointer).is_some())
}

impl Answered<'_> {
    fn seen(self) -> Outcome {
        Seen::at(self.entries)
    }

    fn broken(self, what: impl Into<String>) -> Outcome {
        Err(Unmet::broken(what, self.entries))
    }

    /// Makes sure that it is a result.
    fn given(self) -> Result<Self, Unmet> {
        match self.error.is_null() {
            true => Ok(self),
            false => {
                let why = format!("the client refused: {}", self.error["message"]);
                Err(Unmet::not_tested(why))
            }
        }
    }
}

fn ping(takes: &Takes) -> Outcome {
    servers_ask(takes)?;
    let take = takes.of(Scene::Asking)?;
    let id = json!(PING);
    let question = take.question(&id).ok_or_else(|| Unmet::not_tested(NEVER))?;
    let stray =
        |said: &Said| said.is_response() && said.id().is_some_and(|id| take.question(id).is_none());
    match take.reply(&id) {
        Some(reply)
            if reply.message["result"]
                .as_object()
                .is_some_and(|result| result.keys().all(|key| key == "_meta")) =>
        {
            Seen::at([question, reply.number])
        }
        Some(reply) => Err(Unmet::broken(
            "the answer is no empty result",
            [question, reply.number],
        )),
        None if take.said().iter().any(stray) => Err(Unmet::not_tested(
            "the client answered with an id of its own",
        )),
        None => Err(Unmet::broken("no answer", [question])),
    }
}

fn roots(takes: &Takes) -> Outcome {
    let answered = answered(takes, ROOTS, "roots")?.given()?;
    let Some(roots) = answered.result["roots"].as_array() else {
        return answered.broken("there is no list of roots");
    };
    let file = |root: &&Value| {
        root["uri"]
            .as_str()
            .is_some_and(|uri| uri.starts_with("file://"))
    };
    match roots.iter().find(|root| !file(root)) {
        Some(root) => {
            let what = format!("a root is {}", root["uri"]);
            answered.broken(what)
        }
        None => answered.seen(),
    }
}

fn no_list_changed(takes: &Takes) -> Outcome {
    every(takes.said(), "the client said nothing", |said| {
        let told = said.method() == Some("notifications/roots/list_changed");
        told.then(|| "`notifications/roots/list_changed`".to_owned())
    })
}

fn sampled(takes: &Takes) -> Outcome {
    let answered = answered(takes, MODEL, "sampling")?.given()?;
    let result = answered.result;
    let right = ["user", "assistant"]
        .iter()
        .any(|role| result["role"] == *role)
        && (result["content"].is_object() || result["content"].is_array())
        && result["model"].is_string();
    match right {
        true => answered.seen(),
        false => {
            let what = format!("the message is {result}");
            answered.broken(what)
        }
    }
}

fn sampling_declared(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Asking)?;
    let declared = declares(take, "sampling");
    let id = json!(if declared { MODEL } else { UNDECLARED });
    let Some(question) = take.question(&id) else {
        return Err(Unmet::not_tested(NO_CALL));
    };
    let Some(reply) = take.reply(&id) else {
        return Err(Unmet::not_tested("the client gave no answer"));
    };
    let sampled = reply.message.get("result").is_some();
    match sampled && !declared {
        true => Err(Unmet::broken(
            "the client samples, and does not declare `sampling`",
            [question, reply.number],
        )),
        false => Seen::at([question, reply.number]),
    }
}

fn no_tools(takes: &Takes) -> Outcome {
    if takes.revision >= Revision::MODERN {
        return Err(Unmet::not_applicable(
            "servers ask only for what is declared in this revision",
        ));
    }
    if declares(takes.of(Scene::Asking)?, "sampling.tools") {
        return Err(Unmet::not_applicable(
            "the client declares `sampling.tools`",
        ));
    }
    let answered = answered(takes, TOOLS, "sampling")?;
    match answered.error.is_null() {
        true => answered.broken("the client sampled with tools that it says it does not know"),
        false => answered.seen(),
    }
}

fn action(takes: &Takes) -> Outcome {
    let answered = answered(takes, FORM, "elicitation")?.given()?;
    let result = answered.result;
    let action = result["action"].as_str().unwrap_or_default();
    if !["accept", "decline", "cancel"].contains(&action) {
        let what = format!("the action is {}", result["action"]);
        return answered.broken(what);
    }
    // That it is left out is only typical; but what was filled in is not to go along.
    let filled = match &result["content"] {
        Value::Null => false,
        Value::Object(content) => !content.is_empty(),
        _ => true,
    };
    match action != "accept" && filled {
        true => answered.broken(format!(
            "there is content although the action is `{action}`"
        )),
        false => answered.seen(),
    }
}

fn valid(takes: &Takes) -> Outcome {
    let answered = answered(takes, FORM, "elicitation")?.given()?;
    let result = answered.result;
    if result["action"] != "accept" {
        return Err(Unmet::not_tested("the client did not fill the form in"));
    }
    match result["content"]["name"].as_str() {
        Some(name) if !name.is_empty() => answered.seen(),
        _ => {
            let what = format!(
                "`name` is to be a string that is not empty, and the content is {}",
                result["content"]
            );
            answered.broken(what)
        }
    }
}

fn form_by_default(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Asking)?;
    if declares(take, "elicitation.url") && !declares(take, "elicitation.form") {
        return Err(Unmet::not_applicable("the client declares no forms"));
    }
    let answered = answered(takes, FORM, "elicitation")?;
    match answered.error["code"] == -32602 {
        true => answered.broken("the client refused a question without a mode"),
        false => answered.seen(),
    }
}

fn undeclared_mode(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Asking)?;
    if declares(take, "elicitation.url") {
        return Err(Unmet::not_applicable("the client declares visits"));
    }
    let answered = answered(takes, VISIT, "elicitation")?;
    match answered.error["code"] == -32602 {
        true => answered.seen(),
        false => answered.broken("the client did not answer with the error -32602"),
    }
}

fn no_prefetch(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Asking)?;
    if !declares(take, "elicitation.url") {
        return Err(Unmet::not_applicable("the client does not declare visits"));
    }
    let answered = answered(takes, VISIT, "elicitation")?;
    let last = answered.entries.last().copied().unwrap_or_default();
    let agreed = answered.result["action"] == "accept";
    let fetched = take
        .exchanges()
        .find(|(number, head, _)| head.line.ends_with(" /visit") && (!agreed || *number < last));
    match fetched {
        Some((number, ..)) => Err(Unmet::broken("the URL was fetched", [number])),
        None => answered.seen(),
    }
}
