//! Payloads as peers of each revision send them, deserialized and serialized again.

use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use turnbuckle_protocol::{
    Revision::{self, *},
    VersionedPayload,
    types::{tasks::legacy, *},
};

/// Upgrades `text` from `revision`, and downgrades it to that revision again.
fn returns<P>(revision: Revision, text: &str)
where
    P: VersionedPayload + Serialize + DeserializeOwned + Debug,
{
    let mut payload: P = serde_json::from_str(text).unwrap();
    payload.upgrade_from(revision);
    payload.downgrade_to(revision);

    let written: Value = serde_json::to_value(&payload).unwrap();
    let expected: Value = serde_json::from_str(text).unwrap();
    assert_eq!(written, expected, "{revision} {payload:?}");
}

#[test]
fn of_2024_11_05() {
    let revision = V2024_11_05;
    returns::<InitializeParams>(
        revision,
        r#"{"protocolVersion":"2024-11-05","capabilities":{"roots":{"listChanged":true},"sampling":{}},
            "clientInfo":{"name":"desk","version":"0.1.0"}}"#,
    );
    returns::<InitializeResult>(
        revision,
        r#"{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"prompts":{},"tools":{"listChanged":false}},
            "serverInfo":{"name":"files","version":"0.2.0"}}"#,
    );
    returns::<ListToolsResult>(
        revision,
        r#"{"tools":[{"name":"read","description":"Reads","inputSchema":{"type":"object",
            "properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false,
            "$schema":"http://json-schema.org/draft-07/schema#"}}]}"#,
    );
    returns::<CallToolResult>(
        revision,
        r#"{"content":[{"type":"text","text":"no such file"},{"type":"image","data":"AA==","mimeType":"image/png"}],
            "isError":true}"#,
    );
    returns::<ReadResourceResult>(
        revision,
        r#"{"contents":[{"uri":"memo://1","mimeType":"text/plain","text":"hi"},{"uri":"memo://2","blob":"AA=="}]}"#,
    );
    returns::<CreateMessageParams>(
        revision,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":50,
            "modelPreferences":{"hints":[{"name":"small"}],"costPriority":0.3},"includeContext":"none"}"#,
    );
    returns::<CompleteParams>(
        revision,
        r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#,
    );
    returns::<ProgressParams>(revision, r#"{"progressToken":0,"progress":0.5,"total":1}"#);
    returns::<ListRootsResult>(
        revision,
        r#"{"roots":[{"uri":"file:///home","name":"home"}]}"#,
    );
}

#[test]
fn of_2025_03_26() {
    let revision = V2025_03_26;
    returns::<InitializeResult>(
        revision,
        r#"{"protocolVersion":"2025-03-26","capabilities":{"completions":{},"resources":{"subscribe":true}},
            "serverInfo":{"name":"s","version":"1"},"instructions":"Ask first."}"#,
    );
    returns::<ListToolsResult>(
        revision,
        r#"{"tools":[{"name":"rm","inputSchema":{"type":"object"},
            "annotations":{"title":"Remove","destructiveHint":true,"readOnlyHint":false}}],"nextCursor":"2"}"#,
    );
    returns::<CallToolResult>(
        revision,
        r#"{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav","annotations":{"audience":["user"]}}]}"#,
    );
    returns::<ProgressParams>(
        revision,
        r#"{"progressToken":"t","progress":1,"message":"reading"}"#,
    );
}

#[test]
fn of_2025_06_18() {
    let revision = V2025_06_18;
    returns::<InitializeParams>(
        revision,
        r#"{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},
            "clientInfo":{"name":"agent","title":"Agent","version":"1.2"}}"#,
    );
    returns::<CallToolParams>(
        revision,
        r#"{"name":"add","arguments":{"a":1,"b":2},"_meta":{"progressToken":4}}"#,
    );
    returns::<CallToolResult>(
        revision,
        r#"{"content":[{"type":"text","text":"{\"sum\":3}","_meta":{"a.b/c":1}},
            {"type":"resource_link","uri":"file:///a","name":"a","title":"A"}],
            "structuredContent":{"sum":3},"isError":false}"#,
    );
    returns::<ElicitParams>(
        revision,
        r#"{"message":"Who?","requestedSchema":{"type":"object","properties":{
            "name":{"type":"string","minLength":1},"ok":{"type":"boolean","default":true},
            "size":{"type":"string","enum":["s","l"],"enumNames":["Small","Large"]}},"required":["name"]}}"#,
    );
    returns::<ElicitResult>(
        revision,
        r#"{"action":"accept","content":{"name":"Ada","age":3.5,"ok":true}}"#,
    );
    returns::<CompleteParams>(
        revision,
        r#"{"ref":{"type":"ref/resource","uri":"db://{t}"},"argument":{"name":"t","value":"a"},
            "context":{"arguments":{"x":"y"}}}"#,
    );
}

#[test]
fn of_2025_11_25() {
    let revision = V2025_11_25;
    returns::<InitializeParams>(
        revision,
        r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}},
            "sampling":{"tools":{}},"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}}}},
            "extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}},
            "clientInfo":{"name":"c","version":"1","websiteUrl":"https://example.com","icons":[{"src":"data:,"}]}}"#,
    );
    returns::<CallToolParams>(revision, r#"{"name":"slow","task":{"ttl":60000}}"#);
    returns::<legacy::CreateTaskResult>(
        revision,
        r#"{"task":{"taskId":"t","status":"working","createdAt":"2025-11-25T10:30:00Z",
            "lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null,"pollInterval":5000},
            "_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
    );
    returns::<CreateMessageParams>(
        revision,
        r#"{"messages":[{"role":"assistant","content":[{"type":"text","text":"a"},
            {"type":"tool_use","id":"1","name":"add","input":{"a":1}}]},
            {"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"3"}]}}],
            "maxTokens":10,"tools":[{"name":"add","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"}}"#,
    );
    returns::<ElicitParams>(
        revision,
        r#"{"mode":"url","message":"Sign in","url":"https://example.com","elicitationId":"e"}"#,
    );
    returns::<ElicitParams>(
        revision,
        r#"{"message":"Which?","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
            "properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]},"default":["x"],"maxItems":1},
            "b":{"type":"integer","default":3,"minimum":1}}}}"#,
    );
    returns::<ListToolsResult>(
        revision,
        r#"{"tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"},
            "icons":[{"src":"https://example.com/i.svg","sizes":["any"],"theme":"light"}],"_meta":{"ui":{"resourceUri":"ui://a"}}}]}"#,
    );
}

#[test]
fn of_2026_07_28() {
    let revision = V2026_07_28;
    returns::<CallToolParams>(
        revision,
        r#"{"name":"sign","arguments":{},"inputResponses":{"who":{"action":"decline"}},"requestState":"x",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#,
    );
    returns::<CallToolResult>(
        revision,
        r#"{"content":[],"structuredContent":[1,null],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
    );
    returns::<InputRequiredResult>(
        revision,
        r#"{"inputRequests":{"r":{"method":"roots/list","params":{}},
            "u":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://example.com"}}},
            "requestState":"x"}"#,
    );
    returns::<DiscoverResult>(
        revision,
        r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},
            "ttlMs":0,"cacheScope":"private"}"#,
    );
    returns::<ListenParams>(
        revision,
        r#"{"notifications":{"toolsListChanged":true,"taskIds":["t"]}}"#,
    );
    returns::<tasks::GetTaskResult>(
        revision,
        r#"{"taskId":"t","status":"failed","createdAt":"2026-07-28T10:30:00Z","lastUpdatedAt":"2026-07-28T10:30:00Z",
            "ttlMs":null,"error":{"code":-32603,"message":"broken"}}"#,
    );
}
