//! UI resources of tools (MCP Apps).

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    session::ProbeResponse,
};

/// The URI scheme of UI resources.
const SCHEME: &str = "ui://";
/// The maximum number of UI resources that are read.
const MAX_READ: usize = 5;

pub(super) async fn uri(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let resource_uris = resource_uris(tools)?;
    match resource_uris
        .iter()
        .find(|(_, uri)| !uri.starts_with(SCHEME))
    {
        None => Evidence::from_entries(tools.entries()),
        Some((tool, uri)) => {
            let observed = format!("the UI resource of `{tool}` has the URI `{uri}`");
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

pub(super) async fn readable(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (tool, response) in read_resources(ctx).await? {
        if response.value.get("result").is_none() {
            return Err(response.violation(format!(
                "the UI resource of `{tool}` returns {}",
                response.describe()
            )));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn mime_type(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (tool, response) in read_resources(ctx).await? {
        let contents = &response.value["result"]["contents"];
        let Some(found) = contents.as_array().and_then(|contents| contents.first()) else {
            continue;
        };
        let mime_type = found["mimeType"].as_str().unwrap_or_default();
        let normalized = mime_type.to_ascii_lowercase().replace(' ', "");
        if normalized != "text/html;profile=mcp-app" {
            return Err(response.violation(format!(
                "the UI resource of `{tool}` has the MIME type `{mime_type}`"
            )));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

async fn read_resources(ctx: &CheckContext) -> Result<Vec<(&str, ProbeResponse)>, NotPassed> {
    let resource_uris = resource_uris(ctx.tools().await?)?.into_iter();
    let session = ctx.session().await?;
    let mut read_resources = Vec::new();
    for (tool, uri) in resource_uris
        .filter(|(_, it)| it.starts_with(SCHEME))
        .take(MAX_READ)
    {
        let response = session
            .request("resources/read", json!({ "uri": uri }))
            .await;
        read_resources.push((tool, response.map_err(NotPassed::into_not_tested)?));
    }
    Ok(read_resources)
}

/// Returns the names of tools with a UI resource, each with its URI.
fn resource_uris(tools: &[Value]) -> Result<Vec<(&str, &str)>, NotPassed> {
    let found: Vec<_> = tools.iter().filter_map(resource_uri).collect();
    if found.is_empty() {
        Err(NotPassed::not_applicable("no tool has a UI resource"))
    } else {
        Ok(found)
    }
}

/// Returns a tool's name and the URI of its UI resource; the flat key is the older form.
fn resource_uri(tool: &Value) -> Option<(&str, &str)> {
    let meta = &tool["_meta"];
    let nested = meta["ui"]["resourceUri"].as_str();
    let uri = nested.or_else(|| meta["ui/resourceUri"].as_str());
    Some((tool["name"].as_str()?, uri?))
}
