//! What may be kept, for how long, and by whom.

use super::lists::ALL;
use super::pagination::of;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area::Caching, Rule};
use crate::tape::{Tape, Way};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("caching.same-scope", Caching, &["caching.scope.same-pages"])
        .says("All pages of a list have the same `cacheScope`.")
        .cure("Decide who may keep a list once for the whole list, not page by page.")
        .ask(|visit| Box::pin(same_scope(visit))),
    Rule::server(
        "caching.not-of-questions",
        Caching,
        &["caching.hints.not-interim"],
    )
    .says("A result that asks for input says nothing about caching.")
    .cure("Leave `ttlMs` and `cacheScope` out where `resultType` is `input_required`.")
    .look(not_of_questions),
];

async fn same_scope(visit: &Visit) -> Outcome {
    let discovered = visit.discovered().await?;
    let mut seen = Vec::new();
    for kind in ALL {
        let list = of(discovered, kind);
        let scopes = list
            .pages
            .iter()
            .map(|page| &page.value["result"]["cacheScope"]);
        let mut scopes = scopes.filter(|scope| scope.is_string());
        let Some(first) = scopes.next() else { continue };
        if let Some(other) = scopes.find(|scope| *scope != first) {
            let what = format!(
                "a page of `{}` is {first}, and another one is {other}",
                kind.method
            );
            return Err(Unmet::broken(what, list.entries()));
        }
        if list.pages.len() > 1 {
            seen.extend(list.entries());
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("no list comes in more than one page")),
        false => Seen::at(seen),
    }
}

fn not_of_questions(_: &Visit, tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for (number, entry) in tape.all() {
        if entry.way != Way::Received || !entry.text.contains("input_required") {
            continue;
        }
        let Some(message) = entry
            .json()
            .filter(|message| message["result"]["resultType"] == "input_required")
        else {
            continue;
        };
        let hint = ["ttlMs", "cacheScope"]
            .into_iter()
            .find(|hint| message["result"].get(hint).is_some());
        if let Some(hint) = hint {
            return Err(Unmet::broken(
                format!("`{hint}` in a result that asks for input"),
                [number],
            ));
        }
        seen.push(number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("no result asked for input")),
        false => Seen::at(seen),
    }
}
