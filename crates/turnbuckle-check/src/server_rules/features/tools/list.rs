//! The list of tools, and the names in it.

use std::collections::{BTreeSet, HashSet};

use super::{NOBODY, TOOLS};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::is_complete,
    session::ProbeResponse,
};

/// The longest name.
const LONGEST: usize = 128;

pub(super) async fn order(ctx: &CheckContext) -> Outcome {
    let first = ctx.tools().await?;
    if first.len() < 2 {
        return Err(NotPassed::not_applicable("there is one tool only"));
    }
    let session = ctx.session().await?;
    let (again, third) = (TOOLS.read(session).await?, TOOLS.read(session).await?);
    let [names, others] = [&again, &third].map(|list| TOOLS.keys(list).collect::<Vec<_>>());
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    if set(&names) != set(&others) {
        return Err(NotPassed::not_tested("the list changed meanwhile"));
    }
    let entries = again.entries().chain(third.entries());
    match names.iter().zip(&others).find(|(one, other)| one != other) {
        None => Evidence::from_entries(entries),
        Some((one, other)) => Err(NotPassed::violation(
            format!("`{one}` at a place where `{other}` was the next time"),
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
            _ if length == 0 => "a tool whose name is empty".to_owned(),
            _ if length > LONGEST => format!("a tool whose name has {length} characters"),
            Some(odd) => format!("{odd:?} in the name of the tool `{name}`"),
            None => continue,
        };
        return Err(NotPassed::violation(observed, tools.entries()));
    }
    Evidence::from_entries(tools.entries())
}

pub(super) async fn unique(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    if !tools.is_complete {
        return Err(NotPassed::not_tested("the list did not come to an end"));
    }
    let mut names = HashSet::new();
    match TOOLS.keys(tools).find(|name| !names.insert(*name)) {
        None => Evidence::from_entries(tools.entries()),
        Some(name) => Err(NotPassed::violation(
            format!("two tools are called `{name}`"),
            tools.entries(),
        )),
    }
}

pub(super) async fn case(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let calls = ctx.safe_calls().await?;
    let other = |name: &str| {
        if name.chars().any(|c| c.is_ascii_lowercase()) {
            name.to_ascii_uppercase()
        } else {
            name.to_ascii_lowercase()
        }
    };
    let free = |name: &str| TOOLS.keys(tools).all(|known| known != name);
    let call = calls.iter().find(|call| free(&other(&call.name)));
    let call =
        call.ok_or_else(|| NotPassed::not_tested("no tool whose name has letters can be called"))?;
    let mut changed = (*call).clone();
    changed.name = other(&call.name);
    let session = ctx.session().await?;
    let response = changed
        .send(session)
        .await
        .map_err(NotPassed::as_not_tested)?;
    if !is_success(&response) {
        return response.evidence();
    }
    // Some say in a result like any other that there is no such tool.
    changed.name = NOBODY.to_owned();
    let nobody = changed
        .send(session)
        .await
        .map_err(NotPassed::as_not_tested)?;
    if is_success(&nobody) {
        Err(NotPassed::not_tested(
            "a tool that is not there is called without an error",
        ))
    } else {
        Err(response.violation(format!(
            "`{}` is called as `{}`",
            call.name,
            other(&call.name)
        )))
    }
}

fn is_success(response: &ProbeResponse) -> bool {
    let result = response.value.get("result");
    result.is_some_and(|result| is_complete(result) && result["isError"] != true)
}
