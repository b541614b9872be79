//! A server with one of each feature.

use std::{cell::RefCell, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnbuckle_protocol::types::LogLevel;
use turnbuckle_server::{
    CompletionRequest, Context, Elicitation, Prompt, Resource, ResourceTemplate, SamplingBuilder,
    Server, Tool, ToolResult, Variables,
};
use turnbuckle_store::Store;

/// The names of its tools, in the order of the list.
pub const TOOLS: [&str; 9] = [
    "echo", "measure", "raw", "steps", "nap", "change", "sign", "visit", "hoard",
];

/// Returns a fresh server.
pub fn server() -> Server {
    thread_local!(static BUILT: RefCell<Server> = RefCell::new(build()));
    BUILT.with_borrow(Server::clone).store(Store::memory())
}

fn build() -> Server {
    let server = Server::new("offer", "1")
        .instructions("Try everything.")
        .state_keys(["what no peer should know"])
        .page_size(3)
        .lenient(true);
    resources_and_prompts(tools_with_input(tools_without_input(server)))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Metre,
    Foot,
}

#[derive(Deserialize, JsonSchema)]
struct Measure {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
    #[schemars(extend("x-mcp-header" = "Limit"))]
    limit: Option<i64>,
    #[serde(default)]
    values: Vec<f64>,
    unit: Option<Unit>,
}

#[derive(Serialize, JsonSchema)]
struct Measured {
    region: String,
    count: usize,
    metres: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    steps: u8,
}

fn tools_without_input(server: Server) -> Server {
    let raw = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    server
        .tool(Tool::new("echo", async |echo: Echo| Ok(echo.message)))
        .tool(Tool::new("measure", async |measure: Measure| {
            let factor = match measure.unit {
                Some(Unit::Foot) => 0.3048,
                Some(Unit::Metre) | None => 1.0,
            };
            let limit = usize::try_from(measure.limit.unwrap_or(100)).unwrap_or_default();
            let metres = measure.values.iter().take(limit).sum::<f64>() * factor;
            Ok(Measured {
                region: measure.region.unwrap_or_default(),
                count: measure.values.len(),
                // JSON cannot represent infinity.
                metres: metres.clamp(f64::MIN, f64::MAX),
            })
        }))
        .tool(Tool::raw("raw", raw, async |arguments: Value, _| {
            Ok(ToolResult::structured(json!({ "got": arguments })))
        }))
        .tool(Tool::new("steps", async |steps: Steps, cx: Context| {
            for step in 1..=steps.steps.min(20) {
                cx.progress(step, steps.steps).await;
                cx.log(LogLevel::Info, json!({ "step": step })).await;
                tokio::task::yield_now().await;
            }
            Ok("done".to_owned())
        }))
        .tool(Tool::new("nap", async |cx: Context| {
            cx.close_stream();
            tokio::time::sleep(Duration::from_secs(20)).await;
            cx.progress(1, 1).await;
            Ok("awake".to_owned())
        }))
        .tool(Tool::new("change", async |cx: Context| {
            let late = Tool::new("late", async || Ok("late".to_owned()));
            if !cx.server().remove_tool("late") {
                cx.server().add_tool(late);
            }
            cx.resource_updated("note://a");
            Ok("changed".to_owned())
        }))
}

#[derive(Deserialize, JsonSchema)]
struct Paper {
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Signature {
    /// The signer.
    name: String,
    age: Option<u8>,
}

fn tools_with_input(server: Server) -> Server {
    server
        .tool(Tool::new("sign", async |paper: Paper, cx: Context| {
            let elicitation = Elicitation::form::<Signature>("Who signs?").key("name");
            let Some(signature) = cx.elicit(elicitation).await?.accepted() else {
                return Ok("not signed".to_owned());
            };
            let draft = cx.once("draft", async || Ok(paper.title.clone())).await?;
            let message = cx.sample("polish", SamplingBuilder::text(&draft)).await?;
            let roots = cx.roots("roots").await?;
            Ok(format!(
                "{draft} by {} ({:?}), {} in {} roots",
                signature.name,
                signature.age,
                message.model,
                roots.len()
            ))
        }))
        .tool(Tool::new("visit", async |cx: Context| {
            let page = Elicitation::url("Look there", "https://page.example/");
            let (page, roots) = tokio::join!(cx.elicit(page.key("page")), cx.roots("roots"));
            let (visited, roots) = (page?.accepted().is_some(), roots?.len());
            Ok(format!("{visited} {roots}"))
        }))
        .tool(Tool::new("hoard", async |paper: Paper, cx: Context| {
            // Larger than the limit of a `requestState`.
            let hoard = cx.once("hoard", async || Ok("x".repeat(70_000))).await?;
            cx.elicit(Elicitation::form::<Signature>("Name of the signer?").key("name"))
                .await?;
            Ok(format!("{} {}", paper.title, hoard.len()))
        }))
}

#[derive(Deserialize, JsonSchema)]
struct GreetArgs {
    name: String,
    tone: Option<String>,
}

fn resources_and_prompts(server: Server) -> Server {
    let any = async |variables: Variables, _: Context| Ok(format!("{variables:?}"));
    let complete =
        async |typed: CompletionRequest, _: Context| Ok(vec![format!("{}!", typed.value)]);
    server
        .resource(Resource::text("note://a", "a", "a note"))
        .resource(Resource::bytes(
            "note://b",
            "b",
            "image/png",
            vec![0, 159, 146, 150],
        ))
        .template(ResourceTemplate::new("file:///{+path}", "files", any))
        .template(
            ResourceTemplate::new("note://{owner}/{id}{?revision,tag*}", "notes", any)
                .complete("owner", ["ann", "bob"]),
        )
        .template(ResourceTemplate::new("tree:{/id*}{#part}", "tree", any))
        .prompt(
            Prompt::new("greet", async |greeting: GreetArgs| {
                let tone = greeting.tone.unwrap_or_default();
                Ok(format!("Greet {} {tone}", greeting.name))
            })
            .complete("name", complete)
            .complete("tone", ["warm", "cold"]),
        )
        .prompt(Prompt::new("ask", async |cx: Context| {
            let elicitation = Elicitation::form::<Signature>("Who?").key("name");
            let signature = cx.elicit(elicitation).await?;
            let name = signature.accepted().map(|signature| signature.name);
            Ok(name.unwrap_or_default())
        }))
}
