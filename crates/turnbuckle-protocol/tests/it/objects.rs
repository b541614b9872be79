//! An array is never accepted as an object, and errors use the terms of JSON.

use serde_json::{Value, json};
use turnbuckle_protocol::{Revision, json, jsonrpc::parse, types::ClientCapabilities};

use crate::samples;

/// Returns the paths of all objects in a value, including the value itself.
pub(crate) fn objects(value: &Value) -> Vec<String> {
    fn collect(value: &Value, path: &str, found: &mut Vec<String>) {
        let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Object(members) => {
                found.push(path.to_owned());
                for (name, value) in members {
                    collect(value, &format!("{path}/{}", escaped(name)), found);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    collect(value, &format!("{path}/{index}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, "", &mut found);
    found
}

/// Returns the value with one of its objects replaced by an array of the values of that object.
pub(crate) fn with_array_at(value: &Value, path: &str) -> Value {
    let mut value = value.clone();
    if let Some(place) = value.pointer_mut(path)
        && let Value::Object(members) = place.take()
    {
        *place = members.into_iter().map(|(_, value)| value).collect();
    }
    value
}

/// Positions where the specification allows any JSON value, including an array.
///
/// Known keys of `_meta` are deserialized on use: by the server for each request.
const FREE: [&str; 6] = [
    "/_meta/",
    "/arguments/",
    "/inputSchema/",
    "/outputSchema/",
    "/inputResponses/",
    "/structuredContent",
];

fn is_free(definition: &str, path: &str) -> bool {
    FREE.iter().any(|place| path.contains(place))
        || matches!(
            (definition, path),
            ("LoggingMessageNotification", "/data") | ("extension", "/result")
        )
}

#[test]
fn an_array_in_place_of_any_object_of_any_message_is_rejected() {
    for sample in samples::all() {
        for revision in Revision::ALL {
            if !sample.is_in(revision) {
                continue;
            }
            let message = (sample.downgraded)(revision);
            for path in objects(&message) {
                if is_free(sample.definition, &path) {
                    continue;
                }
                let wrong = with_array_at(&message, &path).to_string();
                let Err(error) = (sample.read)(&wrong) else {
                    panic!("{} of {revision} accepts {wrong}", sample.definition);
                };
                let error = error.to_string();
                for word in ["struct", "sequence", "map", "element", " line ", "enum"] {
                    assert!(!error.contains(word), "{error}");
                }
            }
        }
    }
}

/// Returns the paths of all values inside a value.
fn values_inside(value: &Value) -> Vec<String> {
    let of_object = |path: String| {
        let members = value.pointer(&path).and_then(Value::as_object);
        let names: Vec<_> = members
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .collect();
        let escaped = |name: &String| name.replace('~', "~0").replace('/', "~1");
        let paths = names
            .into_iter()
            .map(|name| format!("{path}/{}", escaped(name)));
        paths.collect::<Vec<_>>()
    };
    objects(value).into_iter().flat_map(of_object).collect()
}

/// Returns an error text without what it quotes: paths, names and found values.
fn without_quotes(text: &str) -> String {
    let mut left = String::new();
    let mut quote = None;
    let mut escaped = false;
    for one in text.chars() {
        match quote {
            Some(end) => {
                if one == end && !escaped {
                    quote = None;
                }
                escaped = one == '\\' && !escaped;
            }
            None if one == '"' || one == '`' => quote = Some(one),
            None => left.push(one),
        }
    }
    left
}

#[test]
fn no_error_names_a_rust_type_or_a_position() {
    const RUST_TERMS: [&str; 12] = [
        "struct",
        "enum",
        "variant",
        "tuple",
        "sequence",
        "map",
        "unit",
        "untagged",
        "identifier",
        "element",
        "column",
        "deserialize",
    ];
    let others = [
        json!(null),
        json!(true),
        json!(-1.5),
        json!("other"),
        json!([1]),
        json!({ "other": 1 }),
    ];
    for sample in samples::all() {
        let message = (sample.downgraded)(sample.last);
        let mut wrong = Vec::from(others.clone());
        for path in values_inside(&message) {
            for other in &others {
                let mut message = message.clone();
                *message.pointer_mut(&path).unwrap() = other.clone();
                wrong.push(message);
            }
        }
        for path in objects(&message) {
            let mut message = message.clone();
            *message.pointer_mut(&path).unwrap() = json!({});
            wrong.push(message);
        }
        for wrong in wrong {
            let Err(error) = (sample.read)(&wrong.to_string()) else {
                continue;
            };
            let error = error.to_string();
            let own = without_quotes(&error);
            let words = own.split(|one: char| !one.is_alphanumeric());
            for word in words {
                let is_rust = RUST_TERMS.contains(&word)
                    || word.starts_with(|first: char| first.is_ascii_uppercase())
                    || word
                        .strip_prefix(['u', 'i', 'f'])
                        .is_some_and(|bits| bits.parse::<u8>().is_ok());
                assert!(
                    !is_rust,
                    "`{word}` in: {error}\n{}: {wrong}",
                    sample.definition
                );
            }
        }
    }
}

#[test]
fn an_array_in_place_of_an_error_object_is_rejected() {
    let message = br#"{"jsonrpc":"2.0","id":1,"error":[-32600,"no"]}"#;

    assert_eq!(
        parse(message).unwrap_err().error.message,
        "`error` must have an integer code and a message: invalid type: array, expected object"
    );
}

#[test]
fn a_capability_without_an_object_is_named_with_its_path() {
    let read = |json| json::from_str::<ClientCapabilities>(json);

    for (json, expected) in [
        (
            r#"{"roots":[]}"#,
            "`roots`: invalid type: array, expected object",
        ),
        (
            r#"{"extensions":{"a.b/c":[]}}"#,
            "`extensions.a.b/c`: invalid type: array, expected object",
        ),
        (
            r#"{"tasks":{"requests":{"sampling":{"createMessage":[]}}}}"#,
            "`tasks.requests.sampling.createMessage`: invalid type: array, expected object",
        ),
        (
            r#"{"roots":{"listChanged":"yes"}}"#,
            r#"`roots.listChanged`: invalid type: string "yes", expected boolean"#,
        ),
    ] {
        assert_eq!(read(json).unwrap_err().to_string(), expected);
    }
    assert!(read(r#"{"experimental":{"x":true}}"#).is_ok());
}
