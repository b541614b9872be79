//! The tools that may be called.

use serde_json::{Value, json};

use crate::outcome::Unmet;
use crate::visit::Visit;

/// A tool that may be called, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    pub(crate) tool: Value,
    pub(crate) arguments: Value,
}

impl Callable {
    pub(crate) fn name(&self) -> &str {
        self.tool["name"].as_str().unwrap_or_default()
    }
}

/// Returns the tools that may be called.
pub(super) async fn callable(visit: &Visit) -> Result<Vec<Callable>, Unmet> {
    visit.capability("/tools").await?;
    let tools = &visit.discovered().await?.tools;
    let found: Vec<_> = tools
        .iter()
        .filter_map(|tool| {
            let named = visit.options.calls.iter().find(|(name, _)| tool["name"] == **name);
            let may = visit.options.allow_writes || tool["annotations"]["readOnlyHint"] == true;
            let bare = tool["inputSchema"]["required"].as_array().is_none_or(Vec::is_empty);
            let arguments = match named {
                Some((_, arguments)) => arguments.clone(),
                None if may && bare => json!({}),
                None => return None,
            };
            Some(Callable {
                tool: tool.clone(),
                arguments,
            })
        })
        .collect();
    match found.is_empty() {
        true => Err(Unmet::not_tested(
            "no tool says that it only reads; --call or --allow-writes would show",
        )),
        false => Ok(found),
    }
}
