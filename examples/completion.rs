//! Completion: what clients offer while the user types the argument of a prompt or the variable of a template.
//!
//! ```console
//! $ cargo run -q --example completion                # on stdio
//! $ cargo run -q --example completion -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle::{
    CompletionRequest, Context, Prompt, RequestError, ResourceTemplate, Server, Variables, stdio,
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

/// A function sees what was typed, and the arguments that are settled already.
async fn city(typed: CompletionRequest, _: Context) -> Result<Vec<String>, RequestError> {
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
    // A list offers its values that begin with what was typed.
    let countries = ["Italy", "Norway"];
    Server::new("travel", "1.0.0")
        .prompt(
            Prompt::new("trip", trip)
                .complete("country", countries)
                .complete("city", city),
        )
        .template(
            ResourceTemplate::new("flags://{country}", "flag", |variables, _: Context| {
                read_flag(variables)
            })
            .complete("country", countries),
        )
}

#[tokio::main]
async fn main() -> Checked {
    if check::is_wanted() {
        return ask(Client::join(server())).await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask(mut client: Client) -> Checked {
    let prompt = json!({ "type": "ref/prompt", "name": "trip" });
    let flags = json!({ "type": "ref/resource", "uri": "flags://{country}" });
    for (reference, argument, typed, country, expected) in [
        (&prompt, "country", "I", "", json!(["Italy"])),
        (&prompt, "city", "r", "Italy", json!(["Rome", "Ravenna"])),
        (&prompt, "city", "r", "Norway", json!(["Røros"])),
        (&prompt, "city", "r", "", json!([])),
        (&flags, "country", "", "", json!(["Italy", "Norway"])),
    ] {
        let found = complete(&mut client, reference, argument, typed, country).await?;
        assert_eq!(found, expected, "{argument} {typed} {country}");
    }
    Ok(())
}

async fn complete(
    client: &mut Client,
    reference: &Value,
    argument: &str,
    typed: &str,
    country: &str,
) -> Checked<Value> {
    let params = json!({
        "ref": reference,
        "argument": { "name": argument, "value": typed },
        "context": { "arguments": { "country": country } },
    });
    let mut result = client.call("completion/complete", params).await?;
    Ok(result["completion"]["values"].take())
}
