//! Which tools may be called, and with what.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::codec::headers;
use turnbuckle_protocol::revision::Revision;

use super::{List, arguments};
use crate::options::Options;
use crate::outcome::Unmet;
use crate::session::{Answer, Session};
use crate::speech::Speech;
use crate::tape::Tape;
use crate::visit::Visit;

/// How many tools are named in a sentence.
const NAMED: usize = 10;

/// A call that may be made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The tool, as the list has it.
    pub(crate) tool: Value,
    /// Its name.
    pub(crate) name: String,
    /// Arguments that fit it.
    pub(crate) arguments: Value,
    /// Whether it answers with a task and in no other way.
    pub(crate) only_as_task: bool,
    /// Whether it may be called with other arguments, too: it only reads, or the user lets anything be written.
    pub(crate) is_free: bool,
}

impl Call {
    /// Returns the parameters of `tools/call`.
    pub(crate) fn params(&self) -> Value {
        json!({ "name": self.name, "arguments": self.arguments })
    }

    /// Returns the headers that repeat arguments, where the revision and the transport have such.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        let marks = headers::marks(&self.tool["inputSchema"]).unwrap_or_default();
        let repeat = |mark: headers::Mark| {
            let value = mark
                .path
                .iter()
                .try_fold(&self.arguments, |at, name| at.get(name))?;
            let text = value.to_string();
            let value = headers::encode_argument(&text).ok().flatten()?;
            Some((format!("mcp-param-{}", mark.header), value.into_owned()))
        };
        marks.into_iter().filter_map(repeat).collect()
    }

    /// Makes the call, and waits for what comes of it.
    pub(crate) async fn ask(&self, session: &Session) -> Result<Answer, Unmet> {
        let pending = session
            .begin_with("tools/call", self.params(), self.headers())
            .await?;
        session.answer(pending).await
    }
}

/// Chooses the calls that may be made; says in sentences what is left out.
pub(super) async fn choose(visit: &Visit, tools: &List) -> (Vec<Call>, Vec<String>) {
    let options = &visit.options;
    let reading = match options.allow_writes {
        true => HashSet::new(),
        false => reading(visit, tools).await,
    };
    let mut calls = Vec::new();
    let (mut writing, mut left_out) = (Vec::new(), Vec::new());
    for tool in tools {
        let Some(name) = tool["name"].as_str() else {
            continue;
        };
        let is_free = options.allow_writes || reading.contains(name);
        let call = |arguments| call(tool, name, arguments, is_free);
        let mut given = given(options, name).peekable();
        if given.peek().is_some() {
            calls.extend(given.map(|arguments| call(arguments.clone())));
        } else if !is_free {
            writing.push(name);
        } else {
            match arguments::make(&tool["inputSchema"]) {
                Ok(arguments) => calls.push(call(arguments)),
                Err(why) => left_out.push(format!(
                    "the tool `{name}` was not called: no arguments could be made up ({why}); `--call {name} ARGUMENTS` gives it some"
                )),
            }
        }
    }
    if !writing.is_empty() {
        left_out.insert(0, format!(
            "{} not called, for nothing says that they only read; `--call TOOL ARGUMENTS` or `--allow-writes` lets them be called",
            named(&writing)
        ));
    }
    let unknown = options.calls.iter().map(|(name, _)| name.as_str());
    let unknown = unknown.filter(|name| !tools.iter().any(|tool| tool["name"] == **name));
    left_out.extend(unknown.map(|name| format!("there is no tool `{name}` to call")));
    (calls, left_out)
}

fn call(tool: &Value, name: &str, arguments: Value, is_free: bool) -> Call {
    Call {
        is_free,
        tool: tool.clone(),
        name: name.to_owned(),
        arguments,
        only_as_task: tool["execution"]["taskSupport"] == "required",
    }
}

fn given<'a>(options: &'a Options, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let calls = options.calls.iter();
    calls.filter_map(move |(tool, arguments)| (tool == name).then_some(arguments))
}

/// Returns the names of the tools that say that they only read.
///
/// The first revisions have no such hint: there the server is asked again in one that has.
async fn reading(visit: &Visit, tools: &List) -> HashSet<String> {
    let said = only_reading(tools);
    if visit.revision >= Revision::V2025_03_26 || said.len() == tools.len() {
        return said;
    }
    let speech = Speech::new(Revision::V2025_11_25);
    // What is said there belongs to another revision: no rule of this one may look at it.
    let tape = Tape::default();
    let opened = Session::open(&visit.target, &tape, speech, visit.options.patience).await;
    let Ok(mut session) = opened else { return said };
    if session.begin_properly().await.is_err() {
        return said;
    }
    let newer = only_reading(&List::read(&session, "tools", "tools/list").await);
    said.union(&newer).cloned().collect()
}

fn only_reading(tools: &List) -> HashSet<String> {
    let reading = tools
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    let names = reading.filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

fn named(names: &[&str]) -> String {
    let shown: Vec<_> = names
        .iter()
        .take(NAMED)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match names.len() {
        1 => format!("the tool {} was", shown[0]),
        count => format!("{count} tools ({}{more}) were", shown.join(", ")),
    }
}
