//! HTML report: a single page without scripts or external resources, for light and dark mode.

use std::fmt::Write as _;

use turnbuckle_text::sanitize::{escape_block, escape_line};

use super::{
    EvidenceExcerpt, Report, ReportOptions, RuleFinding, RuleStatus, StatusCounts, pretty,
    relevant_headers,
};

/// The maximum length of a quoted message.
const MAX_TEXT_CHARS: usize = 20_000;

const STYLE: &str = include_str!("html/style.css");

/// Returns the report as HTML.
pub fn document(report: &Report, options: &ReportOptions) -> String {
    let target = escaped(&escape_line(&report.target));
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Check of {target}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    text += &head(report, options, &target);
    text += &matrix(report);
    text += &findings(report, options);
    text += &stale(report);
    for status in [RuleStatus::NotTested, RuleStatus::NotApplicable] {
        text += &reasons_for(report, status);
    }
    text += &skipped(report);
    text += &format!(
        "<footer>turnbuckle check {}, {:.1} s</footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        report.duration.as_secs_f64()
    );
    text
}

fn head(report: &Report, options: &ReportOptions, target: &str) -> String {
    let heading = match options.failures(report) {
        0 if report.stale_baseline.is_empty() => "No failures".to_owned(),
        0 => "The baseline is out of date".to_owned(),
        1 => "One rule is violated".to_owned(),
        many => format!("{many} rules are violated"),
    };
    let class = match options.failures(report) + report.stale_baseline.len() {
        0 => "pass",
        _ => "fail",
    };
    let mut text = format!(
        "<header>\n<p class=\"target\">{target}</p>\n<h1 class=\"{class}\">{heading}</h1>\n<ul class=\"counts\">\n"
    );
    for status in RuleStatus::ALL {
        let count = report.count(status);
        if count > 0 {
            let _ = writeln!(
                text,
                "<li>{} <b>{count}</b> {}</li>",
                sign(status),
                status.as_str()
            );
        }
    }
    text + "</ul>\n</header>\n"
}

fn matrix(report: &Report) -> String {
    let mut text = String::from(
        "<section>\n<h2>By area and revision</h2>\n<div class=\"wide\">\n<table>\n<thead><tr><td></td>",
    );
    for run in &report.runs {
        let class = if run.unsupported.is_some() {
            " class=\"unspoken\""
        } else {
            ""
        };
        let _ = write!(text, "<th scope=\"col\"{class}>{}</th>", run.revision);
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in report.matrix() {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", row.area.as_str());
        text.extend(row.cells.iter().map(cell));
        text += "</tr>\n";
    }
    text += "</tbody>\n</table>\n</div>\n";
    for run in &report.runs {
        if let Some(why) = &run.unsupported {
            let why = escaped(&escape_line(why));
            let _ = writeln!(
                text,
                "<p class=\"note\">{} is not supported: {why}</p>",
                run.revision
            );
        }
    }
    text + "</section>\n"
}

fn cell(counts: &StatusCounts) -> String {
    let Some(worst) = counts.worst() else {
        return "<td></td>".to_owned();
    };
    let counted: Vec<_> = counts.summary();
    let title: Vec<_> = counted
        .iter()
        .map(|(status, count)| format!("{count} {}", status.as_str()))
        .collect();
    let parts: Vec<_> = counted
        .iter()
        .map(|(status, count)| format!("<span>{}{count}</span>", status.sign()))
        .collect();
    format!(
        "<td class=\"{}\" title=\"{}\">{}</td>",
        class(worst),
        title.join(", "),
        parts.join(" ")
    )
}

fn findings(report: &Report, options: &ReportOptions) -> String {
    let findings = options.findings(report);
    if findings.is_empty() {
        return String::new();
    }
    let mut text = String::from("<section>\n<h2>Findings</h2>\n");
    for finding in &findings {
        text += &details(finding);
    }
    text + "</section>\n"
}

fn details(finding: &RuleFinding<'_>) -> String {
    let status = finding.status();
    let open = if status == RuleStatus::Fail && !finding.in_baseline {
        " open"
    } else {
        ""
    };
    let known = if finding.in_baseline {
        " <em>known</em>"
    } else {
        ""
    };
    let revisions: Vec<_> = finding
        .locations
        .iter()
        .map(|place| place.revision.as_str())
        .collect();
    let mut text = format!(
        "<details class=\"{}\"{open}>\n<summary>{} <code>{}</code>{known} <span>{}</span></summary>\n<dl>\n",
        class(status),
        sign(status),
        finding.rule.id,
        escaped(finding.rule.requirement)
    );
    text += &term("Observed", &quoted(finding.observed));
    text += &term("In", &revisions.join(", "));
    if let Some(row) = finding.requirement() {
        let summary = quoted(&row.summary);
        let place = match finding.link() {
            Some(spec_link) => format!("<a href=\"{}\">{}</a>", escaped(&spec_link), row.id),
            None => row.id.to_owned(),
        };
        text += &term(row.level, &format!("{summary}<br><small>{place}</small>"));
    }
    text += &term("Hint", &quoted(finding.rule.hint));
    text += "</dl>\n";
    text.extend(finding.evidence.iter().map(evidence));
    text + "</details>\n"
}

fn term(name: &str, value: &str) -> String {
    format!("<dt>{name}</dt><dd>{value}</dd>\n")
}

fn evidence(excerpt: &EvidenceExcerpt) -> String {
    let (class, who) = if excerpt.from_peer {
        ("received", "received")
    } else {
        ("sent", "sent")
    };
    let mut text = format!("<figure class=\"{class}\">\n<figcaption>{who}</figcaption>\n<pre>");
    if let Some(head) = &excerpt.start_line {
        let _ = writeln!(text, "<b>{}</b>", escaped(&escape_line(head)));
        for (name, value) in relevant_headers(excerpt) {
            let _ = writeln!(
                text,
                "<i>{}:</i> {}",
                escaped(&escape_line(name)),
                escaped(&escape_line(value))
            );
        }
        if !excerpt.text.is_empty() {
            text.push('\n');
        }
    }
    text += &escaped(&pretty(excerpt, MAX_TEXT_CHARS));
    text + "</pre>\n</figure>\n"
}

fn stale(report: &Report) -> String {
    if report.stale_baseline.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<section>\n<h2>No longer violated</h2>\n<p>Remove these from the baseline:</p>\n<ul>\n",
    );
    for entry in &report.stale_baseline {
        let _ = writeln!(
            text,
            "<li><code>{}</code></li>",
            escaped(&escape_line(&entry.to_string()))
        );
    }
    text + "</ul>\n</section>\n"
}

fn reasons_for(report: &Report, status: RuleStatus) -> String {
    let reasons = report.reasons_for(status);
    if reasons.is_empty() {
        return String::new();
    }
    let rules: usize = reasons.iter().map(|reason| reason.rules.len()).sum();
    let mut text = format!(
        "<section>\n<details class=\"reasons\">\n<summary>{} {rules} {}</summary>\n<ul>\n",
        sign(status),
        status.as_str()
    );
    for reason in reasons {
        let rules: Vec<_> = reason
            .rules
            .iter()
            .map(|rule| format!("<code>{rule}</code>"))
            .collect();
        let _ = writeln!(text, "<li>{}: {}</li>", quoted(reason.why), rules.join(" "));
    }
    text + "</ul>\n</details>\n</section>\n"
}

fn skipped(report: &Report) -> String {
    if report.skipped.is_empty() {
        return String::new();
    }
    let mut text = String::from("<section>\n<h2>Skipped</h2>\n<ul>\n");
    for observed in &report.skipped {
        let _ = writeln!(text, "<li>{}</li>", quoted(observed));
    }
    text + "</ul>\n</section>\n"
}

fn sign(status: RuleStatus) -> String {
    format!(
        "<span class=\"sign {}\" aria-label=\"{}\">{}</span>",
        class(status),
        status.as_str(),
        status.sign()
    )
}

fn class(status: RuleStatus) -> &'static str {
    match status {
        RuleStatus::Pass => "pass",
        RuleStatus::Fail => "fail",
        RuleStatus::Warn => "warn",
        RuleStatus::Advice => "advice",
        RuleStatus::NotApplicable => "absent",
        RuleStatus::NotTested => "untested",
    }
}

/// Formats a sentence that may quote the server; text between backticks becomes code.
fn quoted(text: &str) -> String {
    let text = escaped(&escape_line(text));
    let parts: Vec<_> = text.split('`').collect();
    if parts.len() % 2 == 0 {
        return text;
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => (*part).to_owned(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

fn escaped(text: &str) -> String {
    let text = escape_block(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;");
    text.replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn report_matches_the_snapshot() {
        let text = document(&sample::report(), &ReportOptions::default());

        insta::assert_snapshot!(sample::without_version(&text.replace(STYLE, "")));
    }

    #[test]
    fn page_has_no_scripts_or_external_resources() {
        let text = document(&sample::report(), &ReportOptions::default());

        assert!(!text.contains("<script") && !text.contains("src=") && !text.contains("url("));
        assert!(!text.contains("@import") && !text.contains("<link"));
    }

    #[test]
    fn server_text_is_escaped_in_html() {
        assert_eq!(
            quoted("a `<b>` \u{202e}"),
            "a <code>&lt;b&gt;</code> \\u{202e}"
        );
        assert_eq!(quoted("an unpaired ` & '"), "an unpaired ` &amp; &#39;");
    }
}
