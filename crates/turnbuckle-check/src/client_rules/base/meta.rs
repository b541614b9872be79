//! `_meta` in messages of clients.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::outcome::{NotPassed, Outcome},
    mock_server::scenario_run::{ClientMessage, ScenarioRuns, check_each},
    rule::{Area, Rule},
    server_rules::violated_key_format,
};

const NONE: &str = "the client sent no request";

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.meta.protocol-version", Area::Base, &[
        "base.request.params-required-modern",
        "meta.request.protocol-version",
    ])
    .requirement("Every request has the protocol version in `_meta`.")
    .hint("Set `_meta[\"io.modelcontextprotocol/protocolVersion\"]` in the parameters of every request.")
    .scenarios(&[], protocol_version),
    Rule::client("client.meta.client-capabilities", Area::Base, &["meta.request.client-capabilities"])
        .requirement("Every request has the client capabilities in `_meta`.")
        .hint("Set `_meta[\"io.modelcontextprotocol/clientCapabilities\"]` in every request, to `{}` if there are none.")
        .scenarios(&[], client_capabilities),
    Rule::client("client.meta.client-info", Area::Base, &["meta.request.client-info"])
        .requirement("Every request has the client info in `_meta`.")
        .hint("Set `_meta[\"io.modelcontextprotocol/clientInfo\"]` to a name and a version in every request.")
        .scenarios(&[], client_info),
    Rule::client("client.meta.keys", Area::Base, &[
        "meta.key.prefix-format",
        "meta.key.label-format",
        "meta.key.name-format",
    ])
    .requirement("Keys of `_meta` have a valid name and an optional prefix of labels.")
    .hint("Use keys like `com.example/name`.")
    .scenarios(&[], keys),
    Rule::client("client.meta.reserved", Area::Base, &["meta.key.reserved-prefix"])
        .requirement("Custom `_meta` keys do not use reserved prefixes.")
        .hint("Use keys like `com.example/name`.")
        .scenarios(&[], reserved),
];

fn protocol_version(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.requests(), NONE, |message| {
        let observed = match message.meta("protocolVersion") {
            Some(Value::String(_)) => return None,
            Some(other) => format!("the protocol version is {other}"),
            None => "the protocol version is missing".to_owned(),
        };
        let requirement = match message.params()["_meta"] {
            Value::Object(_) => "meta.request.protocol-version",
            _ => "base.request.params-required-modern",
        };
        Some((requirement, observed))
    })
}

fn client_capabilities(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.requests(), NONE, |message| {
        match message.meta("clientCapabilities") {
            Some(Value::Object(_)) => None,
            Some(other) => Some(format!("the capabilities are {other}")),
            None => Some("the capabilities are missing".to_owned()),
        }
    })
}

fn client_info(runs: &ScenarioRuns) -> Outcome {
    check_each(runs.requests(), NONE, |message| {
        let info = message.meta("clientInfo").unwrap_or(&Value::Null);
        let is_valid = info["name"].is_string() && info["version"].is_string();
        (!is_valid).then(|| format!("the client info is {info}"))
    })
}

fn keys_of(runs: &ScenarioRuns) -> Result<Vec<(&ClientMessage, &String)>, NotPassed> {
    let mut all = Vec::new();
    for message in runs.messages() {
        let locations = [
            message.params().get("_meta"),
            message.value["result"].get("_meta"),
        ];
        for meta in locations.into_iter().flatten().filter_map(Value::as_object) {
            all.extend(meta.keys().map(|key| (message, key)));
        }
    }
    if all.is_empty() {
        Err(NotPassed::not_applicable("the client does not use `_meta`"))
    } else {
        Ok(all)
    }
}

fn keys(runs: &ScenarioRuns) -> Outcome {
    let keys = keys_of(runs)?;
    for (message, key) in &keys {
        if let Some(requirement) = violated_key_format(key) {
            let observed = format!("`_meta` has the key `{key}`");
            let violation = NotPassed::violation(observed, [message.number]);
            return Err(violation.for_requirement(requirement));
        }
    }
    crate::engine::outcome::Evidence::from_entries([keys[0].0.number])
}

/// Keys that the protocol defines.
const KNOWN: &[&str] = &[
    "protocolVersion",
    "clientInfo",
    "clientCapabilities",
    "logLevel",
    "serverInfo",
    "subscriptionId",
    "related-task",
    "model-immediate-response",
];

fn reserved(runs: &ScenarioRuns) -> Outcome {
    let keys = keys_of(runs)?;
    let names = ["modelcontextprotocol", "mcp"];
    for (message, key) in &keys {
        let Some((prefix, name)) = key.split_once('/') else {
            continue;
        };
        let labels: Vec<_> = prefix.split('.').collect();
        let reserved = match runs.revision {
            Revision::V2025_06_18 => labels.len() >= 2 && names.contains(&labels[labels.len() - 2]),
            _ => labels.get(1).is_some_and(|label| names.contains(label)),
        };
        if reserved && !KNOWN.contains(&name) {
            return Err(NotPassed::violation(
                format!("`_meta` has the key `{key}`"),
                [message.number],
            ));
        }
    }
    crate::engine::outcome::Evidence::from_entries([keys[0].0.number])
}
