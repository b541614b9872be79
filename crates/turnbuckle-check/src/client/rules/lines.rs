//! A line for each message.

use crate::client::take::Takes;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::tape::Way;

pub(crate) const RULES: &[Rule] = &[Rule::client(
    "client.stdio.only-messages",
    Area::Stdio,
    &[
        "stdio.framing.newline",
        "stdio.framing.no-embedded",
        "stdio.stdin.only-mcp",
        "base.encoding.utf8",
    ],
)
.says("Every line that the server reads is a message.")
.cure("Write each message as one line of JSON in UTF-8, and nothing else.")
.on(On::Lines)
.watch(&[], only_messages)];

fn only_messages(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    let entries = takes.all().flat_map(|take| &take.entries);
    for (number, entry) in entries.filter(|(_, entry)| entry.way == Way::Received) {
        if entry.garbled {
            return Err(Unmet::broken("the line is not UTF-8", [*number]));
        }
        if entry.json().is_none() && !entry.cut {
            return Err(Unmet::broken("the line is no JSON", [*number]));
        }
        seen.push(*number);
    }
    Seen::at(seen.into_iter().take(3))
}
