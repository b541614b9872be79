//! Pages that tools bring with them, for clients that show them.

use serde_json::{Value, json};

use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::Answer;
use crate::visit::Visit;

/// How the addresses of pages begin.
const SCHEME: &str = "ui://";
/// How many pages are read.
const PAGES: usize = 5;

pub(super) async fn address(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let addresses = addresses(tools)?;
    match addresses
        .iter()
        .find(|(_, address)| !address.starts_with(SCHEME))
    {
        None => Seen::at(tools.entries()),
        Some((tool, address)) => {
            let what = format!("the page of `{tool}` is at `{address}`");
            Err(Unmet::broken(what, tools.entries()))
        }
    }
}

pub(super) async fn readable(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for (tool, answer) in pages(visit).await? {
        if answer.value.get("result").is_none() {
            return Err(answer.broken(format!("the page of `{tool}` gives {}", answer.describe())));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen)
}

pub(super) async fn kind(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for (tool, answer) in pages(visit).await? {
        let contents = &answer.value["result"]["contents"];
        let Some(found) = contents.as_array().and_then(|contents| contents.first()) else {
            continue;
        };
        let kind = found["mimeType"].as_str().unwrap_or_default();
        let plain = kind.to_ascii_lowercase().replace(' ', "");
        if plain != "text/html;profile=mcp-app" {
            return Err(answer.broken(format!("the page of `{tool}` is of the type `{kind}`")));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen)
}

async fn pages(visit: &Visit) -> Result<Vec<(&str, Answer)>, Unmet> {
    let addresses = addresses(visit.tools().await?)?.into_iter();
    let session = visit.session().await?;
    let mut pages = Vec::new();
    for (tool, address) in addresses
        .filter(|(_, it)| it.starts_with(SCHEME))
        .take(PAGES)
    {
        let answer = session
            .ask("resources/read", json!({ "uri": address }))
            .await;
        pages.push((tool, answer.map_err(Unmet::aside)?));
    }
    Ok(pages)
}

/// Returns the tools that name a page, each with its address.
fn addresses(tools: &[Value]) -> Result<Vec<(&str, &str)>, Unmet> {
    let found: Vec<_> = tools.iter().filter_map(address_of).collect();
    match found.is_empty() {
        true => Err(Unmet::not_applicable("no tool has a page")),
        false => Ok(found),
    }
}

/// Returns a tool's name and the address of its page; the flat key is the older spelling.
fn address_of(tool: &Value) -> Option<(&str, &str)> {
    let meta = &tool["_meta"];
    let nested = meta["ui"]["resourceUri"].as_str();
    let address = nested.or_else(|| meta["ui/resourceUri"].as_str());
    Some((tool["name"].as_str()?, address?))
}
