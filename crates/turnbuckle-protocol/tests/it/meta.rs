//! `_meta`: allowed keys, forwarding, and `RequestMeta`.

use serde_json::json;
use turnbuckle_protocol::{
    Meta, RequestId,
    meta::{MetaKeyError, RequestMeta, keys},
    types::{LogLevel, tasks::legacy::RelatedTask},
};
use turnbuckle_spec_coverage::req;

#[test]
fn keys_of_applications_are_accepted() {
    req!("meta.key.name-interior", in: ["2025-06-18", "2025-11-25", "2026-07-28"]);
    for key in [
        "color",
        "a",
        "a-b_c.d",
        "0",
        "example.com/color",
        "com.example.mcp/color",
        "a/b",
        "x-y.z9/name",
        "com.example/",
        "mcp/name",
        "modelcontextprotocol/name",
        "com.example.tools.mcp/x",
    ] {
        assert_eq!(Meta::new().insert(key, 1), Ok(None), "{key}");
    }
}

#[test]
fn keys_outside_of_the_grammar_are_rejected() {
    use MetaKeyError::{Name, Prefix};
    req!(
        "meta.key.prefix-format",
        "meta.key.label-format",
        "meta.key.name-format",
        in: ["2025-06-18", "2025-11-25", "2026-07-28"]
    );
    for (key, error) in [
        ("-a", Name),
        ("a-", Name),
        (".a", Name),
        ("a b", Name),
        ("a:b", Name),
        ("ä", Name),
        ("example.com/-a", Name),
        ("example.com/a/b", Name),
        ("/a", Prefix),
        ("9.com/a", Prefix),
        ("com-/a", Prefix),
        ("-com/a", Prefix),
        ("com..example/a", Prefix),
        ("com.example./a", Prefix),
        ("exa_mple.com/a", Prefix),
        ("exämple.com/a", Prefix),
    ] {
        assert_eq!(Meta::new().insert(key, 1), Err(error), "{key}");
    }
}

#[test]
fn keys_of_the_specification_are_rejected() {
    req!("meta.key.reserved-prefix", in: ["2025-06-18", "2025-11-25", "2026-07-28"]);
    for key in [
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/anything",
        "dev.mcp/x",
        "com.mcp.tools/x",
        "org.modelcontextprotocol.api/x",
        "IO.ModelContextProtocol/x",
        // Reserved in 2025-06-18: one of the labels and exactly one more after it.
        "mcp.dev/x",
        "tools.mcp.com/x",
        "modelcontextprotocol.io/x",
        "progressToken",
        "traceparent",
        "tracestate",
        "baggage",
    ] {
        assert_eq!(
            Meta::new().insert(key, 1),
            Err(MetaKeyError::Reserved),
            "{key}"
        );
    }
}

#[test]
fn received_keys_are_forwarded_unchanged() {
    let text = r#"{"z z":1,"io.modelcontextprotocol/unknown":[null],"a":{"b":2}}"#;

    let meta: Meta = serde_json::from_str(text).unwrap();

    assert_eq!(serde_json::to_string(&meta).unwrap(), text);
}

#[test]
fn typed_values_round_trip() {
    let meta = crate::samples::request_meta();

    assert_eq!(meta.progress_token(), Some(RequestId::from("token")));
    assert_eq!(meta.protocol_version(), Some("2026-07-28"));
    assert_eq!(meta.client_info().unwrap().name, "sample");
    assert_eq!(
        meta.client_capabilities(),
        Some(crate::samples::client_capabilities())
    );
    assert_eq!(meta.log_level(), Some(LogLevel::Info));
    assert!(meta.traceparent().is_some());
    assert_eq!(meta.subscription_id(), None);
}

#[test]
fn an_empty_meta_is_empty_again_after_removal() {
    let mut meta = Meta::new();
    meta.insert("a", json!(1)).unwrap();

    assert_eq!(meta.remove("a"), Some(json!(1)));

    assert!(meta.is_empty());
    assert_eq!(meta, Meta::new());
}

#[test]
fn a_request_is_read_without_copying() {
    let text = r#"{"unknown":{"deep":[1,2]},"progressToken":1.0,
        "io.modelcontextprotocol/protocolVersion":"2026\u002d07-28",
        "io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},
        "io.modelcontextprotocol/clientCapabilities":{ },
        "io.modelcontextprotocol/logLevel":"info","traceparent":"00-x"}"#;

    let meta = RequestMeta::parse(text).unwrap();

    assert_eq!(meta.protocol_version.as_deref(), Some("2026-07-28"));
    assert_eq!(meta.progress_token, Some(RequestId::from(1)));
    assert_eq!(meta.progress_token.unwrap().raw(), "1.0");
    assert_eq!(meta.client_info.unwrap(), r#"{"name":"a","version":"1"}"#);
    assert_eq!(meta.client_capabilities.unwrap(), "{ }");
    assert_eq!(meta.log_level.as_deref(), Some("info"));
    assert_eq!(meta.traceparent.as_deref(), Some("00-x"));
    assert!(meta.tracestate.is_none() && meta.baggage.is_none());
}

#[test]
fn a_request_without_known_keys_is_valid() {
    let meta = RequestMeta::parse(r#"{"a":1}"#).unwrap();

    assert!(meta.protocol_version.is_none());
    assert!(RequestMeta::parse("[]").is_err());
    assert!(RequestMeta::parse(r#"{"progressToken":1.5}"#).is_err());
    assert!(RequestMeta::parse(r#"{"progressToken":1,"progressToken":2}"#).is_err());
    let unreadable = RequestMeta::parse(r#"{"traceparent":7}"#).unwrap();
    assert!(unreadable.traceparent.is_none());
}

#[test]
fn plain_strings_of_a_request_are_borrowed() {
    let text = format!(r#"{{"{}":"2026-07-28"}}"#, keys::PROTOCOL_VERSION);

    let meta = RequestMeta::parse(&text).unwrap();

    assert!(matches!(
        meta.protocol_version,
        Some(std::borrow::Cow::Borrowed(_))
    ));
}

#[test]
fn an_object_of_application_keys_becomes_meta() {
    let own = json!({ "example.com/a": 1, "b": 2 });
    let foreign = json!({ "example.com/a": 1, "dev.mcp/b": 2 });

    let read = |value: serde_json::Value| Meta::try_from(value.as_object().unwrap().clone());

    assert_eq!(read(own).unwrap().get("b"), Some(&json!(2)));
    assert_eq!(read(foreign), Err(MetaKeyError::Reserved));
}

#[test]
fn an_id_that_value_cannot_represent_is_omitted() {
    let mut meta = Meta::new();
    let id = RequestId::from_json("1e400").unwrap();

    meta.set_progress_token(&id);
    meta.set_subscription_id(&id);

    assert!(meta.is_empty());
}

#[test]
fn values_that_are_set_are_returned() {
    let task = RelatedTask::new("t-1");
    let mut meta = Meta::new();

    meta.set_related_task(&task);
    meta.set_subscription_id(&RequestId::from(7));
    meta.set_trace_context("00-a-b-01", Some("vendor=1"));

    assert_eq!(meta.related_task(), Some(task));
    assert_eq!(meta.subscription_id(), Some(RequestId::from(7)));
    assert_eq!(meta.traceparent(), Some("00-a-b-01"));
    assert_eq!(meta.tracestate(), Some("vendor=1"));
}
