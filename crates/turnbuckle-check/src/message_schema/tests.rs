//! The notation, what is told, and whether it is what the official schemas say.

mod official;
mod samples;
mod writing;

use serde_json::json;

use super::*;

fn violation_texts(violations: &[SchemaViolation]) -> Vec<String> {
    violations.iter().map(ToString::to_string).collect()
}

fn told_of_result(revision: Revision, method: &str, given: impl Into<Value>) -> Vec<String> {
    violation_texts(&result(
        revision,
        method,
        &json!({ "result": given.into() }),
    ))
}

#[test]
fn a_flaw_names_the_place_and_the_problem() {
    let tool = |schema| json!({ "name": "a", "inputSchema": schema });
    let tools = json!({ "tools": [
        tool(json!({ "type": "object" })),
        tool(json!({})),
        tool(json!(null)),
        { "name": 3, "input_schema": {} },
    ] });

    assert_eq!(
        told_of_result(Revision::V2025_11_25, "tools/list", tools),
        [
            "`result.tools[1].inputSchema.type`: `object` is expected, but it is missing",
            "`result.tools[2].inputSchema`: an object is expected, but it is null",
            "`result.tools[3].name`: a string is expected, but it is the number `3`",
            "`result.tools[3].inputSchema`: an object is expected, but it is missing (there is `input_schema`)",
        ]
    );
}

#[test]
fn a_field_that_may_be_left_out_is_not_null() {
    let tools = json!({ "tools": [
        { "name": "a", "inputSchema": { "type": "object" }, "description": null },
    ] });

    assert_eq!(
        told_of_result(Revision::V2024_10_07, "tools/list", tools),
        [
            "`result.tools[0].description`: a string is expected, but it is null (leave it out instead)"
        ]
    );
}

#[test]
fn content_is_told_by_its_type() {
    let content = json!({ "content": [
        { "type": "text" },
        { "type": "video", "data": "" },
        { "text": "hello" },
        { "type": "image", "data": "no base64", "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "a:b" } },
        "hello",
    ] });

    assert_eq!(
        told_of_result(Revision::V2024_11_05, "tools/call", content),
        [
            "`result.content[0].text`: a string is expected, but it is missing",
            "`result.content[1].type`: `text`, `image` or `resource` is expected, but it is the string \"video\"",
            "`result.content[2].type`: `text`, `image` or `resource` is expected, but it is missing",
            "`result.content[3].data`: a string of base64 is expected, but it is the string \"no base64\"",
            "`result.content[4].resource`: `text` or `blob` is expected, but there is none of them",
            "`result.content[5]`: an object is expected, but it is the string \"hello\"",
        ]
    );
}

#[test]
fn names_that_are_no_words_are_quoted() {
    let listen = json!({ "resultType": "complete", "_meta": {} });

    assert_eq!(
        told_of_result(Revision::V2026_07_28, "subscriptions/listen", listen),
        [
            "`result._meta[\"io.modelcontextprotocol/subscriptionId\"]`: a string or an integer is expected, but it is missing"
        ]
    );
}

#[test]
fn a_result_of_another_type_is_not_measured_by_the_right_one() {
    let revision = Revision::V2026_07_28;
    let asking = json!({ "resultType": "input_required", "requestState": "a" });
    let wrong =
        "`result.resultType`: `complete` is expected, but it is the string \"input_required\"";

    assert_eq!(
        told_of_result(revision, "tools/list", asking.clone()),
        [wrong]
    );
    assert_eq!(told_of_result(revision, "tools/call", asking), [""; 0]);
}

#[test]
fn tasks_show_what_belongs_to_their_status() {
    let task = |status: &str| {
        json!({
            "resultType": "complete", "taskId": "a", "status": status, "ttlMs": null,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        })
    };
    let violation_texts = |status| told_of_result(Revision::V2026_07_28, "tasks/get", task(status));

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
fn methods_that_nobody_knows_are_not_judged() {
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
fn errors_have_the_data_of_their_code() {
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
fn envelopes_are_those_of_json_rpc() {
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
            "either `result` or `error` is expected, but both are there",
        ),
        (
            json!({ "jsonrpc": "2.0", "id": 1 }),
            "`method`, `result` or `error` is expected, but there is none of them",
        ),
        (json!([]), "a message is expected, but it is an empty array"),
        (json!(1), "an object is expected, but it is the number `1`"),
    ] {
        assert_eq!(envelope_violations(wrong), [observed]);
    }
}

#[test]
fn batches_are_of_one_revision() {
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
fn a_message_full_of_flaws_is_told_in_few() {
    let tools = json!({ "tools": vec![json!(1); 10_000] });

    assert_eq!(
        told_of_result(Revision::V2025_06_18, "tools/list", tools).len(),
        20
    );
}

/// Returns all that is wrong with one message of either side: its envelope, and what is in it.
///
/// `asked` is the method of the request that it answers, if it does and that is known.
fn violations(revision: Revision, message: &Value, asked: Option<&str>) -> Vec<SchemaViolation> {
    let (kind, mut violations) = envelope(message);
    violations.extend(match (kind, asked) {
        (Some(MessageKind::Request), _) => request(revision, message),
        (Some(MessageKind::Notification), _) => notification(revision, message),
        (Some(MessageKind::Result), Some(method)) => result(revision, method, message),
        (Some(MessageKind::Error), _) => error(revision, message),
        (Some(MessageKind::Result), None) | (None, _) => Vec::new(),
    });
    violations
}
