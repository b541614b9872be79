//! Arguments that are sent in `Mcp-Param-*` headers.

use http::{HeaderName, HeaderValue};
use serde_json::Value;
use turnbuckle_protocol::{
    codec::headers::{PARAM_PREFIX, ParamHeader, UnencodableArgument, encode_argument},
    types::JsonObject,
};

use crate::transport::encode::HeaderList;

/// An argument that cannot be encoded as a header value.
#[derive(Debug)]
pub(super) struct ParamHeaderError {
    pub(super) argument: String,
    pub(super) source: UnencodableArgument,
}

/// Returns the parameter headers of a call; a missing or null argument has none.
pub(super) fn headers(
    param_headers: &[ParamHeader],
    arguments: Option<&JsonObject>,
) -> Result<HeaderList, ParamHeaderError> {
    let mut headers = HeaderList::with_capacity(param_headers.len());
    for header in param_headers {
        let Some(argument) = arguments.and_then(|all| find(all, &header.path)) else {
            continue;
        };
        let text = argument.to_string();
        let value = encode_argument(&text).map_err(|source| ParamHeaderError {
            argument: header.path.join("."),
            source,
        })?;
        let name = format!("{PARAM_PREFIX}{}", header.header).parse::<HeaderName>();
        // The header name is a token and the encoded value is printable, so both are always accepted.
        if let (Ok(name), Some(Ok(value))) = (name, value.map(|it| HeaderValue::from_str(&it))) {
            headers.push((name, value));
        }
    }
    Ok(headers)
}

fn find<'a>(arguments: &'a JsonObject, path: &[String]) -> Option<&'a Value> {
    let (last, parents) = path.split_last()?;
    let mut object = arguments;
    for name in parents {
        object = object.get(name)?.as_object()?;
    }
    object.get(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use turnbuckle_spec_coverage::req;

    use super::*;

    fn header(header: &str, path: &[&str]) -> ParamHeader {
        ParamHeader {
            header: header.to_owned(),
            path: path.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn sent(value: &Value) -> Option<String> {
        let arguments = json!({ "a": value });
        let headers = headers(&[header("A", &["a"])], arguments.as_object()).unwrap();
        let (_, value) = headers.iter().find(|(name, _)| name == "mcp-param-a")?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn values_are_encoded_by_type() {
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
        let param_headers = [header("Zone", &["place", "zone"])];
        let found = |arguments: Value| {
            let headers = headers(&param_headers, arguments.as_object()).unwrap();
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
        assert!(headers(&param_headers, None).unwrap().is_empty());
    }

    #[test]
    fn an_argument_that_cannot_be_a_header_is_named() {
        for (value, expected) in [
            (
                json!(9_007_199_254_740_992_u64),
                UnencodableArgument::OutOfRange,
            ),
            (json!(0.5), UnencodableArgument::Kind),
            (json!([1]), UnencodableArgument::Kind),
            (json!({}), UnencodableArgument::Kind),
        ] {
            let arguments = json!({ "a": { "b": value } });

            let error = headers(&[header("B", &["a", "b"])], arguments.as_object()).unwrap_err();

            assert_eq!((error.argument.as_str(), error.source), ("a.b", expected));
        }
    }
}
