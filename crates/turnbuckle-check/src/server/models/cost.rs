//! What a model pays for reading the list of tools.

use super::named;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::visit::Visit;

/// How many tokens the list may take, by a rough estimate.
const MOST: usize = 10_000;
/// How many bytes of JSON are about one token.
const BYTES: usize = 4;

pub(super) async fn list(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let costs = tools.iter().map(|tool| {
        // A model gets to see these, and nothing else.
        let seen =
            ["name", "description", "inputSchema"].map(|field| tool[field].to_string().len());
        (
            seen.iter().sum::<usize>() / BYTES,
            tool["name"].as_str().unwrap_or_default(),
        )
    });
    let mut costs: Vec<_> = costs.collect();
    let all: usize = costs.iter().map(|(cost, _)| cost).sum();
    if all <= MOST {
        return Seen::at(tools.entries());
    }
    costs.sort_unstable_by(|one, other| other.cmp(one));
    let costliest = costs.iter().take(3);
    let part: usize = costliest.clone().map(|(cost, _)| cost).sum();
    let what = format!(
        "{} tools take about {all} tokens, {part} of them {}",
        tools.len(),
        named(costliest.map(|(_, name)| *name))
    );
    Err(Unmet::broken(what, tools.entries()))
}
