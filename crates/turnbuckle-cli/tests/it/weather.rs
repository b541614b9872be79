//! The server of the tests: a small weather station.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnbuckle_protocol::types::{LogLevel, PromptMessage};
use turnbuckle_schema::SchemaValidator;
use turnbuckle_server::{
    CompletionRequest, Context, Messages, Prompt, RequestError, Resource, ResourceTemplate, Server,
    Skill, Skills, Tool, ToolError, ToolResult,
};

/// Returns a server with a tool for each kind of output.
pub(crate) fn server() -> Server {
    let server = Server::new("weather", "1.0.0")
        .validate_input_with::<ToolSchema>(true)
        .title("Weather station")
        .instructions("Forecasts for European cities.");
    let umbrella = Skill::new("umbrella", "When to take one.", "Look out of the window.\n");
    let server = server.skills(Skills::new([umbrella.expect("its name is one")]));
    with_prompts(with_resources(with_tools(server)))
}

/// The validator of `turnbuckle-schema`. The feature `validation` of the server would be on in the examples, too, because
/// `cargo run --example` also selects this package.
struct ToolSchema(SchemaValidator);

impl turnbuckle_server::SchemaValidator for ToolSchema {
    fn compile(schema: &Map<String, Value>) -> Result<Self, String> {
        let validator = SchemaValidator::new(schema).map_err(|error| error.to_string())?;
        Ok(Self(validator))
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        Ok(self.0.check(name, value)?)
    }
}

fn with_tools(server: Server) -> Server {
    let arguments = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "City name, for example \"Oslo\"."},
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3, "description": "Days ahead."},
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    let summary = json!({
        "type": "object",
        "properties": {"summary": {"type": "string"}, "high": {"type": "number"}},
        "required": ["summary", "high"],
    });
    let forecast = Tool::raw("forecast", arguments, |args: Value, _: Context| {
        forecast(args)
    })
    .description("Forecast for one city")
    .output_schema(summary)
    .read_only();
    server
        .tool(forecast)
        .tool(Tool::new("measure", measure).description("Measures, which takes a while"))
        .tool(Tool::new("picture", picture).description("Shows the sky"))
        .tool(Tool::new("shout", shout).description("Says what no terminal should obey"))
        .tool(Tool::new("sleep", sleep).description("Answers much later"))
        .tool(Tool::new("rename", rename).description("Asks for a new name"))
}

async fn forecast(args: Value) -> Result<Value, ToolError> {
    let days = args["days"].as_i64().unwrap_or(3);
    let city = args["city"].as_str().unwrap_or_default();
    if city == "Atlantis" {
        return Err(ToolError::new("no station in Atlantis"));
    }
    Ok(json!({"summary": format!("Sun over {city} for {days} days"), "high": 21.5}))
}

async fn measure(cx: Context) -> Result<String, ToolError> {
    cx.log(LogLevel::Info, "warming up").await;
    cx.progress_message(1, Some(2.0), "half way").await;
    cx.resource_updated("weather://sky");
    Ok("21.5 degrees".to_owned())
}

async fn picture() -> Result<ToolResult, ToolError> {
    Ok(ToolResult::default().image("AQID", "image/png"))
}

async fn shout() -> Result<String, ToolError> {
    Ok("\u{1b}[31mred\u{1b}[0m \u{202e}drawkcab\u{7}".to_owned())
}

async fn sleep() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(60)).await;
    Ok("good morning".to_owned())
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Name {
    /// How the station is called from now on.
    name: String,
}

async fn rename(cx: Context) -> Result<String, ToolError> {
    use turnbuckle_server::{Elicitation, ElicitationOutcome};
    match cx
        .elicit(Elicitation::form::<Name>("How shall it be called?").key("name"))
        .await?
    {
        ElicitationOutcome::Accepted(Name { name }) => Ok(format!("It is {name} now.")),
        ElicitationOutcome::Declined => Ok("It keeps its name.".to_owned()),
        ElicitationOutcome::Cancelled => Err(ToolError::new("the user did not respond")),
    }
}

fn with_resources(server: Server) -> Server {
    #[derive(Deserialize)]
    struct City {
        city: String,
    }
    let read = |City { city }: City, _: Context| async move {
        match city.as_str() {
            "Atlantis" => Err(RequestError::not_found()),
            _ => Ok(format!("{city}: sunny\n")),
        }
    };
    let complete = |typed: CompletionRequest, _: Context| async move {
        let cities = ["Oslo", "Odense", "Bergen"].into_iter();
        let fitting = cities.filter(|city| city.starts_with(&*typed.value));
        Ok(fitting.map(str::to_owned).collect::<Vec<_>>())
    };
    server
        .resource(
            Resource::text("weather://about", "about", "A station in Oslo.\n")
                .description("What this is"),
        )
        .resource(Resource::bytes(
            "weather://sky",
            "sky",
            "image/png",
            vec![1, 2, 3, 255],
        ))
        .template(
            ResourceTemplate::new("weather://city/{city}", "city", read)
                .description("The weather of a city")
                .mime_type("text/plain")
                .complete("city", complete),
        )
}

fn with_prompts(server: Server) -> Server {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Trip {
        /// Where to go.
        city: String,
    }
    let trip = |Trip { city }: Trip, _: Context| async move {
        let message = PromptMessage::user(format!("What should I pack for {city}?"));
        Ok(Messages::from(vec![message]))
    };
    server.prompt(Prompt::new("pack", trip).description("Helps to pack"))
}
