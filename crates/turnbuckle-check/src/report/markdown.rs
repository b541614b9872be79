//! Markdown report, for pull request comments and project pages.

use std::fmt::Write as _;

use turnbuckle_text::sanitize::escape_line;

use super::{
    EvidenceExcerpt, Report, ReportOptions, RuleFinding, RuleStatus, pretty, relevant_headers,
};
use crate::rule::RequirementLevel;

/// The maximum length of a quoted message.
const MAX_TEXT_CHARS: usize = 4000;

/// Returns the report as Markdown.
pub fn document(report: &Report, options: &ReportOptions) -> String {
    let mut text = format!("# Check of {}\n\n", code(&report.target));
    text += &sentence(report, options);
    text += &matrix(report);
    for finding in options.findings(report) {
        text += &section(&finding);
    }
    text += &stale(report);
    for status in [RuleStatus::NotTested, RuleStatus::NotApplicable] {
        text += &reasons_for(report, status);
    }
    if !report.skipped.is_empty() {
        text += "\n## Skipped\n\n";
        for observed in &report.skipped {
            let _ = writeln!(text, "- {}", inline(observed));
        }
    }
    text
}

fn sentence(report: &Report, options: &ReportOptions) -> String {
    let heading = match options.failures(report) {
        0 if report.stale_baseline.is_empty() => "No failures".to_owned(),
        0 => "The baseline is out of date".to_owned(),
        1 => "**One rule is violated**".to_owned(),
        many => format!("**{many} rules are violated**"),
    };
    let counts: Vec<_> = RuleStatus::ALL
        .into_iter()
        .filter(|&status| report.count(status) > 0)
        .map(|status| format!("{} {}", report.count(status), status.as_str()))
        .collect();
    format!("{heading}. Results: {}.\n\n", counts.join(", "))
}

fn matrix(report: &Report) -> String {
    let heads: Vec<_> = report
        .runs
        .iter()
        .map(|run| match run.unsupported {
            Some(_) => format!("~~{}~~", run.revision),
            None => run.revision.to_string(),
        })
        .collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        heads.join(" | "),
        "---|".repeat(heads.len())
    );
    for row in report.matrix() {
        let cell = |(status, count): (RuleStatus, usize)| format!("{}{count}", status.sign());
        let cells: Vec<_> = row
            .cells
            .iter()
            .map(|counts| {
                counts
                    .summary()
                    .into_iter()
                    .map(cell)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        let _ = writeln!(text, "| {} | {} |", row.area.as_str(), cells.join(" | "));
    }
    let legend = RuleStatus::ALL.map(|status| format!("{} {}", status.sign(), status.as_str()));
    let _ = writeln!(text, "\n{}", legend.join(" · "));
    for run in &report.runs {
        if let Some(why) = &run.unsupported {
            let _ = writeln!(text, "\n{} is not supported: {}", run.revision, inline(why));
        }
    }
    text
}

fn section(finding: &RuleFinding<'_>) -> String {
    let known = if finding.in_baseline { " (known)" } else { "" };
    let revisions: Vec<_> = finding
        .locations
        .iter()
        .map(|place| place.revision.as_str())
        .collect();
    let mut text = format!(
        "\n## {} `{}`{known}\n\n{}\n\n- **Observed:** {}\n- **In:** {}\n",
        finding.status().sign(),
        finding.rule.id,
        finding.rule.requirement,
        inline(finding.observed),
        revisions.join(", "),
    );
    if let Some(row) = finding.requirement() {
        let id = format!("`{}`", row.id);
        let id = match finding.link() {
            Some(spec_link) => format!("[{id}]({spec_link})"),
            None => id,
        };
        let _ = writeln!(text, "- **{}:** {} ({id})", row.level, row.summary);
    }
    let _ = writeln!(text, "- **Hint:** {}", finding.rule.hint);
    if finding.level > RequirementLevel::Advice && !finding.evidence.is_empty() {
        text += "\n<details><summary>Messages</summary>\n\n";
        text.extend(finding.evidence.iter().map(evidence));
        text += "</details>\n";
    }
    text
}

fn evidence(excerpt: &EvidenceExcerpt) -> String {
    let mut inside = String::new();
    if let Some(head) = &excerpt.start_line {
        let _ = writeln!(inside, "{}", escape_line(head));
        for (name, value) in relevant_headers(excerpt) {
            let _ = writeln!(inside, "{}", escape_line(&format!("{name}: {value}")));
        }
        inside.push('\n');
    }
    inside += &pretty(excerpt, MAX_TEXT_CHARS);
    let fence = fence(&inside);
    let who = if excerpt.from_peer {
        "Received"
    } else {
        "Sent"
    };
    format!("{who}:\n\n{fence}http\n{}\n{fence}\n\n", inside.trim_end())
}

fn stale(report: &Report) -> String {
    let mut text = String::new();
    if !report.stale_baseline.is_empty() {
        text += "\n## No longer violated\n\nRemove these from the baseline:\n\n";
    }
    for entry in &report.stale_baseline {
        let _ = writeln!(text, "- {}", code(&entry.to_string()));
    }
    text
}

fn reasons_for(report: &Report, status: RuleStatus) -> String {
    let reasons = report.reasons_for(status);
    if reasons.is_empty() {
        return String::new();
    }
    let mut title = status.as_str().to_owned();
    title[..1].make_ascii_uppercase();
    let mut text = format!("\n## {title}\n\n");
    for reason in reasons {
        let rules: Vec<_> = reason
            .rules
            .iter()
            .map(|rule| format!("`{rule}`"))
            .collect();
        let _ = writeln!(text, "- {}: {}", inline(reason.why), rules.join(", "));
    }
    text
}

/// Formats text that may quote the server, on one line. Everything but backtick-quoted code is escaped.
fn inline(text: &str) -> String {
    let text = escape_line(text);
    let parts: Vec<_> = text.split('`').collect();
    // Unpaired and adjacent backticks are not code.
    let inner = parts.get(1..parts.len() - 1).unwrap_or_default();
    if parts.len() % 2 == 0 || inner.contains(&"") {
        return literal(&text);
    }
    let part = |(at, part): (usize, &&str)| match at % 2 {
        0 => literal(part),
        _ => code(part),
    };
    parts.iter().enumerate().map(part).collect()
}

fn literal(text: &str) -> String {
    let mut excerpt = String::new();
    for (at, letter) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + letter.len_utf8()..]);
        match letter {
            // Text that looks like an address would become a link.
            ':' if after.starts_with("//") => excerpt += "\\:",
            '.' if before.ends_with("www") || before.ends_with("WWW") => excerpt += "\\.",
            '<' => excerpt += "&lt;",
            '>' => excerpt += "&gt;",
            '&' => excerpt += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '@' => {
                excerpt.push('\\');
                excerpt.push(letter);
            }
            _ => excerpt.push(letter),
        }
    }
    excerpt
}

/// Formats text as code, whatever backticks it contains.
fn code(text: &str) -> String {
    let text = escape_line(text);
    let fence = "`".repeat(longest(&text, '`') + 1);
    if text.starts_with('`') || text.ends_with('`') {
        format!("{fence} {text} {fence}")
    } else {
        format!("{fence}{text}{fence}")
    }
}

/// Returns a fence that is longer than any in the text.
fn fence(text: &str) -> String {
    "`".repeat(usize::max(3, longest(text, '`') + 1))
}

fn longest(text: &str, mark: char) -> usize {
    let runs = text.split(|letter| letter != mark).map(str::len);
    runs.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn report_matches_the_snapshot() {
        insta::assert_snapshot!(document(&sample::report(), &ReportOptions::default()));
    }

    #[test]
    fn findings_below_the_minimum_level_are_hidden() {
        let options = ReportOptions {
            fail_on: RequirementLevel::Fail,
            min_level: RequirementLevel::Fail,
        };

        let text = document(&sample::report(), &options);

        assert!(text.contains("base.unknown-method") && !text.contains("models.described"));
    }

    #[test]
    fn server_text_is_escaped_in_markdown() {
        assert_eq!(inline("a|b <i> `"), "a\\|b &lt;i&gt; \\`");
        assert_eq!(inline("see `<x>`, `y`"), "see `<x>`, `y`");
        assert_eq!(
            inline("[a](http://b.example) www.c.example d@e.example"),
            "\\[a\\](http\\://b.example) www\\.c.example d\\@e.example"
        );
        assert_eq!(inline("``` `a`"), "\\`\\`\\` \\`a\\`");
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(fence("```"), "````");
    }
}
