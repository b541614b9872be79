//! Responses to server requests: ping, roots, sampling and elicitation.

use serde_json::{Value, json};

use crate::{
    client_rules::base::json_rpc::require_server_requests,
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario::{FORM, PING, ROOTS, SAMPLING, TOOLS, UNDECLARED, URL_ELICITATION},
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns, check_each},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.asked.ping", Area::Base, &["ping.respond"])
        .requirement("`ping` returns an empty result promptly.")
        .hint("Return `{}` for `ping`, also while other requests are in flight.")
        .scenarios(&[Scenario::ServerRequests], ping),
    Rule::client("client.roots.files", Area::Roots, &["roots.uri.file", "roots.list.shape"])
        .requirement("Roots are `file://` URIs.")
        .hint("Return `roots` for `roots/list`, each with a `file://` `uri`.")
        .scenarios(&[Scenario::ServerRequests], roots),
    Rule::client("client.roots.no-list-changed", Area::Roots, &["roots.list-changed.removed"])
        .requirement("Since 2026-07-28, `notifications/roots/list_changed` is not sent.")
        .hint("Do not send `notifications/roots/list_changed`: servers request the roots when needed.")
        .scenarios(&[], no_list_changed),
    Rule::client("client.sampling.result", Area::Sampling, &["sampling.result.shape"])
        .requirement("A sampling result has `role`, `content` and `model`.")
        .hint("Return `role`, `content` and `model` for `sampling/createMessage`, or an error.")
        .scenarios(&[Scenario::ServerRequests], sampled),
    Rule::client("client.sampling.no-tools", Area::Sampling, &["sampling.tools.client-error"])
        .requirement("A client without `sampling.tools` rejects sampling with tools.")
        .hint("Return an error for `sampling/createMessage` with `tools` unless `sampling.tools` is declared.")
        .scenarios(&[Scenario::ServerRequests], no_tools),
    Rule::client("client.sampling.declared", Area::Sampling, &["sampling.capability"])
        .requirement("A client that supports sampling declares `sampling`.")
        .hint("Declare `sampling` in `initialize`, or return an error for `sampling/createMessage`.")
        .scenarios(&[Scenario::ServerRequests], sampling_declared),
    Rule::client("client.elicitation.action", Area::Elicitation, &["elicitation.result.actions"])
        .requirement("The action is `accept`, `decline` or `cancel`, and only accepted forms have content.")
        .hint("Return the action `accept`, `decline` or `cancel` for `elicitation/create`, and `content` only for accepted forms.")
        .scenarios(&[Scenario::ServerRequests], action),
    Rule::client("client.elicitation.valid", Area::Elicitation, &[
        "elicitation.form.validate-client",
        "elicitation.validate-2025-06-18",
    ])
    .requirement("The content of an accepted form matches the requested schema.")
    .hint("Validate the content against `requestedSchema` before sending it.")
    .scenarios(&[Scenario::ServerRequests], valid),
    Rule::client("client.elicitation.form-by-default", Area::Elicitation, &["elicitation.request.mode-default"])
        .requirement("`elicitation/create` without `mode` is a form.")
        .hint("Treat a missing `mode` as `form`.")
        .scenarios(&[Scenario::ServerRequests], form_by_default),
    Rule::client("client.elicitation.undeclared-mode", Area::Elicitation, &["elicitation.mode.undeclared-error"])
        .requirement("`elicitation/create` with an undeclared mode returns error -32602.")
        .hint("Return error -32602 for `elicitation/create` with a mode that is not declared.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::ServerRequests], undeclared_mode),
    Rule::client("client.elicitation.no-prefetch", Area::Elicitation, &["elicitation.url.no-prefetch"])
        .requirement("The URL of an elicitation is not fetched before the user consents.")
        .hint("Do not fetch the URL of `elicitation/create` before the user has seen it and consented.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::ServerRequests], no_prefetch),
];

const NEVER: &str = "the client made no request during which the server could send one";
const NO_CALL: &str = "the client called no tool";

/// A response to a server request or an input request.
struct ClientReply<'a> {
    /// The transcript entries.
    entries: Vec<usize>,
    /// The result, or null.
    result: &'a Value,
    /// The error, or null.
    error: &'a Value,
}

/// Returns the reply to a request for a declared capability.
fn reply_to<'a>(
    runs: &'a ScenarioRuns,
    key: &str,
    capability: &str,
) -> Result<ClientReply<'a>, NotPassed> {
    let run = runs.get(Scenario::ServerRequests)?;
    if !declares(run, capability) {
        let why = format!("the client does not declare `{capability}`");
        return Err(NotPassed::not_applicable(why));
    }
    let missing = || match run.requests_for("tools/call").next() {
        None => NotPassed::not_tested(NO_CALL),
        Some(_) => NotPassed::not_tested("the client did not respond in time"),
    };
    if runs.revision.is_stateless() {
        let responses =
            |message: &&ClientMessage| message.params()["inputResponses"].get(key).is_some();
        let message = run.requests().find(responses).ok_or_else(missing)?;
        let result = &message.params()["inputResponses"][key];
        if result.get("result").is_some() {
            return Err(NotPassed::not_tested("the response has an envelope"));
        }
        return Ok(ClientReply {
            entries: vec![message.number],
            result,
            error: &Value::Null,
        });
    }
    let id = json!(key);
    let client_request = run.request_entry(&id).ok_or_else(missing)?;
    let reply = run.client_response(&id).ok_or_else(missing)?;
    Ok(ClientReply {
        entries: vec![client_request, reply.number],
        result: &reply.value["result"],
        error: &reply.value["error"],
    })
}

/// Returns whether the client declares a capability.
fn declares(run: &ScenarioRun, capability: &str) -> bool {
    let pointer = format!("/{}", capability.replace('.', "/"));
    let initialize = run.requests_for("initialize").last();
    let capabilities = match initialize {
        Some(initialize) => Some(&initialize.params()["capabilities"]),
        None => run
            .requests()
            .find_map(|message| message.meta("clientCapabilities")),
    };
    capabilities.is_some_and(|all| all.pointer(&pointer).is_some())
}

impl ClientReply<'_> {
    fn evidence(self) -> Outcome {
        Evidence::from_entries(self.entries)
    }

    fn violation(self, observed: impl Into<String>) -> NotPassed {
        NotPassed::violation(observed, self.entries)
    }

    /// Checks that the reply is a result.
    fn given(self) -> Result<Self, NotPassed> {
        if self.error.is_null() {
            Ok(self)
        } else {
            let why = format!("the client returned an error: {}", self.error["message"]);
            Err(NotPassed::not_tested(why))
        }
    }
}

fn ping(runs: &ScenarioRuns) -> Outcome {
    require_server_requests(runs)?;
    let run = runs.get(Scenario::ServerRequests)?;
    let id = json!(PING);
    let client_request = run
        .request_entry(&id)
        .ok_or_else(|| NotPassed::not_tested(NEVER))?;
    let has_other_id = |message: &ClientMessage| {
        message.is_response()
            && message
                .id()
                .is_some_and(|id| run.request_entry(id).is_none())
    };
    match run.client_response(&id) {
        Some(reply)
            if reply.value["result"]
                .as_object()
                .is_some_and(|result| result.keys().all(|key| key == "_meta")) =>
        {
            Evidence::from_entries([client_request, reply.number])
        }
        Some(reply) => Err(NotPassed::violation(
            "the result is not empty",
            [client_request, reply.number],
        )),
        None if run.messages().iter().any(has_other_id) => Err(NotPassed::not_tested(
            "the client responded with another id",
        )),
        None => Err(NotPassed::violation("no response", [client_request])),
    }
}

fn roots(runs: &ScenarioRuns) -> Outcome {
    let reply_to = reply_to(runs, ROOTS, "roots")?.given()?;
    let Some(roots) = reply_to.result["roots"].as_array() else {
        return Err(reply_to
            .violation("the list of roots is missing")
            .for_requirement("roots.list.shape"));
    };
    if let Some(root) = roots.iter().find(|root| !root["uri"].is_string()) {
        return Err(reply_to
            .violation(format!("a root without a `uri`: {root}"))
            .for_requirement("roots.list.shape"));
    }
    let is_file = |root: &&Value| {
        let uri = root["uri"].as_str();
        uri.is_some_and(|uri| uri.starts_with("file://"))
    };
    match roots.iter().find(|root| !is_file(root)) {
        Some(root) => {
            let observed = format!("a root is {}", root["uri"]);
            Err(reply_to.violation(observed))
        }
        None => reply_to.evidence(),
    }
}

fn no_list_changed(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.messages(), "the client sent no message", |message| {
        let is_list_change = message.method() == Some("notifications/roots/list_changed");
        is_list_change.then(|| "`notifications/roots/list_changed`".to_owned())
    })
}

fn sampled(runs: &ScenarioRuns) -> Outcome {
    let reply_to = reply_to(runs, SAMPLING, "sampling")?.given()?;
    let result = reply_to.result;
    let is_valid = ["user", "assistant"]
        .iter()
        .any(|role| result["role"] == *role)
        && (result["content"].is_object() || result["content"].is_array())
        && result["model"].is_string();
    if is_valid {
        reply_to.evidence()
    } else {
        let observed = format!("the message is {result}");
        Err(reply_to.violation(observed))
    }
}

fn sampling_declared(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::ServerRequests)?;
    let declared = declares(run, "sampling");
    let id = json!(if declared { SAMPLING } else { UNDECLARED });
    let Some(client_request) = run.request_entry(&id) else {
        return Err(NotPassed::not_tested(NO_CALL));
    };
    let Some(reply) = run.client_response(&id) else {
        return Err(NotPassed::not_tested("the client did not respond"));
    };
    let sampled = reply.value.get("result").is_some();
    if sampled && !declared {
        Err(NotPassed::violation(
            "the client supports sampling without declaring `sampling`",
            [client_request, reply.number],
        ))
    } else {
        Evidence::from_entries([client_request, reply.number])
    }
}

fn no_tools(runs: &ScenarioRuns) -> Outcome {
    if runs.revision.is_stateless() {
        return Err(NotPassed::not_applicable(
            "servers request only declared capabilities in this revision",
        ));
    }
    if declares(runs.get(Scenario::ServerRequests)?, "sampling.tools") {
        return Err(NotPassed::not_applicable(
            "the client declares `sampling.tools`",
        ));
    }
    let reply_to = reply_to(runs, TOOLS, "sampling")?;
    if reply_to.error.is_null() {
        Err(reply_to.violation("the client accepted tools without declaring `sampling.tools`"))
    } else {
        reply_to.evidence()
    }
}

fn action(runs: &ScenarioRuns) -> Outcome {
    let reply_to = reply_to(runs, FORM, "elicitation")?.given()?;
    let result = reply_to.result;
    let action = result["action"].as_str().unwrap_or_default();
    if !["accept", "decline", "cancel"].contains(&action) {
        let observed = format!("the action is {}", result["action"]);
        return Err(reply_to.violation(observed));
    }
    // Empty content is tolerated; entered data must not be sent.
    let filled = match &result["content"] {
        Value::Null => false,
        Value::Object(content) => !content.is_empty(),
        _ => true,
    };
    if action != "accept" && filled {
        Err(reply_to.violation(format!(
            "`content` is present although the action is `{action}`"
        )))
    } else {
        reply_to.evidence()
    }
}

fn valid(runs: &ScenarioRuns) -> Outcome {
    let reply_to = reply_to(runs, FORM, "elicitation")?.given()?;
    let result = reply_to.result;
    if result["action"] != "accept" {
        return Err(NotPassed::not_tested("the client did not accept the form"));
    }
    match result["content"]["name"].as_str() {
        Some(name) if !name.is_empty() => reply_to.evidence(),
        _ => {
            let observed = format!(
                "`name` must be a non-empty string, but the content is {}",
                result["content"]
            );
            Err(reply_to.violation(observed))
        }
    }
}

fn form_by_default(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::ServerRequests)?;
    if declares(run, "elicitation.url") && !declares(run, "elicitation.form") {
        return Err(NotPassed::not_applicable(
            "the client does not declare forms",
        ));
    }
    let reply_to = reply_to(runs, FORM, "elicitation")?;
    if reply_to.error["code"] == -32602 {
        Err(reply_to.violation("the client rejected an elicitation without a mode"))
    } else {
        reply_to.evidence()
    }
}

fn undeclared_mode(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::ServerRequests)?;
    if declares(run, "elicitation.url") {
        return Err(NotPassed::not_applicable(
            "the client declares url elicitation",
        ));
    }
    let reply_to = reply_to(runs, URL_ELICITATION, "elicitation")?;
    if reply_to.error["code"] == -32602 {
        reply_to.evidence()
    } else {
        Err(reply_to.violation("the client did not return error -32602"))
    }
}

fn no_prefetch(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::ServerRequests)?;
    if !declares(run, "elicitation.url") {
        return Err(NotPassed::not_applicable(
            "the client does not declare url elicitation",
        ));
    }
    let reply_to = reply_to(runs, URL_ELICITATION, "elicitation")?;
    let last = reply_to.entries.last().copied().unwrap_or_default();
    let is_accepted = reply_to.result["action"] == "accept";
    let fetched = run.http_requests().find(|(number, head, _)| {
        head.start_line.ends_with(" /visit") && (!is_accepted || *number < last)
    });
    match fetched {
        Some((number, ..)) => Err(NotPassed::violation("the URL was fetched", [number])),
        None => reply_to.evidence(),
    }
}
