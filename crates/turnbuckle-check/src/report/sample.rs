//! A small report that was made up, with one thing of each kind.

use std::time::Duration;

use turnbuckle_protocol::revision::Revision;

use super::{Report, Ruling, Run, Shown, Verdict};
use crate::outcome::Unmet;
use crate::rule::{Area, Role, Rule};

macro_rules! rule {
    ($name:ident, $id:literal, $area:ident, $rows:expr, $says:literal, $cure:literal) => {
        static $name: Rule = Rule::server($id, Area::$area, $rows)
            .says($says)
            .cure($cure)
            .look(|_, _| Err(Unmet::not_tested("it is made up")));
    };
}

rule!(
    METHOD,
    "base.unknown-method",
    Base,
    &["base.error.method-not-found"],
    "A request for a method that is not there is answered with the error -32601.",
    "Answer with the error -32601 when no handler has the name of the method."
);
rule!(
    IDS,
    "base.same-id",
    Base,
    &["base.response.same-id"],
    "An answer has the id of its request.",
    "Repeat the id of the request, with its type."
);
rule!(
    SHOULD,
    "tools.text-copy",
    Tools,
    &["tools.output.text-copy"],
    "A structured result is there as text, too.",
    "Add the JSON as a block of text."
);
rule!(
    ADVICE,
    "models.described",
    Models,
    &[],
    "Every tool has a description.",
    "Describe what the tool does and when to use it."
);
rule!(
    PROMPTS,
    "prompts.unknown",
    Prompts,
    &["prompts.error.unknown"],
    "A prompt that is not there is an error.",
    "Answer with the error -32602."
);
rule!(
    CALLS,
    "tools.output-fits",
    Tools,
    &["tools.output.conform"],
    "Structured results fit the schema of the tool.",
    "Validate results before they are sent."
);

/// A server with something of everything, and trickery in what it says.
pub(crate) fn report() -> Report {
    let mut report = Report::new(Role::Server, "https://weather.example/mcp");
    report.took = Duration::from_millis(1250);
    report.runs = vec![
        not_spoken(),
        run(Revision::V2025_11_25),
        run(Revision::V2026_07_28),
    ];
    report.left_out = vec!["`delete` was not called: it does not say that it only reads".into()];
    report
}

/// Takes our version out of a text, which changes for other reasons.
pub(crate) fn without_version(text: &str) -> String {
    text.replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

fn not_spoken() -> Run {
    let mut run = Run::new(Revision::V2024_11_05, "http");
    run.not_spoken = Some("the server chooses 2025-11-25".into());
    run
}

fn run(revision: Revision) -> Run {
    let mut run = Run::new(revision, "http");
    let kept = || Verdict::Kept(vec![Shown::new(true, "{}")]);
    let mut known = Ruling::new(&SHOULD, revision, broken("`forecast` answers without text"));
    known.known = true;
    run.rulings = vec![
        Ruling::new(&METHOD, revision, method()),
        Ruling::new(&IDS, revision, kept()),
        known,
        Ruling::new(
            &CALLS,
            revision,
            Verdict::NotTested("no tool says that it only reads".into()),
        ),
        Ruling::new(
            &PROMPTS,
            revision,
            Verdict::NotApplicable("the server does not declare the capability `prompts`".into()),
        ),
        Ruling::new(
            &ADVICE,
            revision,
            broken("`<b>forecast</b>` has no description"),
        ),
    ];
    run
}

fn broken(what: &str) -> Verdict {
    Verdict::Broken {
        what: what.into(),
        exchange: Vec::new(),
    }
}

fn method() -> Verdict {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"turnbuckle/no-such-method"}"#;
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"<script>alert(1)</script> | ``` \u{1b}[2J\u{202e}\"}}";
    Verdict::Broken {
        what: "the error -32603 “<script>alert(1)</script> | \u{1b}[2J” instead of -32601".into(),
        exchange: vec![
            Shown::new(false, request).with_head(
                "POST /mcp",
                &[
                    ("host", "weather.example"),
                    ("content-type", "application/json"),
                    ("authorization", "***"),
                ],
            ),
            Shown::new(true, answer).with_head(
                "200",
                &[
                    ("content-type", "application/json"),
                    ("date", "Mon, 16 Nov 2026 18:00:00 GMT"),
                ],
            ),
        ],
    }
}
