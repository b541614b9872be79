//! A report as JUnit's XML, which every build server reads: a suite for each revision, a case for each rule.

use std::fmt::Write as _;

use super::text::visible;
use super::{Grade, Report, Ruling, Run, Shown, Verdict, View, page, telling};

/// The longest message that is quoted whole.
const LONGEST: usize = 2000;

/// Returns a report as XML.
pub fn document(report: &Report, view: &View) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let suites: Vec<_> = report.runs.iter().map(|run| suite(run, view)).collect();
    let name = escaped(&format!("turnbuckle check {}", report.target));
    let seconds = report.took.as_secs_f64();
    let _ = writeln!(text, "<testsuites name=\"{name}\" time=\"{seconds:.3}\">");
    text.extend(suites);
    text += &stale(report);
    text + "</testsuites>\n"
}

fn suite(run: &Run, view: &View) -> String {
    let cases: Vec<_> = match &run.not_spoken {
        Some(why) => vec![not_spoken(run, why)],
        None => run
            .rulings
            .iter()
            .map(|ruling| case(run, ruling, view))
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

fn name(run: &Run) -> String {
    format!("{} {}", run.revision, run.transport)
}

fn not_spoken(run: &Run, why: &str) -> String {
    let why = escaped(&format!("not spoken: {why}"));
    format!(
        "    <testcase classname=\"{}\" name=\"spoken\">\n      <skipped message=\"{why}\"/>\n    </testcase>\n",
        name(run)
    )
}

fn case(run: &Run, ruling: &Ruling, view: &View) -> String {
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\"",
        name(run),
        ruling.rule.id
    );
    let inside = match &ruling.verdict {
        Verdict::Kept(_) => return format!("{head}/>\n"),
        Verdict::Broken { what, .. } if ruling.known => skipped(&format!("known: {what}")),
        Verdict::Broken { what, exchange } if ruling.level >= view.counts => {
            let kind = ruling.level.as_str();
            let (what, details) = (escaped(what), escaped(&details(run, ruling, exchange)));
            format!("      <failure message=\"{what}\" type=\"{kind}\">{details}</failure>\n")
        }
        Verdict::Broken { what, exchange } => {
            let told = format!(
                "{}: {what}\n{}",
                ruling.grade().as_str(),
                details(run, ruling, exchange)
            );
            format!("      <system-out>{}</system-out>\n", escaped(&told))
        }
        Verdict::NotApplicable(why) => {
            skipped(&format!("{}: {why}", Grade::NotApplicable.as_str()))
        }
        Verdict::NotTested(why) => skipped(&format!("{}: {why}", Grade::NotTested.as_str())),
    };
    format!("{head}>\n{inside}    </testcase>\n")
}

fn skipped(message: &str) -> String {
    format!("      <skipped message=\"{}\"/>\n", escaped(message))
}

fn details(run: &Run, ruling: &Ruling, exchange: &[Shown]) -> String {
    let mut text = format!("{}\n{}\n", ruling.rule.says, ruling.rule.cure);
    for row in ruling.rule.rows_in(run.revision) {
        let _ = writeln!(text, "{} {}", row.id, page(row.source).unwrap_or_default());
    }
    for shown in exchange {
        let sign = if shown.theirs { '<' } else { '>' };
        if let Some(line) = &shown.line {
            let _ = writeln!(text, "{sign} {line}");
        }
        for (name, value) in telling(shown) {
            let _ = writeln!(text, "{sign} {name}: {value}");
        }
        if !shown.text.is_empty() {
            let _ = writeln!(text, "{sign} {}", shown.excerpt(LONGEST));
        }
    }
    text
}

/// What a baseline knows wrongly fails, too.
fn stale(report: &Report) -> String {
    if report.stale.is_empty() {
        return String::new();
    }
    let count = report.stale.len();
    let mut text = format!(
        "  <testsuite name=\"baseline\" tests=\"{count}\" failures=\"{count}\" errors=\"0\" skipped=\"0\">\n"
    );
    for entry in &report.stale {
        let entry = escaped(&entry.to_string());
        let _ = write!(
            text,
            "    <testcase classname=\"baseline\" name=\"{entry}\">\n      <failure message=\"it is not broken any more: take it out\" type=\"stale\"/>\n    </testcase>\n"
        );
    }
    text + "  </testsuite>\n"
}

fn escaped(text: &str) -> String {
    let text = visible(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use crate::report::{View, sample};

    #[test]
    fn a_report_is_a_suite_for_each_revision() {
        insta::assert_snapshot!(super::document(&sample::report(), &View::default()));
    }

    #[test]
    fn nothing_that_a_server_says_is_read_as_xml() {
        let text = super::escaped("]]></failure><x a=\"1\">\u{0}\u{ffff}");

        assert_eq!(
            text,
            "]]&gt;&lt;/failure&gt;&lt;x a=&quot;1&quot;&gt;\\u{0}\\u{ffff}"
        );
    }
}
