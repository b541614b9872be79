//! The shape of what a client asks and tells, as its revision describes it.

use crate::client::take::{Said, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};
use crate::shape;

pub(crate) const RULES: &[Rule] = &[Rule::client(
    "client.shapes.messages",
    Area::Shapes,
    &["schema.message-valid"],
)
.says("The parameters of every request and notification have the shape of the revision.")
.cure("Build parameters as the schema of the revision says: all that is required, of the right types.")
.watch(&[], messages)];

fn messages(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for said in takes
        .said()
        .filter(|said| said.method().is_some() && !is_judged_elsewhere(said))
    {
        let flaws = match said.is_request() {
            true => shape::request(takes.revision, &said.message),
            false => shape::notification(takes.revision, &said.message),
        };
        // What stands in `_meta`, and a cursor, belong to rules of their own.
        let own = |path: &str| {
            path == "params" || path.starts_with("params._meta") || path == "params.cursor"
        };
        if let Some(flaw) = flaws.iter().find(|flaw| !own(&flaw.path)) {
            return Err(Unmet::broken(flaw.to_string(), [said.number]));
        }
        seen.push(said.number);
    }
    Seen::at(seen.into_iter().take(3))
}

/// Says whether a message has a rule of its own for what it says.
fn is_judged_elsewhere(said: &Said) -> bool {
    let answers = said.params().get("inputResponses").is_some();
    answers
        || matches!(
            said.method(),
            Some("initialize" | "notifications/cancelled")
        )
}
