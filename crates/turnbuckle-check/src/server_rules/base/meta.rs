//! `_meta` of messages.

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
    },
    rule::{Area, Rule},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("base.foreign-meta", Area::Base, &[])
        .requirement("The server ignores unknown `_meta` keys of a request.")
        .hint("Ignore unknown keys of `_meta`.")
        .active(|ctx| Box::pin(unknown_meta(ctx))),
    Rule::server(
        "base.meta-keys",
        Area::Base,
        &[
            "meta.key.prefix-format",
            "meta.key.label-format",
            "meta.key.name-format",
        ],
    )
    .requirement("Keys of `_meta` have a valid name and an optional prefix of labels with a slash.")
    .hint("Use keys like `com.example/key`: letters, digits, and `-`, `_`, `.` between them.")
    .passive(well_formed_keys),
    Rule::server(
        "base.meta-prefix",
        Area::Base,
        &["meta.key.reserved-prefix"],
    )
    .requirement("Custom `_meta` keys do not use reserved prefixes.")
    .hint("Use a prefix of your own, such as a reversed domain name.")
    .passive(own_prefixes),
    Rule::server("base.trace-context", Area::Base, &["meta.trace.format"])
        .requirement("`traceparent` in `_meta` has the format of W3C Trace Context.")
        .hint("Write `traceparent` as `00-`, 32 digits, 16 digits and 2 digits, joined by `-`.")
        .passive(trace_context),
    Rule::server("base.server-info", Area::Base, &["meta.result.server-info"])
        .requirement("Every result has the server info in `_meta`.")
        .hint("Set `_meta[\"io.modelcontextprotocol/serverInfo\"]` in every result.")
        .passive(server_info),
];

/// The prefix of the protocol's keys, which unknown extensions may use too.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol";

async fn unknown_meta(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let params = json!({ "_meta": { "com.example/turnbuckle": { "any": [1, null] } } });
    let response = session
        .request(session.request_builder.noop_method(), params)
        .await?;
    response.result()?;
    response.evidence()
}

fn well_formed_keys(_: &CheckContext, transcript: &Transcript) -> Outcome {
    check_keys(transcript, violated_key_format)
}

fn own_prefixes(ctx: &CheckContext, transcript: &Transcript) -> Outcome {
    let reserved = reserved_in(ctx.revision);
    check_keys(transcript, |key| {
        let prefix = key.split_once('/').map(|(prefix, _)| prefix);
        let is_violation =
            prefix.is_some_and(|prefix| prefix != PROTOCOL_PREFIX && reserved(prefix));
        is_violation.then_some("meta.key.reserved-prefix")
    })
}

/// Returns the predicate for reserved prefixes of a revision.
fn reserved_in(revision: Revision) -> fn(&str) -> bool {
    fn second_label(prefix: &str) -> bool {
        prefix.split('.').nth(1).is_some_and(is_reserved_label)
    }
    fn last_but_one(prefix: &str) -> bool {
        prefix.rsplit('.').nth(1).is_some_and(is_reserved_label)
    }
    fn is_reserved_label(label: &str) -> bool {
        ["modelcontextprotocol", "mcp"].contains(&label)
    }
    match revision {
        Revision::V2025_06_18 => last_but_one,
        _ => second_label,
    }
}

fn trace_context(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (number, meta) in metas(transcript) {
        let Some(parent) = meta.get("traceparent") else {
            continue;
        };
        if !parent.as_str().is_some_and(is_trace_parent) {
            let observed = format!("`traceparent` is {parent}");
            return Err(NotPassed::violation(observed, [number]));
        }
        evidence.push(number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "the server sends no trace context",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

fn server_info(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (number, entry) in transcript.all() {
        let Some(message) = entry
            .json()
            .filter(|_| entry.direction == Direction::Received)
        else {
            continue;
        };
        let Some(result) = message.get("result").filter(|result| result.is_object()) else {
            continue;
        };
        let info = result
            .get("_meta")
            .and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
        if info.is_none() {
            let entries = entry.response_to.into_iter().chain([number]);
            return Err(NotPassed::violation(
                "a result without the server info",
                entries,
            ));
        }
        evidence.push(number);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

/// Checks each key of any `_meta`; `violated` returns the requirement that a key violates.
fn check_keys(transcript: &Transcript, violated: impl Fn(&str) -> Option<&'static str>) -> Outcome {
    let mut evidence = Vec::new();
    for (number, meta) in metas(transcript) {
        let keys = meta.as_object().into_iter().flatten().map(|(key, _)| key);
        for key in keys {
            if let Some(requirement) = violated(key) {
                let violation = NotPassed::violation(format!("the key `{key}`"), [number]);
                return Err(violation.for_requirement(requirement));
            }
            evidence.push(number);
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("the server sends no `_meta`"))
    } else {
        evidence.dedup();
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// Returns every `_meta` of the server's messages.
fn metas(transcript: &Transcript) -> Vec<(usize, Value)> {
    let mut found = Vec::new();
    for (number, entry) in transcript.all() {
        if let Some(message) = entry
            .json()
            .filter(|_| entry.direction == Direction::Received)
        {
            collect(number, &message, &mut found);
        }
    }
    found
}

fn collect(number: usize, value: &Value, found: &mut Vec<(usize, Value)>) {
    match value {
        Value::Array(all) => all.iter().for_each(|value| collect(number, value, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "_meta" if value.is_object() => found.push((number, value.clone())),
                    // The protocol does not define the content of these members.
                    "structuredContent" | "arguments" | "inputSchema" | "outputSchema"
                    | "experimental" | "extensions" | "data" | "requestedSchema" => {}
                    _ => collect(number, value, found),
                }
            }
        }
        _ => {}
    }
}

/// Returns the requirement on the format of `_meta` keys that a key violates.
pub(crate) fn violated_key_format(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut labels = prefix.into_iter().flat_map(|prefix| prefix.split('.'));
    if labels.clone().any(str::is_empty) || name.contains('/') {
        Some("meta.key.prefix-format")
    } else if !labels.all(is_label) {
        Some("meta.key.label-format")
    } else if !is_name(name) {
        Some("meta.key.name-format")
    } else {
        None
    }
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(inside)
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let ends = [bytes.first(), bytes.last()];
    ends.into_iter().flatten().all(u8::is_ascii_alphanumeric) && bytes.iter().all(inside)
}

fn is_trace_parent(text: &str) -> bool {
    let is_hex = |part: &str, len| {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        part.len() == len && part.bytes().all(digit)
    };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let parts: Vec<_> = text.split('-').collect();
    match parts.as_slice() {
        [version, trace, parent, flags, rest @ ..] => {
            is_hex(version, 2)
                && *version != "ff"
                && is_hex(trace, 32)
                && !is_zero(trace)
                && is_hex(parent, 16)
                && !is_zero(parent)
                && is_hex(flags, 2)
                && (rest.is_empty() || *version != "00")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_an_optional_prefix_and_a_name() {
        for good in ["a", "", "a/", "a.b-c/d_e.f", "io.modelcontextprotocol/x"] {
            assert_eq!(violated_key_format(good), None, "{good}");
        }
        for (bad, requirement) in [
            ("_a", "meta.key.name-format"),
            ("a-", "meta.key.name-format"),
            ("a/b-", "meta.key.name-format"),
            ("ключ", "meta.key.name-format"),
            ("1a/b", "meta.key.label-format"),
            ("a-/b", "meta.key.label-format"),
            ("a..b/c", "meta.key.prefix-format"),
            ("a/b/c", "meta.key.prefix-format"),
            ("/a", "meta.key.prefix-format"),
        ] {
            assert_eq!(violated_key_format(bad), Some(requirement), "{bad}");
        }
    }

    #[test]
    fn reserved_label_is_the_second_or_in_2025_06_18_the_last_but_one() {
        let now = reserved_in(Revision::V2026_07_28);
        assert!(now("dev.mcp") && now("dev.mcp.tools") && !now("com.example.mcp"));
        let then = reserved_in(Revision::V2025_06_18);
        assert!(then("mcp.dev") && then("tools.mcp.com") && !then("dev.mcp") && !then("mcp"));
    }

    #[test]
    fn trace_parents_have_four_parts() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_trace_parent(good));
        assert!(!is_trace_parent(&good.to_uppercase()));
        assert!(!is_trace_parent(&good[..50]) && !is_trace_parent("nonsense"));
    }
}
