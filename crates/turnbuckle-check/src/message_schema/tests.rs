//! Tests of the notation, the violations, and the agreement with the official schemas.

mod official;
mod parsing;
mod samples;

use serde_json::json;

use super::*;

fn violation_texts(violations: &[SchemaViolation]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}

fn result_violations(revision: Revision, method: &str, given: impl Into<Value>) -> Vec<String> {
    violation_texts(&result(
        revision,
        method,
        &json!({ "result": given.into() }),
    ))
}

#[test]
fn violation_has_the_path_and_the_difference() {
    let tool = |schema| json!({ "name": "a", "inputSchema": schema });
    let tools = json!({ "tools": [
        tool(json!({ "type": "object" })),
        tool(json!({})),
        tool(json!(null)),
        { "name": 3, "input_schema": {} },
    ] });

    assert_eq!(
        result_violations(Revision::V2025_11_25, "tools/list", tools),
        [
            "`result.tools[1].inputSchema.type`: `object` is expected, but it is missing",
            "`result.tools[2].inputSchema`: an object is expected, but it is null",
            "`result.tools[3].name`: a string is expected, but it is the number `3`",
            "`result.tools[3].inputSchema`: an object is expected, but it is missing (found `input_schema`)",
        ]
    );
}

#[test]
fn null_for_an_optional_member_is_a_violation() {
    let tools = json!({ "tools": [
        { "name": "a", "inputSchema": { "type": "object" }, "description": null },
    ] });

    assert_eq!(
        result_violations(Revision::V2024_10_07, "tools/list", tools),
        ["`result.tools[0].description`: a string is expected, but it is null (omit it instead)"]
    );
}

#[test]
fn content_is_validated_by_its_type() {
    let content = json!({ "content": [
        { "type": "text" },
        { "type": "video", "data": "" },
        { "text": "hello" },
        { "type": "image", "data": "not base64", "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "a:b" } },
        "hello",
    ] });

    assert_eq!(
        result_violations(Revision::V2024_11_05, "tools/call", content),
        [
            "`result.content[0].text`: a string is expected, but it is missing",
            "`result.content[1].type`: `text`, `image` or `resource` is expected, but it is the string \"video\"",
            "`result.content[2].type`: `text`, `image` or `resource` is expected, but it is missing",
            "`result.content[3].data`: a string of base64 is expected, but it is the string \"not base64\"",
            "`result.content[4].resource`: `text` or `blob` is expected, but none of them is present",
            "`result.content[5]`: an object is expected, but it is the string \"hello\"",
        ]
    );
}

#[test]
fn unusual_member_names_are_quoted() {
    let listen = json!({ "resultType": "complete", "_meta": {} });

    assert_eq!(
        result_violations(Revision::V2026_07_28, "subscriptions/listen", listen),
        [
            "`result._meta[\"io.modelcontextprotocol/subscriptionId\"]`: a string or an integer is expected, but it is missing"
        ]
    );
}

#[test]
fn result_of_another_type_only_has_one_violation() {
    let revision = Revision::V2026_07_28;
    let input_required = json!({ "resultType": "input_required", "requestState": "a" });
    let wrong =
        "`result.resultType`: `complete` is expected, but it is the string \"input_required\"";

    assert_eq!(
        result_violations(revision, "tools/list", input_required.clone()),
        [wrong]
    );
    assert_eq!(
        result_violations(revision, "tools/call", input_required),
        [""; 0]
    );
}

#[test]
fn task_members_depend_on_the_status() {
    let task = |status: &str| {
        json!({
            "resultType": "complete", "taskId": "a", "status": status, "ttlMs": null,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        })
    };
    let violation_texts =
        |status| result_violations(Revision::V2026_07_28, "tasks/get", task(status));

    assert_eq!(violation_texts("working"), [""; 0]);
    assert_eq!(
        violation_texts("completed"),
        ["`result.result`: an object is expected, but it is missing"]
    );
    assert_eq!(
        violation_texts("failed"),
        ["`result.error`: an object is expected, but it is missing"]
    );
    assert_eq!(
        violation_texts("asleep"),
        [
            "`result.status`: `working`, `cancelled`, `input_required`, `completed` or `failed` is expected, but it is the string \"asleep\""
        ]
    );
}

#[test]
fn results_of_unknown_methods_may_be_any_object() {
    for revision in Revision::ALL {
        let message = |given: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": given });
        let method = "com.example/dance";

        assert_eq!(
            violations(revision, &message(json!({ "a": 1 })), Some(method)),
            []
        );
        assert_eq!(
            violation_texts(&violations(revision, &message(json!(1)), Some(method))),
            ["`result`: an object is expected, but it is the number `1`"]
        );
    }
}

#[test]
fn error_data_depends_on_the_code() {
    let error = |data: Value| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32022, "message": "No", "data": data } });

    assert_eq!(
        violation_texts(&violations(
            Revision::V2026_07_28,
            &error(json!({ "supported": "all" })),
            None
        )),
        [
            "`error.data.supported`: an array is expected, but it is the string \"all\"",
            "`error.data.requested`: a string is expected, but it is missing",
        ]
    );
    assert_eq!(
        violations(Revision::V2025_11_25, &error(json!(1)), None),
        []
    );
}

#[test]
fn envelope_violations_are_reported() {
    let envelope_violations = |message: Value| violation_texts(&envelope(&message).1);
    let ping = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let error = json!({ "code": -32700, "message": "No" });

    for right in [
        ping(json!(1)),
        ping(json!("a")),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": null, "error": error }),
        json!({ "jsonrpc": "2.0", "error": error }),
    ] {
        assert_eq!(envelope_violations(right), [""; 0]);
    }
    for (wrong, observed) in [
        (
            ping(json!(null)),
            "`id`: a string or an integer is expected, but it is null",
        ),
        (
            ping(json!(1.5)),
            "`id`: a string or an integer is expected, but it is the number `1.5`",
        ),
        (
            json!({ "id": 1, "method": "ping" }),
            "`jsonrpc`: `2.0` is expected, but it is missing",
        ),
        (
            json!({ "jsonrpc": "2.0", "method": 1 }),
            "`method`: a string is expected, but it is the number `1`",
        ),
        (
            json!({ "jsonrpc": "2.0", "result": {} }),
            "`id`: a string or an integer is expected, but it is missing",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": error }),
            "either `result` or `error` is expected, but both are present",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1 }),
            "`method`, `result` or `error` is expected, but none of them is present",
        ),
        (json!([]), "a message is expected, but it is an empty array"),
        (json!(1), "an object is expected, but it is the number `1`"),
    ] {
        assert_eq!(envelope_violations(wrong), [observed]);
    }
}

#[test]
fn batches_exist_in_2025_03_26_only() {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let batch = json!([ping, ping]);

    for revision in Revision::ALL {
        let expected = match revision {
            Revision::V2025_03_26 => 2,
            _ => 1,
        };
        assert_eq!(messages(revision, &batch).len(), expected, "{revision}");
    }
    assert_eq!(
        violation_texts(&envelope(&batch).1),
        ["one message is expected, but it is an array (only 2025-03-26 has batches)"]
    );
}

#[test]
fn violations_per_message_are_limited() {
    let tools = json!({ "tools": vec![json!(1); 10_000] });

    assert_eq!(
        result_violations(Revision::V2025_06_18, "tools/list", tools).len(),
        20
    );
}

/// Returns all violations of one message of either side: in its envelope and in its content.
///
/// `method` is the method of the request that the message responds to, if known.
fn violations(revision: Revision, message: &Value, method: Option<&str>) -> Vec<SchemaViolation> {
    let (kind, mut violations) = envelope(message);
    violations.extend(match (kind, method) {
        (Some(MessageKind::Request), _) => request(revision, message),
        (Some(MessageKind::Notification), _) => notification(revision, message),
        (Some(MessageKind::Result), Some(method)) => result(revision, method, message),
        (Some(MessageKind::Error), _) => error(revision, message),
        (Some(MessageKind::Result), None) | (None, _) => Vec::new(),
    });
    violations
}
