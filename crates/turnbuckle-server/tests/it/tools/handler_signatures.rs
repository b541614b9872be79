//! The signatures of handlers, and the conversions of their errors.

use std::{error::Error, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_server::{
    CompletionRequest, Context, Extension, Prompt, RequestError, Resource, ResourceTemplate,
    ResultExt as _, SamplingBuilder, Server, Tool, ToolError, Variables,
    testing::{self, ChangeRecorder},
};
use turnbuckle_store::ServerChange;

use crate::ndjson::test_client::Peer;

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Serialize)]
struct Greeting {
    text: String,
}

fn fail() -> io::Result<String> {
    Err(io::Error::other("disk on fire"))
}

fn fail_boxed() -> Result<String, Box<dyn Error + Send + Sync>> {
    Err("disk on fire".into())
}

async fn peer(server: Server) -> Peer {
    Peer::initialized(server, "2025-11-25", json!({})).await
}

async fn call(peer: &mut Peer, tool: &str) -> (String, Value) {
    let response = peer.call_tool(tool, json!({ "name": "Ada" })).await;
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (text.to_owned(), result["isError"].clone())
}

#[tokio::test]
async fn closures_of_every_signature_need_no_error_type() {
    let server = Server::new("tools", "1")
        .tool(Tool::new("none", async || Ok("none".to_owned())))
        .tool(Tool::new("args", async |args: Greet| Ok(args.name)))
        .tool(Tool::new("cx", async |cx: Context| {
            Ok(cx.server().name().to_owned())
        }))
        .tool(Tool::new("both", async |args: Greet, cx: Context| {
            Ok(format!("{} at {}", args.name, cx.server().name()))
        }))
        .tool(Tool::blocking("blocking", |args: Greet| Ok(args.name)))
        .tool(Tool::new("once", async |cx: Context| {
            let first = cx.once("first", async || Ok(1)).await?;
            let second = cx.exactly_once("second", async || Ok(2)).await?;
            Ok((first + second).to_string())
        }));
    let mut peer = peer(server).await;

    for (tool, text) in [
        ("none", "none"),
        ("args", "Ada"),
        ("cx", "tools"),
        ("both", "Ada at tools"),
        ("blocking", "Ada"),
        ("once", "3"),
    ] {
        assert_eq!(call(&mut peer, tool).await, (text.to_owned(), Value::Null));
    }
}

#[tokio::test]
async fn infallible_tools_of_every_signature_return_their_value() {
    let server = Server::new("tools", "1")
        .tool(Tool::infallible("none", async || "none".to_owned()))
        .tool(Tool::infallible("args", async |args: Greet| args.name))
        .tool(Tool::infallible("cx", async |cx: Context| {
            cx.server().name().to_owned()
        }))
        .tool(Tool::infallible(
            "both",
            async |args: Greet, cx: Context| format!("{} at {}", args.name, cx.server().name()),
        ));
    let mut peer = peer(server).await;

    for (tool, text) in [
        ("none", "none"),
        ("args", "Ada"),
        ("cx", "tools"),
        ("both", "Ada at tools"),
    ] {
        assert_eq!(call(&mut peer, tool).await, (text.to_owned(), Value::Null));
    }
}

#[tokio::test]
async fn raw_tools_accept_every_signature() {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let raw = || schema.clone();
    let server = Server::new("tools", "1")
        .tool(Tool::raw("none", raw(), async || Ok("none".to_owned())))
        .tool(Tool::raw("args", raw(), async |args: Value| {
            Ok(args["name"].as_str().unwrap_or_default().to_owned())
        }))
        .tool(Tool::raw("cx", raw(), async |cx: Context| {
            Ok(cx.server().name().to_owned())
        }))
        .tool(Tool::raw(
            "both",
            raw(),
            async |args: Greet, cx: Context| Ok(format!("{} at {}", args.name, cx.server().name())),
        ));
    let mut peer = peer(server).await;

    for (tool, text) in [
        ("none", "none"),
        ("args", "Ada"),
        ("cx", "tools"),
        ("both", "Ada at tools"),
    ] {
        assert_eq!(call(&mut peer, tool).await, (text.to_owned(), Value::Null));
    }
}

#[tokio::test]
async fn other_handlers_need_no_error_type() {
    let server = Server::new("all", "1")
        .prompt(
            Prompt::new("greet", async |args: Greet| {
                Ok(format!("Greet {}.", args.name))
            })
            .complete("name", async |request: CompletionRequest| {
                Ok(vec![format!("{}a", request.value)])
            }),
        )
        .resource(Resource::new("all://one", "one", async || Ok("one")))
        .template(ResourceTemplate::new(
            "all://item/{id}",
            "item",
            async |variables: Variables| Ok(variables["id"].clone()),
        ))
        .template(ResourceTemplate::new(
            "all://of/{id}",
            "of",
            async |variables: Variables, cx: Context| {
                Ok(format!("{} of {}", variables["id"], cx.server().name()))
            },
        ))
        .extension(
            Extension::new("com.example/all").method("all/greet", async |args: Greet| {
                Ok(Greeting { text: args.name })
            }),
        );
    let mut peer = peer(server).await;

    let prompt = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let response = peer.call("prompts/get", prompt).await;
    let message = &response["result"]["messages"][0]["content"]["text"];
    assert_eq!(message, "Greet Ada.");
    for (uri, text) in [
        ("all://one", "one"),
        ("all://item/7", "7"),
        ("all://of/7", "7 of all"),
    ] {
        let response = peer.call("resources/read", json!({ "uri": uri })).await;
        assert_eq!(response["result"]["contents"][0]["text"], text);
    }
    let completion = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "name", "value": "Ad" },
    });
    let response = peer.call("completion/complete", completion).await;
    assert_eq!(response["result"]["completion"]["values"], json!(["Ada"]));
    let response = peer.call("all/greet", json!({ "name": "Ada" })).await;
    assert_eq!(response["result"]["text"], "Ada");
}

#[tokio::test]
async fn question_mark_converts_any_error_to_an_incident() {
    let server = Server::new("errors", "1")
        .tool(Tool::new("io", async || Ok(fail()?)))
        .tool(Tool::new("boxed", async || Ok(fail_boxed().internal()?)))
        .resource(Resource::new("errors://io", "io", async || Ok(fail()?)))
        .resource(Resource::new("errors://boxed", "boxed", async || {
            Ok(fail_boxed().internal()?)
        }));
    let mut peer = peer(server).await;

    for tool in ["io", "boxed"] {
        let (text, is_error) = call(&mut peer, tool).await;
        assert!(
            text.contains("incident") && !text.contains("fire"),
            "{text}"
        );
        assert_eq!(is_error, true);
    }
    for uri in ["errors://io", "errors://boxed"] {
        let response = peer.call("resources/read", json!({ "uri": uri })).await;
        let message = response["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(response["error"]["code"], -32603);
        assert!(
            message.contains("incident") && !message.contains("fire"),
            "{message}"
        );
    }
}

#[test]
fn internal_errors_keep_their_text_and_source_for_the_log() {
    let error = fail().internal().unwrap_err();
    assert_eq!(error.to_string(), "disk on fire");
    assert!(error.source().is_none());
    assert_eq!(ToolError::from(error).to_string(), "disk on fire");
}

fn find(name: &str) -> Result<String, RequestError> {
    match name {
        "Ada" => Ok("Lovelace".to_owned()),
        "" => Err(RequestError::invalid("`name` is empty")),
        _ => Err(RequestError::not_found()),
    }
}

fn check(name: &str) -> Result<(), ToolError> {
    match name {
        "Ada" => Ok(()),
        _ => Err(ToolError::new("only `Ada` is known").caused_by("a test")),
    }
}

#[tokio::test]
async fn errors_of_requests_are_readable_for_models() {
    let server = Server::new("errors", "1")
        .tool(Tool::new("missing", async || Ok(find("Bob")?)))
        .tool(Tool::new("invalid", async || Ok(find("")?)));
    let mut peer = peer(server).await;

    let expected = |text: &str| (text.to_owned(), Value::Bool(true));
    assert_eq!(call(&mut peer, "missing").await, expected("not found"));
    assert_eq!(
        call(&mut peer, "invalid").await,
        expected("`name` is empty")
    );
}

#[tokio::test]
async fn errors_of_tools_are_invalid_parameters_for_requests() {
    let server =
        Server::new("errors", "1").resource(Resource::new("errors://check", "check", async || {
            check("Bob")?;
            Ok("checked")
        }));
    let mut peer = peer(server).await;

    let uri = json!({ "uri": "errors://check" });
    let response = peer.call("resources/read", uri).await;
    assert_eq!(response["error"]["code"], -32602);
    assert_eq!(response["error"]["message"], "only `Ada` is known");
}

#[tokio::test]
async fn not_found_stays_not_found_inside_once() {
    let server = Server::new("errors", "1").resource(Resource::new(
        "errors://once",
        "once",
        async |cx: Context| {
            let found = cx.once("find", async || Ok(find("Bob")?)).await?;
            Ok(found)
        },
    ));
    let mut peer = peer(server).await;

    let uri = json!({ "uri": "errors://once" });
    let response = peer.call("resources/read", uri).await;
    assert_eq!(response["error"]["code"], -32002);
    assert_eq!(response["error"]["data"]["uri"], "errors://once");
}

#[tokio::test]
async fn a_prompt_added_while_the_server_runs_is_announced_and_available() {
    let server = Server::new("prompts", "1").prompt(Prompt::new("old", async || Ok("Old.")));
    let mut changes = ChangeRecorder::new(&server);
    let mut peer = peer(server.clone()).await;

    server.add_prompt(Prompt::new("new", async || Ok("New.")));

    assert_eq!(changes.take(), [ServerChange::PromptsChanged]);
    let response = peer.call("prompts/get", json!({ "name": "new" })).await;
    let message = &response["result"]["messages"][0]["content"]["text"];
    assert_eq!(message, "New.");
}

#[tokio::test]
async fn every_parameter_of_a_sampling_request_can_be_set() {
    let ask = async |cx: Context| {
        let mut request = SamplingBuilder::text("Say hello.");
        request.params_mut().stop_sequences = Some(vec!["!".to_owned()]);
        let result = cx.sample("hello", request).await?;
        Ok(result.text())
    };
    let server = Server::new("sampling", "1").tool(Tool::new("ask", ask));
    let mut peer = testing::Peer::connect(server)
        .respond_with(|_: &str, params: &Value| {
            let text = params["stopSequences"].to_string();
            json!({ "role": "assistant", "model": "none", "content": { "type": "text", "text": text } })
        })
        .await;

    let response = peer.call_tool("ask", json!({})).await;

    assert_eq!(response.text(), r#"["!"]"#);
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only read")]
struct Everything {
    small: u32,
    signed: i8,
    ratio: f64,
    flag: bool,
    names: Vec<String>,
    inner: Greet,
    choice: Choice,
    pair: (u8, u8),
    maybe: Option<u16>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Yes,
    No,
}

#[tokio::test]
async fn argument_errors_use_the_words_of_json() {
    let tool = Tool::new("everything", async |_: Everything| Ok(String::new()));
    let mut peer = peer(Server::new("arguments", "1").tool(tool)).await;
    let valid = json!({
        "small": 1, "signed": 1, "ratio": 1, "flag": true, "names": [], "inner": { "name": "Ada" },
        "choice": "yes", "pair": [1, 2],
    });
    for (member, value, expected) in [
        ("small", json!("much"), "integer from 0 to 4294967295"),
        ("signed", json!(200), "integer from -128 to 127"),
        ("ratio", json!("x"), "number"),
        ("flag", json!(1), "boolean"),
        ("names", json!({}), "array"),
        ("inner", json!([]), "object"),
        ("choice", json!("perhaps"), "\"yes\" or \"no\""),
        ("pair", json!([1]), "array of 2 items"),
        ("maybe", json!(-1), "integer from 0 to 65535"),
    ] {
        let mut arguments = valid.clone();
        arguments[member] = value;
        let response = peer.call_tool("everything", arguments).await;
        let text = response["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_default();
        assert!(text.contains(&format!("`arguments.{member}`")), "{text}");
        assert!(text.contains(&format!("expected {expected}")), "{text}");
        for rust in [
            "u32", "i8", "f64", "bool ", "sequence", "map", "struct", "enum", "tuple",
        ] {
            assert!(!text.contains(rust), "{text}");
        }
    }
}
