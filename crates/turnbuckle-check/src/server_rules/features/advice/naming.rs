//! Names, descriptions and hints.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::list_names;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::ListedItems,
};

/// The maximum length of a description, in characters.
const MAX_DESCRIPTION_LENGTH: usize = 2_000;

pub(super) async fn instructions(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let opening = session.opening.as_ref();
    let opening = opening
        .ok_or_else(|| NotPassed::not_tested("the session did not start with a response"))?;
    match opening.value["result"]["instructions"].as_str() {
        Some(text) if !text.trim().is_empty() => opening.evidence(),
        _ => Err(opening.violation("the server sends no instructions")),
    }
}

pub(super) async fn descriptions(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let is_undescribed = |tool: &&Value| {
        tool["description"]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    };
    require_none(
        tools,
        tools.iter().filter(is_undescribed),
        "lack a description:",
    )
}

pub(super) async fn distinct(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let mut by_text = HashMap::new();
    for tool in tools {
        let (Some(text), Some(name)) = (tool["description"].as_str(), tool["name"].as_str()) else {
            continue;
        };
        // Another rule checks tools that are listed twice.
        if let Some(other) = by_text.insert(text, name).filter(|other| *other != name) {
            let observed = format!("{} have the same description", list_names([other, name]));
            return Err(NotPassed::violation(observed, tools.entries()));
        }
    }
    Evidence::from_entries(tools.entries())
}

pub(super) async fn length(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let length = |tool: &Value| {
        tool["description"]
            .as_str()
            .map_or(0, |text| text.chars().count())
    };
    let longest = tools.iter().max_by_key(|tool| length(tool));
    match longest.filter(|tool| length(tool) > MAX_DESCRIPTION_LENGTH) {
        None => Evidence::from_entries(tools.entries()),
        Some(tool) => {
            let observed = format!(
                "the description of {} has {} characters",
                name(tool),
                length(tool)
            );
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

pub(super) async fn consistent(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let mut styles = BTreeMap::new();
    for name in tools.iter().filter_map(|tool| tool["name"].as_str()) {
        if let Some(style) = style(name) {
            styles.entry(style).or_insert(name);
        }
    }
    match styles.len() {
        0 | 1 => Evidence::from_entries(tools.entries()),
        _ => {
            let observed = format!(
                "{} use different naming styles",
                list_names(styles.into_values())
            );
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

pub(super) async fn titles(ctx: &CheckContext) -> Outcome {
    require_revision(ctx, Revision::V2025_03_26)?;
    let tools = ctx.tools().await?;
    let has_title =
        |tool: &Value| tool["title"].is_string() || tool["annotations"]["title"].is_string();
    if tools.iter().any(has_title) {
        Evidence::from_entries(tools.entries())
    } else {
        Err(NotPassed::violation("no tool has a title", tools.entries()))
    }
}

pub(super) async fn annotations(ctx: &CheckContext) -> Outcome {
    require_revision(ctx, Revision::V2025_03_26)?;
    let tools = ctx.tools().await?;
    let lacks_hints = |tool: &&Value| {
        let hints = &tool["annotations"];
        !hints["readOnlyHint"].is_boolean() && !hints["destructiveHint"].is_boolean()
    };
    require_none(
        tools,
        tools.iter().filter(lacks_hints),
        "lack `readOnlyHint` and `destructiveHint`:",
    )
}

/// Requires a revision that has the member.
fn require_revision(ctx: &CheckContext, first: Revision) -> Result<(), NotPassed> {
    if ctx.revision >= first {
        Ok(())
    } else {
        Err(NotPassed::not_applicable("the revision lacks this member"))
    }
}

/// Requires that no tool is affected.
fn require_none<'a>(
    tools: &ListedItems,
    affected: impl Iterator<Item = &'a Value>,
    observed: &str,
) -> Outcome {
    let names: Vec<_> = affected.filter_map(|tool| tool["name"].as_str()).collect();
    match names.len() {
        0 => Evidence::from_entries(tools.entries()),
        count => {
            let observed = format!(
                "{count} of {} tools {observed} {}",
                tools.len(),
                list_names(names)
            );
            Err(NotPassed::violation(observed, tools.entries()))
        }
    }
}

fn name(tool: &Value) -> String {
    list_names(tool["name"].as_str())
}

/// Returns the naming style of a name of several words; a name of one word fits all styles.
fn style(name: &str) -> Option<&'static str> {
    let inner_upper = name.chars().skip(1).any(|c| c.is_ascii_uppercase());
    let lower = name.chars().any(|c| c.is_ascii_lowercase());
    match (name.contains('_'), name.contains('-')) {
        (true, false) => Some("snake_case"),
        (false, true) => Some("kebab-case"),
        (false, false) if inner_upper && lower => Some("camelCase"),
        _ => None,
    }
}
