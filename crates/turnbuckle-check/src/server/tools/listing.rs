//! The list of tools, and the names in it.

use std::collections::{BTreeSet, HashSet};

use super::{NOBODY, TOOLS};
use crate::discovery::is_complete;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::Answer;
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
    let session = visit.session().await?;
    let answer = changed.ask(session).await.map_err(Unmet::aside)?;
    if !is_success(&answer) {
        return answer.seen();
    }
    // Some say in a result like any other that there is no such tool.
    changed.name = NOBODY.to_owned();
    let nobody = changed.ask(session).await.map_err(Unmet::aside)?;
    match is_success(&nobody) {
        true => Err(Unmet::not_tested(
            "a tool that is not there is called without an error",
        )),
        false => Err(answer.broken(format!(
            "`{}` is called as `{}`",
            call.name,
            other(&call.name)
        ))),
    }
}

fn is_success(answer: &Answer) -> bool {
    let result = answer.value.get("result");
    result.is_some_and(|result| is_complete(result) && result["isError"] != true)
}
