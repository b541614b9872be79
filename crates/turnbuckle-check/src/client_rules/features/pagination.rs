//! Paginated lists.

use serde_json::Value;

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    mock_server::{
        Scenario,
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns},
    },
    rule::{Area, Rule},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client(
        "client.pages.opaque",
        Area::Pagination,
        &["pagination.client.opaque"],
    )
    .requirement("A cursor is returned unchanged.")
    .hint("Send `nextCursor` back as `cursor` without changing, trimming or encoding it.")
    .scenarios(&[Scenario::Pagination], opaque),
    Rule::client(
        "client.pages.followed",
        Area::Pagination,
        &["pagination.client.both", "prompts.client.pagination"],
    )
    .requirement("The client follows `nextCursor`.")
    .hint("Repeat the request with `cursor` while the result has a `nextCursor`.")
    .scenarios(&[Scenario::Pagination], followed),
    Rule::client(
        "client.pages.end",
        Area::Pagination,
        &["pagination.client.end"],
    )
    .requirement("The client stops when `nextCursor` is missing.")
    .hint("Stop when the result lacks `nextCursor`.")
    .scenarios(&[Scenario::Pagination], end),
    Rule::client(
        "client.pages.empty-cursor",
        Area::Pagination,
        &["pagination.client.empty-cursor"],
    )
    .requirement("An empty string is a valid cursor.")
    .hint("Test whether `nextCursor` is present, not whether it is empty.")
    .scenarios(&[Scenario::Pagination], empty_cursor),
];

/// Returns the list requests.
fn lists(run: &ScenarioRun) -> impl Iterator<Item = &ClientMessage> {
    run.requests().filter(|message| {
        message
            .method()
            .is_some_and(|method| method.ends_with("/list"))
    })
}

/// Returns the pages: the request, the entry of the response and the next cursor.
fn pages(run: &ScenarioRun) -> Vec<(&ClientMessage, usize, Option<String>)> {
    lists(run)
        .filter_map(|message| {
            let (number, response) = run.response_to(message)?;
            let result = response.get("result")?;
            let next = result.get("nextCursor").and_then(Value::as_str);
            Some((message, number, next.map(str::to_owned)))
        })
        .collect()
}

fn page_request<'a>(
    run: &'a ScenarioRun,
    method: Option<&'a str>,
    cursor: &'a str,
) -> Option<&'a ClientMessage> {
    lists(run).find(|message| message.method() == method && message.params()["cursor"] == cursor)
}

fn opaque(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::Pagination)?;
    let pages = pages(run);
    let mut evidence = Vec::new();
    for message in lists(run) {
        // A null cursor is covered by another rule.
        let cursor = message.params().get("cursor");
        let Some(cursor) = cursor.filter(|cursor| !cursor.is_null()) else {
            continue;
        };
        let given = pages.iter().any(|(page, _, next)| {
            page.method() == message.method() && next.as_deref().is_some_and(|next| cursor == next)
        });
        if !given {
            let observed = format!("the cursor {cursor} was not issued");
            return Err(NotPassed::violation(observed, [message.number]));
        }
        evidence.push(message.number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("the client requested no second page"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}

/// Checks that pages with a matching cursor are followed.
fn read_on(runs: &ScenarioRuns, which: fn(&str) -> bool) -> Outcome {
    let run = runs.get(Scenario::Pagination)?;
    let mut evidence = Vec::new();
    for (page, number, next) in pages(run) {
        let Some(next) = next.filter(|next| which(next)) else {
            continue;
        };
        match page_request(run, page.method(), &next) {
            Some(on) => evidence.extend([number, on.number]),
            // A changed cursor is covered by another rule.
            None if lists(run).any(|message| {
                message.method() == page.method()
                    && message.number > number
                    && message.params().get("cursor").is_some()
            }) => {}
            None => {
                let observed = format!(
                    "`{}` does not follow the cursor {next:?}",
                    page.method().unwrap_or_default()
                );
                let violation = NotPassed::violation(observed, [page.number, number]);
                return Err(match page.method() {
                    Some("prompts/list") => violation.for_requirement("prompts.client.pagination"),
                    _ => violation,
                });
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "the client requested no list with such a cursor",
        ))
    } else {
        Evidence::from_entries(evidence.into_iter().take(4))
    }
}

fn followed(runs: &ScenarioRuns) -> Outcome {
    read_on(runs, |cursor| !cursor.is_empty())
}

fn empty_cursor(runs: &ScenarioRuns) -> Outcome {
    read_on(runs, str::is_empty)
}

fn end(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::Pagination)?;
    let pages = pages(run);
    let last = pages.iter().filter(|(_, _, next)| next.is_none());
    let mut evidence = Vec::new();
    for (page, number, _) in last {
        let on = lists(run).find(|message| {
            message.number > *number
                && message.method() == page.method()
                && message.params().get("cursor").is_some_and(Value::is_null)
        });
        if let Some(on) = on {
            let observed = "another page with a null cursor";
            return Err(NotPassed::violation(observed, [*number, on.number]));
        }
        evidence.push(*number);
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("the client read no list to its end"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(3))
    }
}
