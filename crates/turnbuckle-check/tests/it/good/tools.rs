//! Tools of every kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle_protocol::{
    Meta,
    types::{ContentBlock, Icon, Resource as Link, TextResourceContents},
};
use turnbuckle_server::{Server, Tool, ToolError, ToolResult};

/// Placeholder data for images and audio.
pub(super) const BASE64: &str = "AAAA";

pub(crate) fn register(server: Server) -> Server {
    let mut page = Meta::new();
    page.insert("ui", json!({ "resourceUri": "ui://good/panel" }))
        .expect("the key is a plain name");
    server
        // More than one page.
        .page_size(8)
        .tool(
            Tool::new("add", add)
                .title("Add")
                .description("Adds two numbers")
                .icon(Icon::new("https://example.com/add.png").mime_type("image/png"))
                .read_only(),
        )
        .tool(
            Tool::new("show", show)
                .title("Show")
                .description("Shows content of every kind")
                .read_only(),
        )
        .tool(
            Tool::new("forecast", forecast)
                .title("Forecast")
                .description("Returns a weather forecast")
                .read_only(),
        )
        .tool(
            Tool::new("panel", panel)
                .title("Panel")
                .description("Shows a page with buttons")
                .meta(page)
                .read_only(),
        )
        .tool(
            Tool::new("forget", forget)
                .title("Forget")
                .description("Forgets everything")
                .destructive(true),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    /// The sum.
    sum: f64,
}

async fn add(Two { a, b }: Two) -> Result<Sum, ToolError> {
    Ok(Sum { sum: a + b })
}

async fn show() -> Result<ToolResult, ToolError> {
    let inside = TextResourceContents::new("good://inside", "Inside.").mime_type("text/plain");
    Ok(ToolResult::text("Look.")
        .image(BASE64, "image/png")
        .audio(BASE64, "audio/wav")
        .block(ContentBlock::ResourceLink(Link::new(
            "good://greeting",
            "greeting",
        )))
        .block(ContentBlock::resource(inside)))
}

#[derive(Deserialize, JsonSchema)]
struct Where {
    /// The region.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    /// The day.
    #[schemars(length(min = 1))]
    days: Vec<Day>,
    /// The unit of the temperature.
    unit: Option<Unit>,
}

#[derive(Deserialize, JsonSchema)]
struct Day {
    /// The number of days from now.
    ahead: u8,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

async fn forecast(place: Where) -> Result<String, ToolError> {
    let unit = match place.unit {
        None | Some(Unit::Celsius) => "°C",
        Some(Unit::Fahrenheit) => "°F",
    };
    let days = place.days.iter().map(|day| day.ahead.to_string());
    let days: Vec<_> = days.collect();
    Ok(format!(
        "20 {unit} in {} in {} days",
        place.region,
        days.join(", ")
    ))
}

async fn panel() -> Result<&'static str, ToolError> {
    Ok("There is a page with two buttons.")
}

async fn forget() -> Result<&'static str, ToolError> {
    Ok("Erased.")
}
