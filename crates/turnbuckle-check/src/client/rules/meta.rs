//! What messages say about themselves in `_meta`.

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use crate::client::take::{Said, Takes, every};
use crate::outcome::{Outcome, Unmet};
use crate::rule::{Area, Rule};

const NONE: &str = "the client made no request";

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.meta.protocol-version", Area::Base, &[
        "base.request.params-required-modern",
        "meta.request.protocol-version",
    ])
    .says("Every request says in `_meta` which revision it is of.")
    .cure("Set `_meta[\"io.modelcontextprotocol/protocolVersion\"]` in the parameters of every request.")
    .watch(&[], protocol_version),
    Rule::client("client.meta.client-capabilities", Area::Base, &["meta.request.client-capabilities"])
        .says("Every request says in `_meta` what the client can do.")
        .cure("Set `_meta[\"io.modelcontextprotocol/clientCapabilities\"]` in every request, to `{}` if there is nothing to say.")
        .watch(&[], client_capabilities),
    Rule::client("client.meta.client-info", Area::Base, &["meta.request.client-info"])
        .says("Every request says in `_meta` who the client is.")
        .cure("Set `_meta[\"io.modelcontextprotocol/clientInfo\"]` to a name and a version in every request.")
        .watch(&[], client_info),
    Rule::client("client.meta.keys", Area::Base, &[
        "meta.key.prefix-format",
        "meta.key.label-format",
        "meta.key.name-format",
    ])
    .says("The keys of `_meta` are a name, or a prefix of labels and a name.")
    .cure("Write keys of your own like `com.example/name`.")
    .watch(&[], keys),
    Rule::client("client.meta.reserved", Area::Base, &["meta.key.reserved-prefix"])
        .says("Nothing of one's own stands under a prefix that belongs to the protocol.")
        .cure("Write keys of your own like `com.example/name`.")
        .watch(&[], reserved),
];

fn protocol_version(takes: &Takes) -> Outcome {
    every(takes.requests(), NONE, |said| {
        match said.meta("protocolVersion") {
            Some(Value::String(_)) => None,
            Some(other) => Some(format!("the revision is {other}")),
            None => Some("the request says no revision".to_owned()),
        }
    })
}

fn client_capabilities(takes: &Takes) -> Outcome {
    every(takes.requests(), NONE, |said| {
        match said.meta("clientCapabilities") {
            Some(Value::Object(_)) => None,
            Some(other) => Some(format!("the capabilities are {other}")),
            None => Some("the request says nothing of capabilities".to_owned()),
        }
    })
}

fn client_info(takes: &Takes) -> Outcome {
    every(takes.requests(), NONE, |said| {
        let info = said.meta("clientInfo").unwrap_or(&Value::Null);
        let whole = info["name"].is_string() && info["version"].is_string();
        (!whole).then(|| format!("the client is {info}"))
    })
}

fn keys_of(takes: &Takes) -> Result<Vec<(&Said, &String)>, Unmet> {
    let mut all = Vec::new();
    for said in takes.said() {
        let places = [
            said.params().get("_meta"),
            said.message["result"].get("_meta"),
        ];
        for meta in places.into_iter().flatten().filter_map(Value::as_object) {
            all.extend(meta.keys().map(|key| (said, key)));
        }
    }
    match all.is_empty() {
        true => Err(Unmet::not_applicable(
            "the client puts nothing into `_meta`",
        )),
        false => Ok(all),
    }
}

fn keys(takes: &Takes) -> Outcome {
    let keys = keys_of(takes)?;
    for (said, key) in &keys {
        if !is_key(key) {
            return Err(Unmet::broken(
                format!("`_meta` has the key `{key}`"),
                [said.number],
            ));
        }
    }
    crate::outcome::Seen::at([keys[0].0.number])
}

fn is_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = edge(name.chars().next()) && edge(name.chars().last()) && name.chars().all(inside);
    let label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphabetic())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    name && prefix.is_none_or(|prefix| prefix.split('.').all(label))
}

/// The keys that the protocol has given away itself.
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

fn reserved(takes: &Takes) -> Outcome {
    let keys = keys_of(takes)?;
    let names = ["modelcontextprotocol", "mcp"];
    for (said, key) in &keys {
        let Some((prefix, name)) = key.split_once('/') else {
            continue;
        };
        let labels: Vec<_> = prefix.split('.').collect();
        let reserved = match takes.revision {
            Revision::V2025_06_18 => labels.len() >= 2 && names.contains(&labels[labels.len() - 2]),
            _ => labels.get(1).is_some_and(|label| names.contains(label)),
        };
        if reserved && !KNOWN.contains(&name) {
            return Err(Unmet::broken(
                format!("`_meta` has the key `{key}`"),
                [said.number],
            ));
        }
    }
    crate::outcome::Seen::at([keys[0].0.number])
}
