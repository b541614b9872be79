//! Tools, a prompt and resources from functions with attributes (feature `macros`).
//!
//! Parameters are arguments, doc comments are descriptions. An attribute creates a builder, so all builder methods are
//! available; `hello.rs` and `everything.rs` use builders without attributes.
//!
//! ```console
//! $ cargo example macros --features macros     # on stdio
//! ```

use std::{error::Error, time::Duration};

use schemars::JsonSchema;
use serde::Serialize;
use turnbuckle::{
    CacheHint, Context, RequestError, Server, ToolError, prompt, resource, stdio, tool, types::Icon,
};

#[derive(Serialize, JsonSchema)]
struct Forecast {
    /// A short summary.
    summary: String,
    /// The highest temperature of each day.
    highs_celsius: Vec<f32>,
}

/// Forecast for one city.
#[tool(title = "Forecast", read_only)]
async fn forecast(
    /// City name, for example "Oslo".
    city: String,
    /// Days ahead, three by default.
    #[schemars(range(min = 1, max = 7))]
    days: Option<u8>,
    cx: Context,
) -> Result<Forecast, ToolError> {
    let days = days.unwrap_or(3);
    if !(1..=7).contains(&days) {
        return Err(ToolError::new("`days` must be between 1 and 7"));
    }
    let mut highs_celsius = Vec::new();
    for day in 1..=days {
        cx.progress(day, days).await;
        highs_celsius.push(20.0 - f32::from(day));
    }
    Ok(Forecast {
        summary: format!("{city} is getting colder."),
        highs_celsius,
    })
}

/// Counts the words of a file.
#[tool(blocking, read_only, idempotent, open_world = false)]
fn count_words(
    /// The path of the file.
    path: String,
) -> Result<usize, ToolError> {
    Ok(std::fs::read_to_string(path)?.split_whitespace().count())
}

/// Plans a day outside.
#[prompt]
async fn outing(
    /// The destination.
    city: String,
    /// The companions.
    company: Option<String>,
) -> Result<String, RequestError> {
    let company = company.as_deref().unwrap_or("your own company");
    Ok(format!("Plan a day in {city} with me and {company}."))
}

/// A description of this server.
#[resource(uri = "weather://about", mime_type = "text/plain")]
async fn about() -> Result<&'static str, RequestError> {
    Ok("The weather in Oslo and Rome, more or less.")
}

/// The climate of one city.
#[resource(uri = "weather://climate/{city}{?month}")]
async fn climate(city: String, month: Option<String>) -> Result<String, RequestError> {
    let month = month.as_deref().unwrap_or("every month");
    match &*city {
        "Oslo" => Ok(format!("Cool in {month}.")),
        "Rome" => Ok(format!("Warm in {month}.")),
        _ => Err(RequestError::not_found()),
    }
}

fn weather() -> Server {
    let cities = ["Oslo", "Rome"];
    Server::new("weather", "1.0.0")
        .tool(forecast::tool().icon(Icon::new("https://example.com/rain.svg")))
        .tool(count_words::tool())
        .prompt(outing::prompt().complete("city", cities))
        .resource(about::resource().cache(CacheHint::public(Duration::from_secs(3600))))
        .template(climate::template().complete("city", cities))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    stdio::serve(weather()).await?;
    Ok(())
}
