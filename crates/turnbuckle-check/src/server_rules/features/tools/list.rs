//! The list of tools and their names.

use std::collections::{BTreeSet, HashSet};

use super::{TOOLS, UNKNOWN_TOOL};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::is_complete,
    session::ProbeResponse,
};

/// The maximum length of a tool name, in characters.
const MAX_NAME_LENGTH: usize = 128;

pub(super) async fn order(ctx: &CheckContext) -> Outcome {
    let first = ctx.tools().await?;
    if first.len() < 2 {
        return Err(NotPassed::not_applicable(
            "the server lists fewer than two tools",
        ));
    }
    let session = ctx.session().await?;
    let (second, third) = (TOOLS.read(session).await?, TOOLS.read(session).await?);
    let [names, others] = [&second, &third].map(|list| TOOLS.keys(list).collect::<Vec<_>>());
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    if set(&names) != set(&others) {
        return Err(NotPassed::not_tested("the list changed during the check"));
    }
    let entries = second.entries().chain(third.entries());
    match names.iter().zip(&others).find(|(one, other)| one != other) {
        None => Evidence::from_entries(entries),
        Some((one, other)) => Err(NotPassed::violation(
            format!("`{one}` at the position of `{other}` in the next list"),
            entries,
        )),
    }
}

pub(super) async fn names(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    for name in TOOLS.keys(tools) {
        let length = name.chars().count();
        let observed = match name.chars().find(|&c| !allowed(c)) {
            _ if length == 0 => "a tool with an empty name".to_owned(),
            _ if length > MAX_NAME_LENGTH => format!("a tool name with {length} characters"),
            Some(invalid) => format!("{invalid:?} in the tool name `{name}`"),
            None => continue,
        };
        let violation = NotPassed::violation(observed, tools.entries());
        return Err(if (1..=MAX_NAME_LENGTH).contains(&length) {
            violation.for_requirement("tools.name.charset")
        } else {
            violation
        });
    }
    Evidence::from_entries(tools.entries())
}

pub(super) async fn unique(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    if !tools.is_complete {
        return Err(NotPassed::not_tested("the list was not read to its end"));
    }
    let mut names = HashSet::new();
    match TOOLS.keys(tools).find(|name| !names.insert(*name)) {
        None => Evidence::from_entries(tools.entries()),
        Some(name) => Err(NotPassed::violation(
            format!("two tools have the name `{name}`"),
            tools.entries(),
        )),
    }
}

pub(super) async fn case(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let calls = ctx.safe_calls().await?;
    let other_case = |name: &str| {
        if name.chars().any(|c| c.is_ascii_lowercase()) {
            name.to_ascii_uppercase()
        } else {
            name.to_ascii_lowercase()
        }
    };
    let is_unused = |name: &str| TOOLS.keys(tools).all(|listed| listed != name);
    let call = calls.iter().find(|call| is_unused(&other_case(&call.name)));
    let call = call.ok_or_else(|| NotPassed::not_tested("no safe tool has a name with letters"))?;
    let mut changed = (*call).clone();
    changed.name = other_case(&call.name);
    let session = ctx.session().await?;
    let response = changed
        .send(session)
        .await
        .map_err(NotPassed::into_not_tested)?;
    if !is_success(&response) {
        return response.evidence();
    }
    // Some servers return a successful result for an unknown tool.
    changed.name = UNKNOWN_TOOL.to_owned();
    let unknown = changed
        .send(session)
        .await
        .map_err(NotPassed::into_not_tested)?;
    if is_success(&unknown) {
        Err(NotPassed::not_tested(
            "the server returns no error for an unknown tool",
        ))
    } else {
        Err(response.violation(format!(
            "`{}` is also called by the name `{}`",
            call.name,
            other_case(&call.name)
        )))
    }
}

fn is_success(response: &ProbeResponse) -> bool {
    let result = response.value.get("result");
    result.is_some_and(|result| is_complete(result) && result["isError"] != true)
}
