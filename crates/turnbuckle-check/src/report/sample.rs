//! A report with one result of each kind, for tests.

use std::time::Duration;

use turnbuckle_protocol::revision::Revision;

use super::{EvidenceExcerpt, Report, RuleOutcome, RuleResult, RunReport};
use crate::{
    engine::outcome::NotPassed,
    rule::{Area, Role, Rule},
};

macro_rules! rule {
    ($name:ident, $id:literal, $area:ident, $requirement_ids:expr, $requirement:literal, $hint:literal) => {
        static $name: Rule = Rule::server($id, Area::$area, $requirement_ids)
            .requirement($requirement)
            .hint($hint)
            .passive(|_, _| Err(NotPassed::not_tested("this is a sample")));
    };
}

rule!(
    METHOD,
    "base.unknown-method",
    Base,
    &["base.error.method-not-found"],
    "A request with an unknown method returns error -32601.",
    "Return error -32601 when no handler is registered for the method."
);
rule!(
    IDS,
    "base.same-id",
    Base,
    &["base.response.same-id"],
    "A response has the id of its request.",
    "Copy the id of the request, including its type."
);
rule!(
    SHOULD,
    "tools.text-copy",
    Tools,
    &["tools.output.text-copy"],
    "A structured result is also present as text.",
    "Add the JSON as a text block."
);
rule!(
    ADVICE,
    "models.described",
    Models,
    &[],
    "Every tool is described.",
    "Describe what the tool does and when to use it."
);
rule!(
    PROMPTS,
    "prompts.unknown",
    Prompts,
    &["prompts.error.unknown"],
    "`prompts/get` with an unknown name returns an error.",
    "Return error -32602."
);
rule!(
    CALLS,
    "tools.output-fits",
    Tools,
    &["tools.output.conform"],
    "Structured results match the output schema.",
    "Validate results before they are sent."
);

/// Returns a report with one result of each kind, and hostile text in messages.
pub(crate) fn report() -> Report {
    let mut report = Report::new(Role::Server, "https://weather.example/mcp");
    report.duration = Duration::from_millis(1250);
    report.runs = vec![
        unsupported(),
        run(Revision::V2025_11_25),
        run(Revision::V2026_07_28),
    ];
    report.skipped = vec!["skipped the tool `delete`: not annotated `readOnlyHint`".into()];
    report
}

/// Replaces the version of the checker, which changes with releases.
pub(crate) fn without_version(text: &str) -> String {
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

fn unsupported() -> RunReport {
    let mut run = RunReport::new(Revision::V2024_11_05, "http");
    run.unsupported = Some("the server responds with 2025-11-25".into());
    run
}

fn run(revision: Revision) -> RunReport {
    let mut run = RunReport::new(revision, "http");
    let passed = || RuleOutcome::Passed(vec![EvidenceExcerpt::new(true, "{}")]);
    let mut known = RuleResult::new(
        &SHOULD,
        revision,
        violated("`forecast` responds without text"),
    );
    known.in_baseline = true;
    run.results = vec![
        RuleResult::new(&METHOD, revision, method()),
        RuleResult::new(&IDS, revision, passed()),
        known,
        RuleResult::new(
            &CALLS,
            revision,
            RuleOutcome::NotTested("no tool is annotated `readOnlyHint`".into()),
        ),
        RuleResult::new(
            &PROMPTS,
            revision,
            RuleOutcome::NotApplicable(
                "the server does not declare the capability `prompts`".into(),
            ),
        ),
        RuleResult::new(
            &ADVICE,
            revision,
            violated("`<b>forecast</b>` lacks a description"),
        ),
    ];
    run
}

fn violated(observed: &str) -> RuleOutcome {
    RuleOutcome::Violated {
        observed: observed.into(),
        evidence: Vec::new(),
        requirement: None,
    }
}

fn method() -> RuleOutcome {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"turnbuckle/no-such-method"}"#;
    let response = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"<script>alert(1)</script> | ``` \u{1b}[2J\u{202e}\"}}";
    RuleOutcome::Violated {
        observed: "the error -32603 “<script>alert(1)</script> | \u{1b}[2J” instead of -32601"
            .into(),
        evidence: vec![
            EvidenceExcerpt::new(false, request).with_head(
                "POST /mcp",
                &[
                    ("host", "weather.example"),
                    ("content-type", "application/json"),
                    ("authorization", "***"),
                ],
            ),
            EvidenceExcerpt::new(true, response).with_head(
                "200",
                &[
                    ("content-type", "application/json"),
                    ("date", "Mon, 16 Nov 2026 18:00:00 GMT"),
                ],
            ),
        ],
        requirement: None,
    }
}
