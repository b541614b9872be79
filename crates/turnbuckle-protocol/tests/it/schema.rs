//! Sent payloads validate against the official JSON Schema of their revision.
//!
//! The schemas leave objects open, so that a member of another revision would pass. Therefore each sample is also
//! checked against a closed copy of the schema, in which objects accept only the declared members.

use std::{env, fs, path::PathBuf};

use serde_json::{Value, json};
use turnbuckle_protocol::{
    Revision, RpcError, VersionedPayload,
    jsonrpc::code,
    method::{Method, MethodDirection, MethodKind},
    types::{
        ElicitUrlParams, HeaderMismatchData, MissingCapabilityData, UnsupportedVersionData,
        UrlElicitationRequiredData,
    },
};

use crate::samples::{self, Part, Sample};

/// The revisions that have an official schema. 2024-10-07 has none and is checked by that of 2024-11-05.
const PUBLISHED: [Revision; 5] = [
    Revision::V2024_11_05,
    Revision::V2025_03_26,
    Revision::V2025_06_18,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

#[test]
fn every_payload_validates_against_the_schema_of_its_date() {
    let Some(schemas) = schemas() else { return };

    let mut failures = Vec::new();
    for (revision, schema) in schemas {
        let closed = closed(&schema, revision);
        for sample in samples::all()
            .iter()
            .filter(|sample| sample.is_in(revision))
        {
            let Some(definition) = definition(sample, revision) else {
                continue;
            };
            let message = message(sample, revision);
            for (name, schema) in [("official", &schema), ("closed", &closed)] {
                failures.extend(
                    errors(schema, definition, &message.checked)
                        .map(|error| format!("{revision} {definition} ({name}): {error}")),
                );
            }
            if let Some(envelope) = &message.envelope {
                failures.extend(
                    errors(&schema, "JSONRPCMessage", envelope)
                        .map(|error| format!("{revision} {definition} (envelope): {error}")),
                );
            }
        }
    }

    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_data_of_errors_validates_against_the_schema_of_its_date() {
    let Some(schemas) = schemas() else { return };
    let mut urls =
        UrlElicitationRequiredData::new([ElicitUrlParams::new("m", "https://example.com/")]);
    urls.downgrade_to(Revision::V2025_11_25);
    let mut required = MissingCapabilityData::new(samples::client_capabilities());
    required
        .required_capabilities
        .downgrade_to(Revision::MODERN);

    for (revision, definition, error) in [
        (
            Revision::V2025_11_25,
            "URLElicitationRequiredError",
            RpcError::new(code::URL_ELICITATION_REQUIRED, "sign in").with_data(urls),
        ),
        (
            Revision::MODERN,
            "MissingRequiredClientCapabilityError",
            RpcError::new(code::MISSING_CAPABILITY, "missing").with_data(required),
        ),
        (
            Revision::MODERN,
            "UnsupportedProtocolVersionError",
            RpcError::new(code::UNSUPPORTED_VERSION, "unsupported")
                .with_data(UnsupportedVersionData::new(["2026-07-28"], "1900-01-01")),
        ),
        (
            Revision::MODERN,
            "HeaderMismatchError",
            RpcError::new(code::HEADER_MISMATCH, "mismatch")
                .with_data(HeaderMismatchData::new("Mcp-Name")),
        ),
    ] {
        let (_, schema) = schemas.iter().find(|(date, _)| *date == revision).unwrap();
        let message = json!({ "jsonrpc": "2.0", "id": 1, "error": error });
        let errors: Vec<_> = errors(schema, definition, &message).collect();
        assert!(errors.is_empty(), "{definition}: {errors:?}");
    }
}

#[test]
fn a_closed_schema_rejects_members_of_newer_revisions() {
    let Some(schemas) = schemas() else { return };
    let (revision, schema) = &schemas[1];
    let closed = closed(schema, *revision);

    let tool = json!({ "name": "a", "inputSchema": { "type": "object", "x": 1 }, "title": "A" });

    assert_eq!(errors(schema, "Tool", &tool).count(), 0);
    assert_eq!(errors(&closed, "Tool", &tool).count(), 1);
}

#[test]
fn the_method_table_agrees_with_the_schemas() {
    let Some(schemas) = schemas() else { return };

    for (revision, schema) in schemas {
        let (client, server) = (sent(&schema, "Client"), sent(&schema, "Server"));
        for method in Method::ALL {
            let expected = match method.direction(revision) {
                Some(MethodDirection::ToServer) => (true, false),
                Some(MethodDirection::ToClient) => (false, true),
                Some(MethodDirection::Both) => (true, true),
                Some(MethodDirection::InResult) | None => (false, false),
            };
            // The tasks of 2026-07-28 are an extension, which the schema does not have.
            if revision == Revision::MODERN && method.name.contains("tasks") {
                continue;
            }
            let found = (
                client.contains(&method.name.to_owned()),
                server.contains(&method.name.to_owned()),
            );
            assert_eq!(found, expected, "{} in {revision}", method.name);
        }
        for name in client.iter().chain(&server) {
            let method = Method::from_name(name).unwrap_or_else(|| panic!("{name} is missing"));
            let kind = if name.starts_with("notifications/") {
                MethodKind::Notification
            } else {
                MethodKind::Request
            };
            assert_eq!(method.kind, kind, "{name}");
        }
    }
}

/// A sample as sent.
struct Sent {
    /// The value that the definition of the sample describes.
    checked: Value,
    /// The whole message, if there is one.
    envelope: Option<Value>,
}

fn message(sample: &Sample, revision: Revision) -> Sent {
    let payload = (sample.downgraded)(revision);
    match sample.part {
        Part::Params(method) if method.direction(revision) == Some(MethodDirection::InResult) => {
            Sent {
                checked: json!({ "method": method.name, "params": payload }),
                envelope: None,
            }
        }
        Part::Params(method) => {
            let mut message = json!({ "jsonrpc": "2.0", "method": method.name, "params": payload });
            if method.kind == MethodKind::Request {
                message["id"] = json!(1);
            }
            Sent {
                checked: message.clone(),
                envelope: Some(message),
            }
        }
        Part::Result(kind) => {
            let result = stamped(payload, kind, revision);
            Sent {
                envelope: Some(json!({ "jsonrpc": "2.0", "id": 1, "result": result })),
                checked: result,
            }
        }
        Part::ClientResult if revision == Revision::MODERN => Sent {
            checked: payload,
            envelope: None,
        },
        Part::ClientResult => Sent {
            envelope: Some(json!({ "jsonrpc": "2.0", "id": 1, "result": payload })),
            checked: payload,
        },
    }
}

/// Adds the members that a server adds to every modern result.
fn stamped(mut result: Value, kind: &str, revision: Revision) -> Value {
    if revision == Revision::MODERN {
        result["resultType"] = kind.into();
    }
    result
}

/// Returns the definition of a sample, under the name that the revision uses.
fn definition(sample: &Sample, revision: Revision) -> Option<&'static str> {
    let extension = match sample.part {
        Part::Params(method) => method.name.contains("tasks"),
        _ => sample.definition == "extension",
    };
    (!extension || revision != Revision::MODERN).then_some(sample.definition)
}

fn errors(schema: &Value, definition: &str, instance: &Value) -> impl Iterator<Item = String> {
    let validator = jsonschema::validator_for(&reachable(schema, definition)).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(instance)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    errors.into_iter()
}

/// Returns a schema of one definition and its dependencies, because the whole schema takes long to compile.
fn reachable(schema: &Value, definition: &str) -> Value {
    let root = definitions_name(schema);
    let reference = format!("#/{root}/{definition}");
    let mut needed = json!({});
    let mut open = vec![definition.to_owned()];
    while let Some(name) = open.pop() {
        if needed.get(&name).is_none() {
            let definition = schema[root].get(&name);
            let definition = definition.unwrap_or_else(|| panic!("{name} is not defined"));
            open.extend(references(definition));
            needed[name] = definition.clone();
        }
    }
    json!({ "$schema": schema["$schema"], "$ref": reference, root: needed })
}

fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|path| path.rsplit('/').next());
            let inner = members.values().flat_map(references);
            own.map(str::to_owned).into_iter().chain(inner).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn definitions_name(schema: &Value) -> &'static str {
    match schema.get("$defs") {
        Some(_) => "$defs",
        None => "definitions",
    }
}

/// Returns the methods that one side sends, as the schema lists them.
fn sent(schema: &Value, side: &str) -> Vec<String> {
    let definitions = &schema[definitions_name(schema)];
    let mut methods = Vec::new();
    for kind in ["Request", "Notification"] {
        let union = &definitions[format!("{side}{kind}")];
        let single = std::slice::from_ref(union);
        for member in union["anyOf"].as_array().map_or(single, Vec::as_slice) {
            let name = references(member).into_iter().next();
            let message = member["$ref"]
                .as_str()
                .and(name)
                .map_or(member, |name| &definitions[name]);
            let method = &message["properties"]["method"]["const"];
            methods.extend(method.as_str().map(str::to_owned));
        }
    }
    methods
}

/// Closes every object with declared members.
fn closed(schema: &Value, revision: Revision) -> Value {
    let mut schema = schema.clone();
    let root = definitions_name(&schema);
    let joined = joined(&schema);
    for (name, definition) in schema[root].as_object_mut().expect("definitions") {
        if joined.contains(name) || OPEN.contains(&&**name) || name.ends_with("MetaObject") {
            continue;
        }
        if name.ends_with("Capabilities") && revision == Revision::V2025_11_25 {
            // The apps extension declares itself here without being part of the schema.
            definition["properties"]["extensions"] = json!({});
        }
        let carries_meta = name.ends_with("Result") || name.ends_with("Params");
        close(definition, carries_meta);
    }
    schema
}

/// Definitions that describe arbitrary objects.
const OPEN: [&str; 5] = [
    "Request",
    "Notification",
    "Result",
    "JSONRPCRequest",
    "JSONRPCNotification",
];

/// Members with open values, regardless of the schema.
const OPEN_MEMBERS: [&str; 4] = ["_meta", "inputSchema", "outputSchema", "experimental"];

fn close(schema: &mut Value, carries_meta: bool) {
    let Value::Object(members) = schema else {
        return;
    };
    let open = members.contains_key("additionalProperties");
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            if !OPEN_MEMBERS.contains(&&**name) {
                close(property, name == "params");
            }
        }
        if carries_meta {
            properties.entry("_meta").or_insert_with(|| json!({}));
        }
        // A message lists its parts without the envelope around them.
        if properties.contains_key("method") {
            properties.entry("jsonrpc").or_insert_with(|| json!({}));
            properties.entry("id").or_insert_with(|| json!({}));
        }
        if properties.contains_key("resultType") {
            properties.entry("_meta").or_insert_with(|| json!({}));
        }
        if !open && !properties.is_empty() {
            members.insert("additionalProperties".into(), false.into());
        }
    }
    if let Some(items) = members.get_mut("items") {
        close(items, false);
    }
}

/// Returns the definitions that others combine with `allOf`; closing one would exclude the other.
fn joined(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("allOf").map(references).unwrap_or_default();
            own.into_iter()
                .chain(members.values().flat_map(joined))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(joined).collect(),
        _ => Vec::new(),
    }
}

fn schemas() -> Option<Vec<(Revision, Value)>> {
    let Some(data) = env::var_os("TURNBUCKLE_DATA") else {
        eprintln!("not run: TURNBUCKLE_DATA is not set");
        return None;
    };
    let folder = PathBuf::from(data).join("spec/schema");
    let read = |revision: Revision| {
        let text = fs::read_to_string(folder.join(format!("{revision}.json"))).unwrap();
        (revision, serde_json::from_str(&text).unwrap())
    };
    Some(PUBLISHED.map(read).into())
}
