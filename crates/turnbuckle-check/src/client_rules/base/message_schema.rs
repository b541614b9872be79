//! The schema of requests and notifications of clients.

use crate::{
    engine::outcome::{Evidence, NotPassed, Outcome},
    message_schema,
    mock_server::scenario_run::{ClientMessage, ScenarioRuns},
    rule::{Area, Rule},
};

pub(crate) const RULES: &[Rule] = &[Rule::client(
    "client.shapes.messages",
    Area::Shapes,
    &["schema.message-valid"],
)
.requirement("The parameters of requests and notifications match the schema of the revision.")
.hint("Build parameters according to the schema of the revision, with all required members.")
.scenarios(&[], messages)];

fn messages(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for message in runs
        .messages()
        .filter(|message| message.method().is_some() && !is_covered_by_other_rule(message))
    {
        let violations = if message.is_request() {
            message_schema::request(runs.revision, &message.value)
        } else {
            message_schema::notification(runs.revision, &message.value)
        };
        // `_meta` and cursors are covered by other rules.
        let is_other_rule = |path: &str| {
            path == "params" || path.starts_with("params._meta") || path == "params.cursor"
        };
        if let Some(violation) = violations
            .iter()
            .find(|violation| !is_other_rule(&violation.path))
        {
            return Err(NotPassed::violation(
                violation.to_string(),
                [message.number],
            ));
        }
        evidence.push(message.number);
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}

/// Returns whether another rule covers the parameters of a message.
fn is_covered_by_other_rule(message: &ClientMessage) -> bool {
    let has_input_responses = message.params().get("inputResponses").is_some();
    has_input_responses
        || matches!(
            message.method(),
            Some("initialize" | "notifications/cancelled")
        )
}
