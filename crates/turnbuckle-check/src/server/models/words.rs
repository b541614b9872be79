//! Names, descriptions and hints.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::named;
use crate::discovery::List;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::visit::Visit;

/// The longest description, in characters.
const LONGEST: usize = 2_000;

pub(super) async fn instructions(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let opening = session.opening.as_ref();
    let opening = opening.ok_or_else(|| Unmet::not_tested("nothing was said at the beginning"))?;
    match opening.value["result"]["instructions"].as_str() {
        Some(text) if !text.trim().is_empty() => opening.seen(),
        _ => Err(opening.broken("there are no instructions")),
    }
}

pub(super) async fn descriptions(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let bare = |tool: &&Value| {
        tool["description"]
            .as_str()
            .is_none_or(|text| text.trim().is_empty())
    };
    none(tools, tools.iter().filter(bare), "without a description:")
}

pub(super) async fn distinct(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let mut by_text = HashMap::new();
    for tool in tools {
        let (Some(text), Some(name)) = (tool["description"].as_str(), tool["name"].as_str()) else {
            continue;
        };
        // One that is there twice is another rule's business.
        if let Some(other) = by_text.insert(text, name).filter(|other| *other != name) {
            let what = format!("{} have the same description", named([other, name]));
            return Err(Unmet::broken(what, tools.entries()));
        }
    }
    Seen::at(tools.entries())
}

pub(super) async fn length(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let length = |tool: &Value| {
        tool["description"]
            .as_str()
            .map_or(0, |text| text.chars().count())
    };
    let longest = tools.iter().max_by_key(|tool| length(tool));
    match longest.filter(|tool| length(tool) > LONGEST) {
        None => Seen::at(tools.entries()),
        Some(tool) => {
            let what = format!(
                "the description of {} has {} characters",
                name(tool),
                length(tool)
            );
            Err(Unmet::broken(what, tools.entries()))
        }
    }
}

pub(super) async fn consistent(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let mut styles = BTreeMap::new();
    for name in tools.iter().filter_map(|tool| tool["name"].as_str()) {
        if let Some(style) = style(name) {
            styles.entry(style).or_insert(name);
        }
    }
    match styles.len() {
        0 | 1 => Seen::at(tools.entries()),
        _ => {
            let what = format!(
                "{} are spelled in different styles",
                named(styles.into_values())
            );
            Err(Unmet::broken(what, tools.entries()))
        }
    }
}

pub(super) async fn titles(visit: &Visit) -> Outcome {
    since(visit, Revision::V2025_03_26)?;
    let tools = visit.tools().await?;
    let titled =
        |tool: &Value| tool["title"].is_string() || tool["annotations"]["title"].is_string();
    match tools.iter().any(titled) {
        true => Seen::at(tools.entries()),
        false => Err(Unmet::broken("no tool has a title", tools.entries())),
    }
}

pub(super) async fn annotations(visit: &Visit) -> Outcome {
    since(visit, Revision::V2025_03_26)?;
    let tools = visit.tools().await?;
    let silent = |tool: &&Value| {
        let hints = &tool["annotations"];
        !hints["readOnlyHint"].is_boolean() && !hints["destructiveHint"].is_boolean()
    };
    none(
        tools,
        tools.iter().filter(silent),
        "that do not say whether they only read:",
    )
}

/// Earlier revisions have no word for it.
fn since(visit: &Visit, first: Revision) -> Result<(), Unmet> {
    match visit.revision >= first {
        true => Ok(()),
        false => Err(Unmet::not_applicable("the revision has no such field")),
    }
}

/// There is no such tool.
fn none<'a>(tools: &List, such: impl Iterator<Item = &'a Value>, what: &str) -> Outcome {
    let names: Vec<_> = such.filter_map(|tool| tool["name"].as_str()).collect();
    match names.len() {
        0 => Seen::at(tools.entries()),
        count => {
            let what = format!("{count} of {} tools {what} {}", tools.len(), named(names));
            Err(Unmet::broken(what, tools.entries()))
        }
    }
}

fn name(tool: &Value) -> String {
    named(tool["name"].as_str())
}

/// How a name of several words is spelled; names of one word fit all styles.
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
