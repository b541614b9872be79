//! What a server has, found out by its lists.

use serde_json::{Value, json};

use crate::outcome::Unmet;
use crate::visit::Visit;

/// How many pages of a list are read.
const PAGES: usize = 20;

/// What a server has. A list that it does not declare is empty.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    pub(crate) tools: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    pub(crate) templates: Vec<Value>,
    pub(crate) prompts: Vec<Value>,
}

impl Discovered {
    /// Reads all lists.
    pub(crate) async fn of(visit: &Visit) -> Result<Self, Unmet> {
        Ok(Self {
            tools: list(visit, "tools", "tools/list", "tools").await?,
            resources: list(visit, "resources", "resources/list", "resources").await?,
            templates: list(
                visit,
                "resources",
                "resources/templates/list",
                "resourceTemplates",
            )
            .await
            .unwrap_or_default(),
            prompts: list(visit, "prompts", "prompts/list", "prompts").await?,
        })
    }
}

async fn list(
    visit: &Visit,
    capability: &str,
    method: &str,
    field: &str,
) -> Result<Vec<Value>, Unmet> {
    let session = visit.session().await?;
    if session.capabilities().get(capability).is_none() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let mut params = json!({});
    for _ in 0..PAGES {
        let answer = session.ask(method, params).await?;
        let result = answer.result()?;
        all.extend(result[field].as_array().cloned().unwrap_or_default());
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    Ok(all)
}
