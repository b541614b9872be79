//! Newline-delimited JSON.

use crate::{
    engine::{
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
    },
    mock_server::scenario_run::ScenarioRuns,
    rule::{Area, Rule, Transports},
};

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
.requirement("Every line is a JSON message in UTF-8.")
.hint("Write each message as one line of JSON in UTF-8, and nothing else.")
.transports(Transports::Ndjson)
.scenarios(&[], only_messages)];

fn only_messages(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    let entries = runs.all().flat_map(|run| &run.entries);
    for (number, entry) in entries.filter(|(_, entry)| entry.direction == Direction::Received) {
        if entry.invalid_utf8 {
            let violation = NotPassed::violation("the line is not UTF-8", [*number]);
            return Err(violation.for_requirement("base.encoding.utf8"));
        }
        if entry.json().is_none() && !entry.truncated {
            let violation = NotPassed::violation("the line is not JSON", [*number]);
            return Err(violation.for_requirement("stdio.stdin.only-mcp"));
        }
        evidence.push(*number);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}
