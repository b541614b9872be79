use super::*;
use crate::{report::sample, rule::RequirementLevel};

const VIOLATED_RULE: &str = "base.unknown-method";

fn entry(text: &str) -> BaselineEntry {
    let entries = lines(text).expect("the baseline is valid");
    entries
        .into_iter()
        .next()
        .expect("the baseline has an entry")
}

#[test]
fn lines_have_a_rule_a_revision_and_a_transport() {
    let text = "# comment\n\nbase.unknown-method 2025-11-25 http # soon\nbase.unknown-method\n";

    let parsed = Baseline::parse(text).expect("the baseline is valid");

    assert_eq!(
        parsed.to_string(),
        "# Known violations of `turnbuckle check`: rule, revision, transport.\n\
         base.unknown-method 2025-11-25 http # soon\nbase.unknown-method * *\n"
    );
    assert_eq!(
        Baseline::parse(&parsed.to_string()).expect("the output is a baseline"),
        parsed
    );
}

#[test]
fn json_form_is_equivalent() {
    let text = r#"[{"rule": "base.unknown-method", "revision": "2025-11-25", "transport": "http", "why": "soon"}]"#;

    let parsed = Baseline::parse(text).expect("the baseline is valid");

    assert_eq!(
        parsed.entries,
        [entry("base.unknown-method 2025-11-25 http # soon")]
    );
}

#[test]
fn unknown_rules_revisions_and_transports_are_errors() {
    let error = |text| {
        Baseline::parse(text)
            .expect_err("the baseline is invalid")
            .to_string()
    };

    assert!(
        error("base.unknown-metod")
            .starts_with("unknown rule `base.unknown-metod` (nearest: `base.unknown-method`")
    );
    assert_eq!(
        error("base.unknown-method 2025-11-26"),
        "unknown revision `2025-11-26`"
    );
    assert_eq!(
        error("base.unknown-method * htp"),
        "unknown transport `htp`: expected one of stdio, lines, http, http+sse"
    );
    assert_eq!(
        error("base.unknown-method * http because"),
        "line 1: expected a rule, a revision and a transport; comments start with `#`"
    );
    assert!(error("[{}]").starts_with("invalid baseline: `[0]`: missing field"));
    assert_eq!(
        error("[7]"),
        "invalid baseline: `[0]`: invalid type: number `7`, expected object"
    );
    assert!(error("[7").contains("line 1 column 2"));
}

#[test]
fn violations_in_the_baseline_do_not_count() {
    let mut report = sample::report();
    let options = ReportOptions::default();
    assert_eq!(options.failures(&report), 1);

    let baseline = Baseline::from_report(&report, &options);
    baseline.apply(&mut report);

    assert_eq!(baseline.entries.len(), 2);
    assert_eq!(options.failures(&report), 0);
    assert!(report.stale_baseline.is_empty());
}

#[test]
fn violation_in_a_revision_outside_of_the_baseline_counts() {
    let mut report = sample::report();

    let baseline = Baseline {
        entries: vec![entry(&format!("{VIOLATED_RULE} 2025-11-25 http"))],
    };
    baseline.apply(&mut report);

    assert_eq!(ReportOptions::default().failures(&report), 1);
}

#[test]
fn passed_and_inapplicable_entries_are_stale_but_untested_ones_are_not() {
    let mut report = sample::report();
    let text = "base.same-id 2025-11-25 http\nbase.same-id 2024-11-05 http\nbase.same-id * stdio\n\
                prompts.unknown\ntools.output-fits\nbase.unknown-method";

    let entries = lines(text).expect("the entries are valid");
    Baseline { entries }.apply(&mut report);

    let stale: Vec<_> = report
        .stale_baseline
        .iter()
        .map(BaselineEntry::to_string)
        .collect();
    assert_eq!(
        stale,
        ["base.same-id 2025-11-25 http", "prompts.unknown * *"]
    );
}

#[test]
fn baseline_depends_on_the_failure_level() {
    let options = ReportOptions {
        fail_on: RequirementLevel::Advice,
        min_level: RequirementLevel::Advice,
    };

    assert_eq!(
        Baseline::from_report(&sample::report(), &options)
            .entries
            .len(),
        6
    );
}
