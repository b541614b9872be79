//! Caching members of results: `ttlMs` and `cacheScope`.

use super::{lists::ALL, pagination::items_of};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
    },
    rule::{Area::Caching, Rule},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("caching.same-scope", Caching, &["caching.scope.same-pages"])
        .requirement("All pages of a list have the same `cacheScope`.")
        .hint("Set one `cacheScope` for the whole list, not one per page.")
        .active(|ctx| Box::pin(same_scope(ctx))),
    Rule::server(
        "caching.not-of-questions",
        Caching,
        &["caching.hints.not-interim"],
    )
    .requirement("A result with `input_required` does not have caching members.")
    .hint("Omit `ttlMs` and `cacheScope` if `resultType` is `input_required`.")
    .passive(not_input_required),
];

async fn same_scope(ctx: &CheckContext) -> Outcome {
    let inventory = ctx.inventory().await?;
    let mut evidence = Vec::new();
    for kind in ALL {
        let list = items_of(inventory, kind);
        let scopes = list
            .pages
            .iter()
            .map(|page| &page.value["result"]["cacheScope"]);
        let mut scopes = scopes.filter(|scope| scope.is_string());
        let Some(first) = scopes.next() else { continue };
        if let Some(other) = scopes.find(|scope| *scope != first) {
            let observed = format!(
                "one page of `{}` has the scope {first}, another page {other}",
                kind.method
            );
            return Err(NotPassed::violation(observed, list.entries()));
        }
        if list.pages.len() > 1 {
            evidence.extend(list.entries());
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("no list has more than one page"))
    } else {
        Evidence::from_entries(evidence)
    }
}

fn not_input_required(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (number, entry) in transcript.all() {
        if entry.direction != Direction::Received || !entry.text.contains("input_required") {
            continue;
        }
        let Some(message) = entry
            .json()
            .filter(|message| message["result"]["resultType"] == "input_required")
        else {
            continue;
        };
        let member = ["ttlMs", "cacheScope"]
            .into_iter()
            .find(|member| message["result"].get(member).is_some());
        if let Some(member) = member {
            return Err(NotPassed::violation(
                format!("`{member}` in an `input_required` result"),
                [number],
            ));
        }
        evidence.push(number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable("no result was `input_required`"))
    } else {
        Evidence::from_entries(evidence)
    }
}
