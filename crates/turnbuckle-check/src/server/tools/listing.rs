//! The list of tools, and the names in it.

use std::collections::{BTreeSet, HashSet};

use super::TOOLS;
use crate::discovery::is_complete;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::visit::Visit;

/// The longest name.
const LONGEST: usize = 128;

pub(super) async fn order(visit: &Visit) -> Outcome {
    let first = visit.tools().await?;
    if first.len() < 2 {
        return Err(Unmet::not_applicable("there is one tool only"));
    }
    let session = visit.session().await?;
    let (again, third) = (TOOLS.read(session).await?, TOOLS.read(session).await?);
    let [names, others] = [&again, &third].map(|list| TOOLS.keys(list).collect::<Vec<_>>());
    let set = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    if set(&names) != set(&others) {
        return Err(Unmet::not_tested("the list changed meanwhile"));
    }
    let entries = again.entries().chain(third.entries());
    match names.iter().zip(&others).find(|(one, other)| one != other) {
        None => Seen::at(entries),
        Some((one, other)) => Err(Unmet::broken(
            format!("`{one}` at a place where `{other}` was the next time"),
            entries,
        )),
    }
}

pub(super) async fn names(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    for name in TOOLS.keys(tools) {
        let length = name.chars().count();
        let what = match name.chars().find(|&c| !allowed(c)) {
            _ if length == 0 => "a tool whose name is empty".to_owned(),
            _ if length > LONGEST => format!("a tool whose name has {length} characters"),
            Some(odd) => format!("{odd:?} in the name of the tool `{name}`"),
            None => continue,
        };
        return Err(Unmet::broken(what, tools.entries()));
    }
    Seen::at(tools.entries())
}

pub(super) async fn unique(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    if !tools.whole {
        return Err(Unmet::not_tested("the list did not come to an end"));
    }
    let mut names = HashSet::new();
    match TOOLS.keys(tools).find(|name| !names.insert(*name)) {
        None => Seen::at(tools.entries()),
        Some(name) => Err(Unmet::broken(
            format!("two tools are called `{name}`"),
            tools.entries(),
        )),
    }
}

pub(super) async fn case(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let calls = visit.callable().await?;
    let other = |name: &str| match name.chars().any(|c| c.is_ascii_lowercase()) {
        true => name.to_ascii_uppercase(),
        false => name.to_ascii_lowercase(),
    };
    let free = |name: &str| TOOLS.keys(tools).all(|known| known != name);
    let call = calls.iter().find(|call| free(&other(&call.name)));
    let call =
        call.ok_or_else(|| Unmet::not_tested("no tool whose name has letters can be called"))?;
    let mut changed = (*call).clone();
    changed.name = other(&call.name);
    let answer = changed
        .ask(visit.session().await?)
        .await
        .map_err(Unmet::aside)?;
    let result = answer.value.get("result");
    match result.is_some_and(|result| is_complete(result) && result["isError"] != true) {
        false => answer.seen(),
        true => Err(answer.broken(format!("`{}` is called as `{}`", call.name, changed.name))),
    }
}
