//! An array is never accepted as an object.

use serde_json::Value;
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
