//! Arguments that are repeated in `Mcp-Param-*` headers.

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use turnbuckle_protocol::codec::headers::{Mark, PARAM_PREFIX, Unsendable, encode_argument};
use turnbuckle_protocol::types::JsonObject;

use crate::message::HeaderList;

/// An argument that should be repeated in a header, and cannot be.
#[derive(Debug)]
pub(super) struct Stuck {
    pub(super) argument: String,
    pub(super) source: Unsendable,
}

/// Makes the headers that repeat the marked arguments of a call; one that is missing or null has none.
pub(super) fn headers(marks: &[Mark], arguments: Option<&JsonObject>) -> Result<HeaderList, Stuck> {
    let mut headers = HeaderList::with_capacity(marks.len());
    for mark in marks {
        let Some(argument) = arguments.and_then(|all| find(all, &mark.path)) else {
            continue;
        };
        let text = argument.to_string();
        let value = encode_argument(&text).map_err(|source| Stuck {
            argument: mark.path.join("."),
            source,
        })?;
        let name = format!("{PARAM_PREFIX}{}", mark.header).parse::<HeaderName>();
        // A mark is a token and what is encoded is printable, so both are always accepted.
        if let (Ok(name), Some(Ok(value))) = (name, value.map(|it| HeaderValue::from_str(&it))) {
            headers.push((name, value));
        }
    }
    Ok(headers)
}

fn find<'a>(arguments: &'a JsonObject, path: &[String]) -> Option<&'a Value> {
    let (last, way) = path.split_last()?;
    let mut at = arguments;
    for name in way {
        at = at.get(name)?.as_object()?;
    }
    at.get(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_ledger::req;

    use super::*;

    fn mark(header: &str, path: &[&str]) -> Mark {
        Mark {
            header: header.to_owned(),
            path: path.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn sent(value: &Value) -> Option<String> {
        let arguments = json!({ "a": value });
        let headers = headers(&[mark("A", &["a"])], arguments.as_object()).unwrap();
        let (_, value) = headers.iter().find(|(name, _)| name == "mcp-param-a")?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn values_are_written_by_their_kinds() {
        req!(
            "http.value.types",
            "http.value.encode",
            "http.value.base64",
            "http.value.markers",
            "http.value.sentinel-collision",
            "http.param.present",
            "http.param.null-omit",
            in: ["2026-07-28"]
        );
        for (value, expected) in [
            (json!("us-west1"), Some("us-west1")),
            (json!(""), Some("")),
            (json!(42), Some("42")),
            (json!(42.0), Some("42")),
            (json!(-7), Some("-7")),
            (json!(true), Some("true")),
            (json!(false), Some("false")),
            (json!("Grüße"), Some("=?base64?R3LDvMOfZQ==?=")),
            (json!(" a "), Some("=?base64?IGEg?=")),
            (json!("a\nb"), Some("=?base64?YQpi?=")),
            (
                json!("=?base64?YQ==?="),
                Some("=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ),
            (json!(null), None),
        ] {
            assert_eq!(sent(&value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn an_argument_is_found_at_its_exact_path() {
        req!("http.param.extract-path", "http.param.absent-omit", in: ["2026-07-28"]);
        let marks = [mark("Zone", &["place", "zone"])];
        let found = |arguments: Value| {
            let headers = headers(&marks, arguments.as_object()).unwrap();
            let found = headers
                .into_iter()
                .find(|(name, _)| name == "mcp-param-zone");
            found.map(|(_, value)| value)
        };

        assert_eq!(
            found(json!({ "place": { "zone": "x" }, "zone": "y" })).unwrap(),
            "x"
        );
        for elsewhere in [
            json!({}),
            json!({ "zone": "x" }),
            json!({ "place": "zone" }),
            json!({ "place": [{ "zone": "x" }] }),
            json!({ "place.zone": "x" }),
        ] {
            assert_eq!(found(elsewhere.clone()), None, "{elsewhere}");
        }
        assert!(headers(&marks, None).unwrap().is_empty());
    }

    #[test]
    fn what_no_header_can_say_is_named() {
        for (value, expected) in [
            (json!(9_007_199_254_740_992_u64), Unsendable::OutOfRange),
            (json!(0.5), Unsendable::Kind),
            (json!([1]), Unsendable::Kind),
            (json!({}), Unsendable::Kind),
        ] {
            let arguments = json!({ "a": { "b": value } });

            let stuck = headers(&[mark("B", &["a", "b"])], arguments.as_object()).unwrap_err();

            assert_eq!((stuck.argument.as_str(), stuck.source), ("a.b", expected));
        }
    }
}
