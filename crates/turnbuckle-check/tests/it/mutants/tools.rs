//! Tool mutants.

use serde_json::{Map, Value, json};
use turnbuckle_protocol::{
    revision::Revision,
    types::{ContentBlock, TextResourceContents},
};
use turnbuckle_server::{Server, Tool, ToolResult};

use crate::mutant::{Mutant, OutgoingMessage};

pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = lists();
    all.extend(schemas());
    all.extend(calls());
    all.extend(pages());
    all
}

fn lists() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.capability", "undeclared tools").map_sent(undeclared("tools")),
        Mutant::new("tools.capability", "undeclared tools in the handshake")
            .on_ndjson()
            .in_revision(Revision::V2024_11_05)
            .map_sent(undeclared("tools")),
        Mutant::new("tools.list", "an error instead of the list of tools")
            .for_requirement("tools.list.respond")
            .map_response_to("tools/list", failing),
        Mutant::new(
            "tools.list-same-for-all",
            "a tool is missing on new connections",
        )
        .on_ndjson()
        .map_sent(early_pages_are_empty("tools/list", "tools")),
        Mutant::new("tools.list-order", "tools in another order each time").map_sent(|outgoing| {
            let turned = number(outgoing).is_some_and(|id| id / 2 % 2 == 1);
            if let (true, Some(tools)) = (turned, list_in(&mut outgoing.message, "/result/tools")) {
                tools.reverse();
            }
        }),
        Mutant::new("tools.names", "a name with a space")
            .for_requirement("tools.name.charset")
            .map_response_to("tools/list", |message| {
                each_tool(message, |tool| rename(tool, "forget", "forget it"));
            }),
        Mutant::new("tools.names-unique", "two tools with one name").map_response_to(
            "tools/list",
            |message| {
                each_tool(message, |tool| rename(tool, "forget", "panel"));
            },
        ),
        Mutant::new("tools.names-case", "ignores the case of names")
            .map_received(|incoming| {
                if incoming.message["method"] == "tools/call"
                    && let Some(name) = incoming.message["params"]["name"].as_str()
                {
                    incoming.message["params"]["name"] = name.to_lowercase().into();
                }
            })
            .on_ndjson(),
    ]
}

fn schemas() -> Vec<Mutant> {
    let with_param_header = |name, requirement, mark: fn(&mut Value)| {
        Mutant::new("tools.header-marks", name)
            .for_requirement(requirement)
            .on_ndjson()
            .map_response_to("tools/list", move |message| {
                each_tool(message, |tool| {
                    if tool["name"] == "forecast" {
                        mark(&mut tool["inputSchema"]["properties"]);
                    }
                });
            })
    };
    vec![
        Mutant::new("tools.schemas-valid", "an invalid type").for_requirement("tools.input-schema.object").map_response_to("tools/list", |message| {
            each_tool(message, |tool| {
                if tool["name"] == "add" {
                    tool["inputSchema"]["properties"]["a"]["type"] = "float".into();
                }
            });
        }),
        Mutant::new("tools.schemas-valid", "an invalid output schema").for_requirement("schema.valid").map_response_to("tools/list", |message| {
            each_tool(message, |tool| {
                if tool["name"] == "add" {
                    tool["outputSchema"]["required"] = "sum".into();
                }
            });
        }),
        Mutant::new("tools.schema-dialect", "schemas of draft 7").map_response_to("tools/list", |message| {
            each_tool(message, |tool| {
                tool["inputSchema"]["$schema"] = "http://json-schema.org/draft-07/schema#".into();
            });
        }),
        with_param_header("an empty header name", "http.param.name.non-empty", |properties| properties["region"]["x-mcp-header"] = "".into()),
        with_param_header("a header name that is not a token", "http.param.name.token", |properties| {
            properties["region"]["x-mcp-header"] = "The Region".into();
        }),
        with_param_header("a header name with a line break", "http.param.name.no-control", |properties| {
            properties["region"]["x-mcp-header"] = "Region\r\nHost".into();
        }),
        with_param_header("a duplicate header name", "http.param.name.unique", |properties| {
            properties["language"] = json!({ "type": "string", "description": "A language.", "x-mcp-header": "REGION" });
        }),
        with_param_header("a header for an array", "http.param.type.primitive", |properties| properties["days"]["x-mcp-header"] = "Days".into()),
        with_param_header("a header inside an array", "http.param.path.no-composition", |properties| {
            properties["days"]["items"] = json!({
                "type": "object",
                "properties": { "ahead": { "type": "integer", "x-mcp-header": "Ahead" } },
                "required": ["ahead"],
            });
        }),
        Mutant::new("tools.header-marks-no-secrets", "a password in a header").map_response_to("tools/list", |message| {
            each_tool(message, |tool| {
                if tool["name"] == "forecast" {
                    tool["inputSchema"]["properties"]["password"] =
                        json!({ "type": "string", "description": "Opens it.", "x-mcp-header": "Password" });
                }
            });
        }),
    ]
}

fn calls() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.unknown-tool", "a result for an unknown tool").map_sent(|outgoing| {
            if calls_tool(outgoing, "turnbuckle-no-such-tool") {
                let text = json!({ "type": "text", "text": "Unknown tool." });
                response(outgoing, &json!({ "content": [text], "isError": true, "resultType": "complete" }));
            }
        }),
        Mutant::new("tools.arguments-validated", "anything goes").map_sent(|outgoing| {
            if outgoing.message["result"]["isError"] == true {
                let text = json!({ "type": "text", "text": "{\"sum\":2}" });
                response(
                    outgoing,
                    &json!({ "content": [text], "structuredContent": { "sum": 2 }, "resultType": "complete" }),
                );
            }
        }),
        Mutant::new("tools.wrong-arguments-as-result", "an error for wrong arguments").map_sent(|outgoing| {
            if outgoing.message["result"]["isError"] == true {
                let id = outgoing.message["id"].clone();
                outgoing.message = json!({
                    "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "Wrong arguments" },
                });
            }
        }),
        Mutant::new("tools.failure-as-result", "an internal error of a tool").map_sent(|outgoing| {
            if calls_tool(outgoing, "show") {
                failing(&mut outgoing.message);
            }
        }),
        Mutant::new("tools.output-fits", "a sum as a string").map_sent(|outgoing| {
            if calls_tool(outgoing, "add") && outgoing.message["result"]["structuredContent"].is_object() {
                outgoing.message["result"]["structuredContent"]["sum"] = "two".into();
                outgoing.message["result"]["content"][0]["text"] = "{\"sum\":\"two\"}".into();
            }
        }),
        Mutant::new("tools.output-fits", "no structured content despite an output schema").map_sent(|outgoing| {
            if calls_tool(outgoing, "add")
                && let Some(result) = object_in(&mut outgoing.message, "/result")
            {
                result.remove("structuredContent");
            }
        }),
        Mutant::new("tools.output-as-text", "structured content without text").map_sent(|outgoing| {
            if calls_tool(outgoing, "add") && outgoing.message["result"]["structuredContent"].is_object() {
                outgoing.message["result"]["content"] = json!([]);
            }
        }),
        Mutant::new("tools.embedded-resources", "a resource without the capability").server(server_with_embedded_resource),
    ]
}

fn pages() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.ui-address", "a UI resource on the web").map_response_to(
            "tools/list",
            |message| {
                each_tool(message, |tool| {
                    if tool["_meta"]["ui"].is_object() {
                        tool["_meta"]["ui"]["resourceUri"] = "good://greeting".into();
                    }
                });
            },
        ),
        Mutant::new("tools.ui-readable", "a missing UI resource").map_response_to(
            "tools/list",
            |message| {
                each_tool(message, |tool| {
                    if tool["_meta"]["ui"].is_object() {
                        tool["_meta"]["ui"]["resourceUri"] = "ui://good/nothing".into();
                    }
                });
            },
        ),
        Mutant::new("tools.ui-type", "a UI resource of plain HTML").map_response_to(
            "resources/read",
            |message| {
                let part = message.pointer_mut("/result/contents/0");
                if let Some(part) = part.filter(|part| part["uri"] == "ui://good/panel") {
                    part["mimeType"] = "text/html".into();
                }
            },
        ),
    ]
}

/// Returns a server that returns a resource and declares none.
fn server_with_embedded_resource() -> Server {
    let show = async || {
        let inside = TextResourceContents::new("good://inside", "Inside.");
        Ok(ToolResult::from(ContentBlock::resource(inside)))
    };
    let tool = Tool::new("show", show).description("Shows something");
    Server::new("embedding", "1.0").tool(tool.read_only())
}

/// Removes a capability.
pub(super) fn undeclared(capability: &'static str) -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    move |outgoing| {
        if let Some(capabilities) = object_in(&mut outgoing.message, "/result/capabilities") {
            capabilities.remove(capability);
        }
    }
}

/// Returns empty pages for early requests of a connection.
pub(super) fn early_pages_are_empty(
    method: &'static str,
    field: &'static str,
) -> impl Fn(&mut OutgoingMessage) + Send + Sync {
    move |outgoing| {
        let request = outgoing
            .request
            .as_ref()
            .is_some_and(|request| request["method"] == method);
        if request
            && number(outgoing).is_some_and(|id| id <= 2)
            && outgoing.message["result"][field].is_array()
        {
            outgoing.message["result"][field] = json!([]);
        }
    }
}

/// Returns an array inside a message, without adding it.
pub(super) fn list_in<'a>(message: &'a mut Value, place: &str) -> Option<&'a mut Vec<Value>> {
    message.pointer_mut(place)?.as_array_mut()
}

/// Returns an object inside a message, without adding it.
pub(super) fn object_in<'a>(
    message: &'a mut Value,
    place: &str,
) -> Option<&'a mut Map<String, Value>> {
    message.pointer_mut(place)?.as_object_mut()
}

/// Replaces a response with an internal error.
pub(super) fn failing(message: &mut Value) {
    let id = message["id"].clone();
    *message =
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "Oops" } });
}

fn response(outgoing: &mut OutgoingMessage, result: &Value) {
    let id = outgoing.message["id"].clone();
    outgoing.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
}

fn number(outgoing: &OutgoingMessage) -> Option<i64> {
    outgoing.message["id"].as_i64()
}

fn calls_tool(outgoing: &OutgoingMessage, name: &str) -> bool {
    let calls =
        |request: &Value| request["method"] == "tools/call" && request["params"]["name"] == name;
    outgoing.request.as_ref().is_some_and(calls)
}

pub(super) fn each_tool(message: &mut Value, mut change: impl FnMut(&mut Value)) {
    let tools = list_in(message, "/result/tools");
    tools.into_iter().flatten().for_each(&mut change);
}

pub(super) fn rename(tool: &mut Value, from: &str, to: &str) {
    if tool["name"] == from {
        tool["name"] = to.into();
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
