//! JUnit XML report, for CI servers: one suite per revision, one case per rule.

use std::fmt::Write as _;

use turnbuckle_text::sanitize::escape_block;

use super::{
    EvidenceExcerpt, Report, ReportOptions, RuleOutcome, RuleResult, RuleStatus, RunReport,
    relevant_headers, spec_link_in,
};

/// The maximum length of a quoted message.
const MAX_TEXT_CHARS: usize = 2000;

/// Returns the report as XML.
pub fn document(report: &Report, options: &ReportOptions) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let suites: Vec<_> = report.runs.iter().map(|run| suite(run, options)).collect();
    let name = escaped(&format!("turnbuckle check {}", report.target));
    let seconds = report.duration.as_secs_f64();
    let _ = writeln!(text, "<testsuites name=\"{name}\" time=\"{seconds:.3}\">");
    text.extend(suites);
    text += &stale(report);
    text + "</testsuites>\n"
}

fn suite(run: &RunReport, options: &ReportOptions) -> String {
    let cases: Vec<_> = match &run.unsupported {
        Some(why) => vec![unsupported(run, why)],
        None => run
            .results
            .iter()
            .map(|result| case(run, result, options))
            .collect(),
    };
    let count = |element: &str| cases.iter().filter(|case| case.contains(element)).count();
    format!(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">\n{}  </testsuite>\n",
        name(run),
        cases.len(),
        count("<failure "),
        count("<skipped "),
        cases.concat(),
    )
}

fn name(run: &RunReport) -> String {
    format!("{} {}", run.revision, run.transport)
}

fn unsupported(run: &RunReport, why: &str) -> String {
    let why = escaped(&format!("not supported: {why}"));
    format!(
        "    <testcase classname=\"{}\" name=\"supported\">\n      <skipped message=\"{why}\"/>\n    </testcase>\n",
        name(run)
    )
}

fn case(run: &RunReport, result: &RuleResult, options: &ReportOptions) -> String {
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\"",
        name(run),
        result.rule.id
    );
    let inside = match &result.outcome {
        RuleOutcome::Passed(_) => return format!("{head}/>\n"),
        RuleOutcome::Violated { observed, .. } if result.in_baseline => {
            skipped(&format!("known: {observed}"))
        }
        RuleOutcome::Violated {
            observed, evidence, ..
        } if result.level >= options.fail_on => {
            let kind = result.level.as_str();
            let (observed, details) = (escaped(observed), escaped(&details(run, result, evidence)));
            format!("      <failure message=\"{observed}\" type=\"{kind}\">{details}</failure>\n")
        }
        RuleOutcome::Violated {
            observed, evidence, ..
        } => {
            let passed = format!(
                "{}: {observed}\n{}",
                result.status().as_str(),
                details(run, result, evidence)
            );
            format!("      <system-out>{}</system-out>\n", escaped(&passed))
        }
        RuleOutcome::NotApplicable(why) => {
            skipped(&format!("{}: {why}", RuleStatus::NotApplicable.as_str()))
        }
        RuleOutcome::NotTested(why) => {
            skipped(&format!("{}: {why}", RuleStatus::NotTested.as_str()))
        }
    };
    format!("{head}>\n{inside}    </testcase>\n")
}

fn skipped(message: &str) -> String {
    format!("      <skipped message=\"{}\"/>\n", escaped(message))
}

fn details(run: &RunReport, result: &RuleResult, evidence: &[EvidenceExcerpt]) -> String {
    let mut text = format!("{}\n{}\n", result.rule.requirement, result.rule.hint);
    if let Some(row) = result.violated_requirement(run.revision) {
        let link = spec_link_in(row.source, run.revision).unwrap_or_default();
        let _ = writeln!(text, "{} {} {link}", row.level, row.id);
    }
    for excerpt in evidence {
        let sign = if excerpt.from_peer { '<' } else { '>' };
        if let Some(line) = &excerpt.start_line {
            let _ = writeln!(text, "{sign} {line}");
        }
        for (name, value) in relevant_headers(excerpt) {
            let _ = writeln!(text, "{sign} {name}: {value}");
        }
        if !excerpt.text.is_empty() {
            let _ = writeln!(text, "{sign} {}", excerpt.excerpt(MAX_TEXT_CHARS));
        }
    }
    text
}

/// Returns a suite in which every stale baseline entry fails.
fn stale(report: &Report) -> String {
    if report.stale_baseline.is_empty() {
        return String::new();
    }
    let count = report.stale_baseline.len();
    let mut text = format!(
        "  <testsuite name=\"baseline\" tests=\"{count}\" failures=\"{count}\" errors=\"0\" skipped=\"0\">\n"
    );
    for entry in &report.stale_baseline {
        let entry = escaped(&entry.to_string());
        let _ = write!(
            text,
            "    <testcase classname=\"baseline\" name=\"{entry}\">\n      <failure message=\"no longer violated: remove it from the baseline\" type=\"stale\"/>\n    </testcase>\n"
        );
    }
    text + "  </testsuite>\n"
}

fn escaped(text: &str) -> String {
    let text = escape_block(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::report::{ReportOptions, sample};

    #[test]
    fn junit_report_has_a_suite_per_revision() {
        insta::assert_snapshot!(super::document(
            &sample::report(),
            &ReportOptions::default()
        ));
    }

    #[test]
    fn server_text_is_escaped_in_xml() {
        let text = super::escaped("]]></failure><x a=\"1\">\u{0}\u{ffff}");

        assert_eq!(
            text,
            "]]&gt;&lt;/failure&gt;&lt;x a=&quot;1&quot;&gt;\\u{0}\\u{ffff}"
        );
    }
}
