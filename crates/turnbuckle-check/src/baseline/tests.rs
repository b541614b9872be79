use super::*;
use crate::{report::sample, rule::RequirementLevel};

const KNOWN: &str = "base.unknown-method";

fn entry(text: &str) -> BaselineEntry {
    let entries = lines(text).expect("it is a baseline");
    entries.into_iter().next().expect("it has an entry")
}

#[test]
fn lines_name_a_rule_a_revision_and_a_transport() {
    let text = "# all of it\n\nbase.unknown-method 2025-11-25 http # soon\nbase.unknown-method\n";

    let read = Baseline::parse(text).expect("it is a baseline");

    assert_eq!(
        read.to_string(),
        "# What `turnbuckle check` found and is known: rule, revision, transport.\n\
         base.unknown-method 2025-11-25 http # soon\nbase.unknown-method * *\n"
    );
    assert_eq!(Baseline::parse(&read.to_string()).expect("it is one"), read);
}

#[test]
fn json_says_the_same() {
    let text = r#"[{"rule": "base.unknown-method", "revision": "2025-11-25", "transport": "http", "why": "soon"}]"#;

    let read = Baseline::parse(text).expect("it is a baseline");

    assert_eq!(
        read.entries,
        [entry("base.unknown-method 2025-11-25 http # soon")]
    );
}

#[test]
fn what_nobody_knows_is_an_error() {
    let error = |text| Baseline::parse(text).expect_err("it is none").to_string();

    assert!(
        error("base.unknown-metod")
            .starts_with("there is no rule `base.unknown-metod` (nearest: `base.unknown-method`")
    );
    assert_eq!(
        error("base.unknown-method 2025-11-26"),
        "`2025-11-26` is no revision"
    );
    assert_eq!(
        error("base.unknown-method * htp"),
        "`htp` is no transport: there is stdio, lines, http, http+sse"
    );
    assert_eq!(
        error("base.unknown-method * http because"),
        "line 1 has more than a rule, a revision and a transport; what people say stands after `#`"
    );
    assert!(error("[{}]").starts_with("it is no list of known failures: missing field"));
}

#[test]
fn what_is_known_counts_no_more() {
    let mut report = sample::report();
    let options = ReportOptions::default();
    assert_eq!(options.failures(&report), 1);

    let known = Baseline::from_report(&report, &options);
    known.apply(&mut report);

    assert_eq!(known.entries.len(), 2);
    assert_eq!(options.failures(&report), 0);
    assert!(report.stale_baseline.is_empty());
}

#[test]
fn one_revision_that_is_not_known_counts() {
    let mut report = sample::report();

    let known = Baseline {
        entries: vec![entry(&format!("{KNOWN} 2025-11-25 http"))],
    };
    known.apply(&mut report);

    assert_eq!(ReportOptions::default().failures(&report), 1);
}

#[test]
fn what_is_kept_or_does_not_apply_is_stale_and_what_was_not_seen_is_not() {
    let mut report = sample::report();
    let text = "base.same-id 2025-11-25 http\nbase.same-id 2024-11-05 http\nbase.same-id * stdio\n\
                prompts.unknown\ntools.output-fits\nbase.unknown-method";

    let entries = lines(text).expect("they are entries");
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
fn a_lower_level_takes_more_into_the_baseline() {
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
