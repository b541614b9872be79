//! Pages that tools bring with them, for clients that show them.

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    session::ProbeResponse,
};

/// How the addresses of pages begin.
const SCHEME: &str = "ui://";
/// How many pages are read.
const PAGES: usize = 5;

pub(super) async fn address(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let addresses = addresses(tools)?;
    match addresses
        .iter()
        .find(|(_, address)| !address.starts_with(SCHEME))
    {
        None => Evidence::from_entries(tools.entries()),
        Some((tool, address)) => {
            let observed = format!("the page of `{tool}` is at `{address}`");
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

pub(super) async fn readable(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (tool, response) in pages(ctx).await? {
        if response.value.get("result").is_none() {
            return Err(response.violation(format!(
                "the page of `{tool}` gives {}",
                response.describe()
            )));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn kind(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (tool, response) in pages(ctx).await? {
        let contents = &response.value["result"]["contents"];
        let Some(found) = contents.as_array().and_then(|contents| contents.first()) else {
            continue;
        };
        let kind = found["mimeType"].as_str().unwrap_or_default();
        let plain = kind.to_ascii_lowercase().replace(' ', "");
        if plain != "text/html;profile=mcp-app" {
            return Err(response.violation(format!("the page of `{tool}` is of the type `{kind}`")));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

async fn pages(ctx: &CheckContext) -> Result<Vec<(&str, ProbeResponse)>, NotPassed> {
    let addresses = addresses(ctx.tools().await?)?.into_iter();
    let session = ctx.session().await?;
    let mut pages = Vec::new();
    for (tool, address) in addresses
        .filter(|(_, it)| it.starts_with(SCHEME))
        .take(PAGES)
    {
        let response = session
            .request("resources/read", json!({ "uri": address }))
            .await;
        pages.push((tool, response.map_err(NotPassed::as_not_tested)?));
    }
    Ok(pages)
}

/// Returns the tools that name a page, each with its address.
fn addresses(tools: &[Value]) -> Result<Vec<(&str, &str)>, NotPassed> {
    let found: Vec<_> = tools.iter().filter_map(address_of).collect();
    if found.is_empty() {
        Err(NotPassed::not_applicable("no tool has a page"))
    } else {
        Ok(found)
    }
}

/// Returns a tool's name and the address of its page; the flat key is the older spelling.
fn address_of(tool: &Value) -> Option<(&str, &str)> {
    let meta = &tool["_meta"];
    let nested = meta["ui"]["resourceUri"].as_str();
    let address = nested.or_else(|| meta["ui/resourceUri"].as_str());
    Some((tool["name"].as_str()?, address?))
}
