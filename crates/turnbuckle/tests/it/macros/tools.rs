use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle::{Context, Server, TaskSupport, Tool, ToolError, ToolResult, tool, types::Icon};

use crate::macros::peer::{request, request_both, server};

#[derive(Serialize, JsonSchema)]
struct Forecast {
    /// In a word.
    summary: String,
    days: u8,
}

fn three() -> u8 {
    3
}

/// Forecast for one city.
///
/// Looks at the sky.
#[tool(
    title = "Weather",
    read_only,
    destructive = false,
    idempotent,
    open_world
)]
#[serde(rename_all = "camelCase")]
async fn forecast(
    /// City name, for example "Oslo".
    city_name: String,
    cx: Context,
    /// Days ahead.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 7))]
    mut days: u8,
    unit: Option<String>,
) -> Result<Forecast, ToolError> {
    if city_name.is_empty() {
        return Err(ToolError::new("`cityName` must not be empty"));
    }
    cx.progress(1, 2).await;
    days += 1;
    Ok(Forecast {
        summary: format!("{city_name} {unit:?}"),
        days,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ForecastArguments {
    /// City name, for example "Oslo".
    city_name: String,
    /// Days ahead.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 7))]
    days: u8,
    unit: Option<String>,
}

async fn forecast_by_hand(args: ForecastArguments, cx: Context) -> Result<Forecast, ToolError> {
    forecast(args.city_name, cx, args.days, args.unit).await
}

fn forecasts() -> [Server; 2] {
    let by_hand = Tool::new("forecast", forecast_by_hand)
        .description("Forecast for one city.\n\nLooks at the sky.")
        .title("Weather")
        .read_only()
        .destructive(false)
        .idempotent()
        .open_world(true);
    [forecast::tool(), by_hand].map(|tool| server().tool(tool))
}

#[tokio::test]
async fn a_tool_is_listed_as_if_built_by_hand() {
    let answer = request_both(&forecasts(), "tools/list", json!({})).await;

    let tool = &answer["result"]["tools"][0];
    assert_eq!(tool["name"], "forecast");
    assert_eq!(tool["inputSchema"]["required"], json!(["cityName"]));
    assert_eq!(tool["inputSchema"]["properties"]["days"]["maximum"], 7);
    let city = &tool["inputSchema"]["properties"]["cityName"];
    assert_eq!(city["description"], "City name, for example \"Oslo\".");
}

#[tokio::test]
async fn a_tool_answers_as_if_built_by_hand() {
    for arguments in [
        json!({ "cityName": "Oslo", "days": 2, "unit": "K" }),
        json!({ "cityName": "Oslo" }),
        json!({ "cityName": "" }),
        json!({ "cityName": 1 }),
        json!({}),
    ] {
        let call = json!({ "name": "forecast", "arguments": arguments });
        request_both(&forecasts(), "tools/call", call).await;
    }
    let call = json!({ "name": "forecast", "arguments": { "cityName": "Oslo" } });
    let answer = request(&forecasts()[0], "tools/call", call).await;
    assert_eq!(answer["result"]["structuredContent"]["days"], 4);
}

#[tool]
async fn nothing() -> Result<ToolResult, ToolError> {
    Ok(ToolResult::empty())
}

#[tool]
async fn context_alone(cx: Context) -> Result<String, ToolError> {
    Ok(cx.request_id().to_string())
}

/// Counts words.
#[doc = include_str!("peer.rs")]
#[tool(blocking, name = "count-words", description = concat!("Counts ", "them"))]
fn count(text: String) -> Result<usize, std::num::ParseIntError> {
    Ok(text.split_whitespace().count())
}

#[tool(blocking)]
fn which_thread(_: Context) -> Result<bool, ToolError> {
    Ok(std::thread::current().name() == Some("tokio-rt-worker"))
}

#[tokio::test]
async fn every_shape_of_function_is_a_tool() {
    #[derive(Deserialize, JsonSchema)]
    struct Text {
        text: String,
    }
    let attributes = server()
        .tool(nothing::tool())
        .tool(context_alone::tool())
        .tool(count::tool())
        .tool(which_thread::tool());
    let builders = server()
        .tool(Tool::new("nothing", nothing))
        .tool(Tool::new("context_alone", context_alone))
        .tool(
            Tool::blocking("count-words", |args: Text| Ok(count(args.text)?))
                .description("Counts them"),
        )
        .tool(Tool::blocking("which_thread", |cx: Context| {
            which_thread(cx)
        }));
    let servers = [attributes, builders];

    request_both(&servers, "tools/list", json!({})).await;
    for name in ["nothing", "context_alone", "which_thread"] {
        request_both(&servers, "tools/call", json!({ "name": name })).await;
    }
    let call = json!({ "name": "count-words", "arguments": { "text": "one two" } });
    let answer = request_both(&servers, "tools/call", call).await;
    assert_eq!(answer["result"]["structuredContent"], 2);
}

/// A type with the name that generated code might have used.
#[derive(Deserialize, JsonSchema)]
struct Arguments {
    arguments: u8,
}

#[tool(open_world = false)]
async fn arguments(arguments: Arguments, cx: Context, r#type: u8) -> Result<Value, ToolError> {
    drop(cx);
    Ok(json!({ "sum": arguments.arguments + r#type }))
}

#[tool]
async fn r#match(r#match: String) -> Result<String, ToolError> {
    Ok(r#match)
}

#[tokio::test]
async fn names_do_not_get_into_each_others_way() {
    let server = server().tool(arguments::tool()).tool(r#match::tool());

    let call =
        json!({ "name": "arguments", "arguments": { "arguments": { "arguments": 1 }, "type": 2 } });
    let sum = request(&server, "tools/call", call).await;
    let call = json!({ "name": "match", "arguments": { "match": "same" } });
    let same = request(&server, "tools/call", call).await;

    assert_eq!(sum["result"]["structuredContent"]["sum"], 3);
    assert_eq!(same["result"]["content"][0]["text"], "same");
}

#[tokio::test]
async fn the_value_goes_on_as_a_builder() {
    let tool = nothing::tool()
        .icon(Icon::new("https://example.com/none.svg"))
        .output_schema(json!({ "type": "object" }));

    let answer = request(&server().tool(tool), "tools/list", json!({})).await;

    let tool = &answer["result"]["tools"][0];
    assert_eq!(tool["icons"][0]["src"], "https://example.com/none.svg");
    assert_eq!(tool["outputSchema"], json!({ "type": "object" }));
}

mod elsewhere {
    pub(crate) use turnbuckle as library;
    use turnbuckle::{ToolError, tool};

    /// A tool in another module, with the path of the library as an option.
    #[tool(crate = crate::macros::tools::elsewhere::library)]
    pub(crate) async fn greet(name: String) -> Result<String, ToolError> {
        Ok(format!("Hello, {name}!"))
    }

    #[cfg(not(test))]
    compile_error!("this is a test");

    #[tool]
    #[cfg(not(test))]
    async fn left_out() -> Result<String, NoSuchType> {
        unreachable!()
    }
}

#[tokio::test]
async fn one_import_brings_function_and_tool() {
    use elsewhere::greet;

    let by_call = greet("Ada".to_owned()).await.ok();
    let call = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    let by_tool = request(&server().tool(greet::tool()), "tools/call", call).await;

    assert_eq!(by_call.as_deref(), Some("Hello, Ada!"));
    assert_eq!(by_tool["result"]["content"][0]["text"], "Hello, Ada!");
}

/// Runs for a long time.
#[tool(task = TaskSupport::Optional, task_after_input)]
async fn long_work(cx: Context) -> Result<bool, ToolError> {
    cx.into_task().await?;
    Ok(cx.is_task())
}

#[tokio::test]
async fn a_tool_may_become_a_task() {
    let by_hand = Tool::new("long_work", async |cx: Context| {
        cx.into_task().await?;
        Ok(cx.is_task())
    })
    .description("Runs for a long time.")
    .task(TaskSupport::Optional)
    .task_after_input();

    let servers = [server().tool(long_work::tool()), server().tool(by_hand)];
    let answer = request_both(&servers, "server/discover", json!({})).await;
    let extensions = &answer["result"]["capabilities"]["extensions"];
    assert!(extensions["io.modelcontextprotocol/tasks"].is_object());

    // A client without tasks gets the result of an ordinary call.
    let answer = request_both(&servers, "tools/call", json!({ "name": "long_work" })).await;
    assert_eq!(answer["result"]["structuredContent"], json!(false));
}
