//! Completion of prompt arguments and template variables while the user types.
//!
//! ```console
//! $ cargo example completion                # on stdio
//! $ cargo example completion -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/completion.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{
    CompletionRequest, Prompt, RequestError, ResourceTemplate, Server, Variables, stdio,
};

#[derive(Deserialize, JsonSchema)]
struct Trip {
    country: String,
    city: String,
}

async fn trip(args: Trip) -> Result<String, RequestError> {
    Ok(format!("Plan two days in {}, {}.", args.city, args.country))
}

fn cities(country: &str) -> &'static [&'static str] {
    match country {
        "Italy" => &["Rome", "Ravenna", "Turin"],
        "Norway" => &["Oslo", "Bergen", "Røros"],
        _ => &[],
    }
}

/// A completer gets the typed text and the arguments that already have a value.
async fn city(typed: CompletionRequest) -> Result<Vec<String>, RequestError> {
    let country = typed.arguments.get("country").map_or("", String::as_str);
    let beginning = typed.value.to_lowercase();
    Ok(cities(country)
        .iter()
        .filter(|city| city.to_lowercase().starts_with(&beginning))
        .map(ToString::to_string)
        .collect())
}

async fn read_flag(variables: Variables) -> Result<String, RequestError> {
    match variables["country"].as_str() {
        "Italy" => Ok("green, white, red".to_owned()),
        "Norway" => Ok("red, with a blue cross in white".to_owned()),
        _ => Err(RequestError::not_found()),
    }
}

fn server() -> Server {
    // A list completes with its values that start with the typed text.
    let countries = ["Italy", "Norway"];
    Server::new("travel", "1.0.0")
        .prompt(
            Prompt::new("trip", trip)
                .complete("country", countries)
                .complete("city", city),
        )
        .template(
            ResourceTemplate::new("flags://{country}", "flag", |variables| {
                read_flag(variables)
            })
            .complete("country", countries),
        )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
