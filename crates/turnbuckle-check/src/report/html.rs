//! A report as one page of HTML: no scripts, nothing fetched, readable in light and in the dark.

use std::fmt::Write as _;

use super::text::{line, pretty, visible};
use super::{Counts, Finding, Grade, Report, Shown, View, page, telling};

/// The longest message that is quoted whole.
const LONGEST: usize = 20_000;

const STYLE: &str = include_str!("html/style.css");

/// Returns a report as a page.
pub fn document(report: &Report, view: &View) -> String {
    let target = escaped(&line(&report.target));
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>Check of {target}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    text += &head(report, view, &target);
    text += &matrix(report);
    text += &findings(report, view);
    text += &stale(report);
    for grade in [Grade::NotTested, Grade::NotApplicable] {
        text += &untold(report, grade);
    }
    text += &left_out(report);
    text += &format!(
        "<footer>turnbuckle check {}, {:.1} s</footer>\n</main>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        report.took.as_secs_f64()
    );
    text
}

fn head(report: &Report, view: &View, target: &str) -> String {
    let verdict = match view.broken(report) {
        0 if report.stale.is_empty() => "Nothing that counts is broken".to_owned(),
        0 => "The baseline is out of date".to_owned(),
        1 => "One rule is broken".to_owned(),
        many => format!("{many} rules are broken"),
    };
    let class = match view.broken(report) + report.stale.len() {
        0 => "pass",
        _ => "fail",
    };
    let mut text = format!(
        "<header>\n<p class=\"target\">{target}</p>\n<h1 class=\"{class}\">{verdict}</h1>\n<ul class=\"counts\">\n"
    );
    for grade in Grade::ALL {
        let count = report.count(grade);
        if count > 0 {
            let _ = writeln!(
                text,
                "<li>{} <b>{count}</b> {}</li>",
                sign(grade),
                grade.as_str()
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
        let class = if run.not_spoken.is_some() {
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
        if let Some(why) = &run.not_spoken {
            let why = escaped(&line(why));
            let _ = writeln!(
                text,
                "<p class=\"note\">{} is not spoken: {why}</p>",
                run.revision
            );
        }
    }
    text + "</section>\n"
}

fn cell(counts: &Counts) -> String {
    let Some(worst) = counts.worst() else {
        return "<td></td>".to_owned();
    };
    let told: Vec<_> = counts.told();
    let title: Vec<_> = told
        .iter()
        .map(|(grade, count)| format!("{count} {}", grade.as_str()))
        .collect();
    let parts: Vec<_> = told
        .iter()
        .map(|(grade, count)| format!("<span>{}{count}</span>", grade.sign()))
        .collect();
    format!(
        "<td class=\"{}\" title=\"{}\">{}</td>",
        class(worst),
        title.join(", "),
        parts.join(" ")
    )
}

fn findings(report: &Report, view: &View) -> String {
    let findings = view.findings(report);
    if findings.is_empty() {
        return String::new();
    }
    let mut text = String::from("<section>\n<h2>Findings</h2>\n");
    for finding in &findings {
        text += &details(finding);
    }
    text + "</section>\n"
}

fn details(finding: &Finding<'_>) -> String {
    let grade = finding.grade();
    let open = if grade == Grade::Fail && !finding.known {
        " open"
    } else {
        ""
    };
    let known = if finding.known { " <em>known</em>" } else { "" };
    let revisions: Vec<_> = finding
        .places
        .iter()
        .map(|place| place.revision.as_str())
        .collect();
    let mut text = format!(
        "<details class=\"{}\"{open}>\n<summary>{} <code>{}</code>{known} <span>{}</span></summary>\n<dl>\n",
        class(grade),
        sign(grade),
        finding.rule.id,
        escaped(finding.rule.says)
    );
    text += &term("Seen", &quoted(finding.what));
    text += &term("In", &revisions.join(", "));
    for row in finding.rows() {
        let summary = quoted(&row.summary);
        let place = match page(row.source) {
            Some(page) => format!("<a href=\"{}\">{}</a>", escaped(&page), row.id),
            None => row.id.to_owned(),
        };
        text += &term(row.level, &format!("{summary}<br><small>{place}</small>"));
    }
    text += &term("Cure", &quoted(finding.rule.cure));
    text += "</dl>\n";
    text.extend(finding.exchange.iter().map(exchange));
    text + "</details>\n"
}

fn term(name: &str, value: &str) -> String {
    format!("<dt>{name}</dt><dd>{value}</dd>\n")
}

fn exchange(shown: &Shown) -> String {
    let (class, who) = match shown.theirs {
        true => ("theirs", "received"),
        false => ("ours", "sent"),
    };
    let mut text = format!("<figure class=\"{class}\">\n<figcaption>{who}</figcaption>\n<pre>");
    if let Some(head) = &shown.line {
        let _ = writeln!(text, "<b>{}</b>", escaped(&line(head)));
        for (name, value) in telling(shown) {
            let _ = writeln!(
                text,
                "<i>{}:</i> {}",
                escaped(&line(name)),
                escaped(&line(value))
            );
        }
        if !shown.text.is_empty() {
            text.push('\n');
        }
    }
    text += &escaped(&pretty(shown, LONGEST));
    text + "</pre>\n</figure>\n"
}

fn stale(report: &Report) -> String {
    if report.stale.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<section>\n<h2>Not broken any more</h2>\n<p>Take these out of the baseline:</p>\n<ul>\n",
    );
    for entry in &report.stale {
        let _ = writeln!(
            text,
            "<li><code>{}</code></li>",
            escaped(&line(&entry.to_string()))
        );
    }
    text + "</ul>\n</section>\n"
}

fn untold(report: &Report, grade: Grade) -> String {
    let reasons = report.untold(grade);
    if reasons.is_empty() {
        return String::new();
    }
    let rules: usize = reasons.iter().map(|reason| reason.rules.len()).sum();
    let mut text = format!(
        "<section>\n<details class=\"untold\">\n<summary>{} {rules} {}</summary>\n<ul>\n",
        sign(grade),
        grade.as_str()
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

fn left_out(report: &Report) -> String {
    if report.left_out.is_empty() {
        return String::new();
    }
    let mut text = String::from("<section>\n<h2>Left out</h2>\n<ul>\n");
    for what in &report.left_out {
        let _ = writeln!(text, "<li>{}</li>", quoted(what));
    }
    text + "</ul>\n</section>\n"
}

fn sign(grade: Grade) -> String {
    format!(
        "<span class=\"sign {}\" aria-label=\"{}\">{}</span>",
        class(grade),
        grade.as_str(),
        grade.sign()
    )
}

fn class(grade: Grade) -> &'static str {
    match grade {
        Grade::Pass => "pass",
        Grade::Fail => "fail",
        Grade::Warn => "warn",
        Grade::Advice => "advice",
        Grade::NotApplicable => "absent",
        Grade::NotTested => "untested",
    }
}

/// A sentence of ours that may quote a server; what stands between backticks is shown as code.
fn quoted(text: &str) -> String {
    let text = escaped(&line(text));
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
    let text = visible(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_report_is_a_page() {
        let text = document(&sample::report(), &View::default());

        insta::assert_snapshot!(sample::without_version(&text.replace(STYLE, "")));
    }

    #[test]
    fn nothing_is_run_and_nothing_is_fetched() {
        let text = document(&sample::report(), &View::default());

        assert!(!text.contains("<script") && !text.contains("src=") && !text.contains("url("));
        assert!(!text.contains("@import") && !text.contains("<link"));
    }

    #[test]
    fn no_text_of_a_server_is_read_as_html() {
        assert_eq!(
            quoted("a `<b>` \u{202e}"),
            "a <code>&lt;b&gt;</code> \\u{202e}"
        );
        assert_eq!(quoted("an odd ` & '"), "an odd ` &amp; &#39;");
    }
}
