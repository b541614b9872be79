//! Lists that come in pages.

use serde_json::Value;

use crate::client::Scene;
use crate::client::take::{Said, Take, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::client(
        "client.pages.opaque",
        Area::Pagination,
        &["pagination.client.opaque"],
    )
    .says("A cursor comes back as it was given.")
    .cure("Send `nextCursor` back as `cursor` without changing, trimming or encoding it.")
    .watch(&[Scene::Paged], opaque),
    Rule::client(
        "client.pages.followed",
        Area::Pagination,
        &["pagination.client.both", "prompts.client.pagination"],
    )
    .says("A list that has more pages is read on.")
    .cure("Ask again with `cursor` as long as the answer has a `nextCursor`.")
    .watch(&[Scene::Paged], followed),
    Rule::client(
        "client.pages.end",
        Area::Pagination,
        &["pagination.client.end"],
    )
    .says("A list without a `nextCursor` is at its end.")
    .cure("Stop asking when the answer has no `nextCursor`.")
    .watch(&[Scene::Paged], end),
    Rule::client(
        "client.pages.empty-cursor",
        Area::Pagination,
        &["pagination.client.empty-cursor"],
    )
    .says("A cursor that is an empty string is a cursor.")
    .cure("Look whether `nextCursor` is there, not whether it has characters.")
    .watch(&[Scene::Paged], empty_cursor),
];

/// Returns the requests for lists.
fn lists(take: &Take) -> impl Iterator<Item = &Said> {
    take.requests().filter(|said| {
        said.method()
            .is_some_and(|method| method.ends_with("/list"))
    })
}

/// Returns the pages that were answered: the request, the number of the answer, and what leads on from it.
fn pages(take: &Take) -> Vec<(&Said, usize, Option<String>)> {
    lists(take)
        .filter_map(|said| {
            let (number, message) = take.answer(said)?;
            let result = message.get("result")?;
            let next = result.get("nextCursor").and_then(Value::as_str);
            Some((said, number, next.map(str::to_owned)))
        })
        .collect()
}

fn asked_for<'a>(take: &'a Take, method: Option<&'a str>, cursor: &'a str) -> Option<&'a Said> {
    lists(take).find(|said| said.method() == method && said.params()["cursor"] == cursor)
}

fn opaque(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Paged)?;
    let pages = pages(take);
    let mut seen = Vec::new();
    for said in lists(take) {
        // One that is null belongs to another rule.
        let cursor = said.params().get("cursor");
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_null()) else {
            continue;
        };
        let given = pages.iter().any(|(page, _, next)| {
            page.method() == said.method() && next.as_deref().is_some_and(|next| cursor == next)
        });
        if !given {
            let what = format!("nobody gave the cursor {cursor}");
            return Err(Unmet::broken(what, [said.number]));
        }
        seen.push(said.number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("the client asked for no second page")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

/// Judges pages that lead on, as far as `which` is interested.
fn read_on(takes: &Takes, which: fn(&str) -> bool) -> Outcome {
    let take = takes.of(Scene::Paged)?;
    let mut seen = Vec::new();
    for (page, number, next) in pages(take) {
        let Some(next) = next.filter(|next| which(next)) else {
            continue;
        };
        match asked_for(take, page.method(), &next) {
            Some(on) => seen.extend([number, on.number]),
            // Whoever sends another cursor breaks another rule.
            None if lists(take).any(|said| {
                said.method() == page.method()
                    && said.number > number
                    && said.params().get("cursor").is_some()
            }) => {}
            None => {
                let what = format!(
                    "`{}` is not read on from the cursor {next:?}",
                    page.method().unwrap_or_default()
                );
                return Err(Unmet::broken(what, [page.number, number]));
            }
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "the client asked for no list that goes on so",
        )),
        false => Seen::at(seen.into_iter().take(4)),
    }
}

fn followed(takes: &Takes) -> Outcome {
    read_on(takes, |cursor| !cursor.is_empty())
}

fn empty_cursor(takes: &Takes) -> Outcome {
    read_on(takes, str::is_empty)
}

fn end(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Paged)?;
    let pages = pages(take);
    let last = pages.iter().filter(|(_, _, next)| next.is_none());
    let mut seen = Vec::new();
    for (page, number, _) in last {
        let on = lists(take).find(|said| {
            said.number > *number
                && said.method() == page.method()
                && said.params().get("cursor").is_some_and(Value::is_null)
        });
        if let Some(on) = on {
            let what = "another page, with null for a cursor";
            return Err(Unmet::broken(what, [*number, on.number]));
        }
        seen.push(*number);
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("the client read no list to its end")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}
