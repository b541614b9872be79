//! Tools: not quite right.

use serde_json::{Map, Value, json};
use turnbuckle_protocol::{
    revision::Revision,
    types::{ContentBlock, TextResourceContents},
};
use turnbuckle_server::{Output, Server, Tool, ToolError};

use crate::mutant::{Mutant, Saying};

pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = lists();
    all.extend(schemas());
    all.extend(calls());
    all.extend(pages());
    all
}

fn lists() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.capability", "tools that nobody declares").says(undeclared("tools")),
        Mutant::new(
            "tools.capability",
            "tools that nobody declares in the handshake",
        )
        .on_lines()
        .in_revision(Revision::V2024_11_05)
        .says(undeclared("tools")),
        Mutant::new("tools.list", "an error instead of the list of tools")
            .answers("tools/list", failing),
        Mutant::new(
            "tools.list-same-for-all",
            "a tool that is gone on new connections",
        )
        .on_lines()
        .says(early_pages_are_empty("tools/list", "tools")),
        Mutant::new("tools.list-order", "tools in another order each time").says(|saying| {
            let turned = number(saying).is_some_and(|id| id / 2 % 2 == 1);
            if let (true, Some(tools)) = (turned, list_in(&mut saying.message, "/result/tools")) {
                tools.reverse();
            }
        }),
        Mutant::new("tools.names", "a name with a space").answers("tools/list", |message| {
            each_tool(message, |tool| rename(tool, "forget", "forget it"));
        }),
        Mutant::new("tools.names-unique", "two tools of one name").answers(
            "tools/list",
            |message| {
                each_tool(message, |tool| rename(tool, "forget", "panel"));
            },
        ),
        Mutant::new("tools.names-case", "names that are compared without case")
            .hears(|hearing| {
                if hearing.message["method"] == "tools/call"
                    && let Some(name) = hearing.message["params"]["name"].as_str()
                {
                    hearing.message["params"]["name"] = name.to_lowercase().into();
                }
            })
            .on_lines(),
    ]
}

fn schemas() -> Vec<Mutant> {
    let marked = |name, mark: fn(&mut Value)| {
        Mutant::new("tools.header-marks", name)
            .on_lines()
            .answers("tools/list", move |message| {
                each_tool(message, |tool| {
                    if tool["name"] == "forecast" {
                        mark(&mut tool["inputSchema"]["properties"]);
                    }
                });
            })
    };
    vec![
        Mutant::new("tools.schemas-valid", "a type that is none").answers("tools/list", |message| {
            each_tool(message, |tool| {
                if tool["name"] == "add" {
                    tool["inputSchema"]["properties"]["a"]["type"] = "float".into();
                }
            });
        }),
        Mutant::new("tools.schemas-valid", "an output schema that is none").answers("tools/list", |message| {
            each_tool(message, |tool| {
                if tool["name"] == "add" {
                    tool["outputSchema"]["required"] = "sum".into();
                }
            });
        }),
        Mutant::new("tools.schema-dialect", "schemas of draft 7").answers("tools/list", |message| {
            each_tool(message, |tool| {
                tool["inputSchema"]["$schema"] = "http://json-schema.org/draft-07/schema#".into();
            });
        }),
        marked("an empty mark", |properties| properties["region"]["x-mcp-header"] = "".into()),
        marked("a mark that is no token", |properties| {
            properties["region"]["x-mcp-header"] = "The Region".into();
        }),
        marked("a mark that is there twice", |properties| {
            properties["language"] = json!({ "type": "string", "description": "A language.", "x-mcp-header": "REGION" });
        }),
        marked("a mark of a list", |properties| properties["days"]["x-mcp-header"] = "Days".into()),
        marked("a mark inside a list", |properties| {
            properties["days"]["items"] = json!({
                "type": "object",
                "properties": { "ahead": { "type": "integer", "x-mcp-header": "Ahead" } },
                "required": ["ahead"],
            });
        }),
        Mutant::new("tools.header-marks-no-secrets", "a password in a header").answers("tools/list", |message| {
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
        Mutant::new("tools.unknown-tool", "a result for a tool that is not there").says(|saying| {
            if calls_tool(saying, "turnbuckle-no-such-tool") {
                let text = json!({ "type": "text", "text": "Unknown tool." });
                answer(saying, &json!({ "content": [text], "isError": true, "resultType": "complete" }));
            }
        }),
        Mutant::new("tools.arguments-validated", "anything goes").says(|saying| {
            if saying.message["result"]["isError"] == true {
                let text = json!({ "type": "text", "text": "{\"sum\":2}" });
                answer(
                    saying,
                    &json!({ "content": [text], "structuredContent": { "sum": 2 }, "resultType": "complete" }),
                );
            }
        }),
        Mutant::new("tools.wrong-arguments-as-result", "an error for wrong arguments").says(|saying| {
            if saying.message["result"]["isError"] == true {
                let id = saying.message["id"].clone();
                saying.message = json!({
                    "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "Wrong arguments" },
                });
            }
        }),
        Mutant::new("tools.failure-as-result", "an internal error of a tool").says(|saying| {
            if calls_tool(saying, "show") {
                failing(&mut saying.message);
            }
        }),
        Mutant::new("tools.output-fits", "a sum that is a text").says(|saying| {
            if calls_tool(saying, "add") && saying.message["result"]["structuredContent"].is_object() {
                saying.message["result"]["structuredContent"]["sum"] = "two".into();
                saying.message["result"]["content"][0]["text"] = "{\"sum\":\"two\"}".into();
            }
        }),
        Mutant::new("tools.output-fits", "no structured content although it is promised").says(|saying| {
            if calls_tool(saying, "add")
                && let Some(result) = object_in(&mut saying.message, "/result")
            {
                result.remove("structuredContent");
            }
        }),
        Mutant::new("tools.output-as-text", "structured content that text does not tell").says(|saying| {
            if calls_tool(saying, "add") && saying.message["result"]["structuredContent"].is_object() {
                saying.message["result"]["content"] = json!([]);
            }
        }),
        Mutant::new("tools.embedded-resources", "a resource where there are none").server(embedding),
    ]
}

fn pages() -> Vec<Mutant> {
    vec![
        Mutant::new("tools.ui-address", "a page on the web").answers("tools/list", |message| {
            each_tool(message, |tool| {
                if tool["_meta"]["ui"].is_object() {
                    tool["_meta"]["ui"]["resourceUri"] = "good://greeting".into();
                }
            });
        }),
        Mutant::new("tools.ui-readable", "a page that is not there").answers(
            "tools/list",
            |message| {
                each_tool(message, |tool| {
                    if tool["_meta"]["ui"].is_object() {
                        tool["_meta"]["ui"]["resourceUri"] = "ui://good/nothing".into();
                    }
                });
            },
        ),
        Mutant::new("tools.ui-type", "a page of plain HTML").answers("resources/read", |message| {
            let part = message.pointer_mut("/result/contents/0");
            if let Some(part) = part.filter(|part| part["uri"] == "ui://good/panel") {
                part["mimeType"] = "text/html".into();
            }
        }),
    ]
}

/// A server that returns a resource and has none.
fn embedding() -> Server {
    let show = async || {
        let inside = TextResourceContents::new("good://inside", "Inside.");
        Ok::<_, ToolError>(Output::from(ContentBlock::resource(inside)))
    };
    let tool = Tool::new("show", show).description("Shows something");
    Server::new("embedding", "1.0").tool(tool.read_only())
}

/// Takes a capability away.
pub(super) fn undeclared(capability: &'static str) -> impl Fn(&mut Saying) + Send + Sync {
    move |saying| {
        if let Some(capabilities) = object_in(&mut saying.message, "/result/capabilities") {
            capabilities.remove(capability);
        }
    }
}

/// Makes pages empty that are asked for early on a connection.
pub(super) fn early_pages_are_empty(
    method: &'static str,
    field: &'static str,
) -> impl Fn(&mut Saying) + Send + Sync {
    move |saying| {
        let asked = saying
            .asked
            .as_ref()
            .is_some_and(|asked| asked["method"] == method);
        if asked
            && number(saying).is_some_and(|id| id <= 2)
            && saying.message["result"][field].is_array()
        {
            saying.message["result"][field] = json!([]);
        }
    }
}

/// Returns a list inside a message; asking for it in this way adds nothing where there is none.
pub(super) fn list_in<'a>(message: &'a mut Value, place: &str) -> Option<&'a mut Vec<Value>> {
    message.pointer_mut(place)?.as_array_mut()
}

/// Returns an object inside a message, in the same way.
pub(super) fn object_in<'a>(
    message: &'a mut Value,
    place: &str,
) -> Option<&'a mut Map<String, Value>> {
    message.pointer_mut(place)?.as_object_mut()
}

/// Turns an answer into an internal error.
pub(super) fn failing(message: &mut Value) {
    let id = message["id"].clone();
    *message =
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": "Oops" } });
}

fn answer(saying: &mut Saying, result: &Value) {
    let id = saying.message["id"].clone();
    saying.message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
}

fn number(saying: &Saying) -> Option<i64> {
    saying.message["id"].as_i64()
}

fn calls_tool(saying: &Saying, name: &str) -> bool {
    let calls = |asked: &Value| asked["method"] == "tools/call" && asked["params"]["name"] == name;
    saying.asked.as_ref().is_some_and(calls)
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
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
