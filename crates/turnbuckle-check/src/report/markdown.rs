//! A report as Markdown, for a comment below a change or a page of a project.

use std::fmt::Write as _;

use super::text::{line, pretty};
use super::{Finding, Grade, Report, Shown, View, page, telling};
use crate::rule::Level;

/// The longest message that is quoted whole.
const LONGEST: usize = 4000;

/// Returns a report as Markdown.
pub fn document(report: &Report, view: &View) -> String {
    let mut text = format!("# Check of {}\n\n", code(&report.target));
    text += &sentence(report, view);
    text += &matrix(report);
    for finding in view.findings(report) {
        text += &section(&finding);
    }
    text += &stale(report);
    for grade in [Grade::NotTested, Grade::NotApplicable] {
        text += &untold(report, grade);
    }
    if !report.left_out.is_empty() {
        text += "\n## Left out\n\n";
        for what in &report.left_out {
            let _ = writeln!(text, "- {}", inline(what));
        }
    }
    text
}

fn sentence(report: &Report, view: &View) -> String {
    let verdict = match view.broken(report) {
        0 if report.stale.is_empty() => "Nothing that counts is broken".to_owned(),
        0 => "The baseline is out of date".to_owned(),
        1 => "**One rule is broken**".to_owned(),
        many => format!("**{many} rules are broken**"),
    };
    let counts: Vec<_> = Grade::ALL
        .into_iter()
        .filter(|&grade| report.count(grade) > 0)
        .map(|grade| format!("{} {}", report.count(grade), grade.as_str()))
        .collect();
    format!("{verdict}. Rulings: {}.\n\n", counts.join(", "))
}

fn matrix(report: &Report) -> String {
    let heads: Vec<_> = report
        .runs
        .iter()
        .map(|run| match run.not_spoken {
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
        let cell = |(grade, count): (Grade, usize)| format!("{}{count}", grade.sign());
        let cells: Vec<_> = row
            .cells
            .iter()
            .map(|counts| {
                counts
                    .told()
                    .into_iter()
                    .map(cell)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        let _ = writeln!(text, "| {} | {} |", row.area.as_str(), cells.join(" | "));
    }
    let legend = Grade::ALL.map(|grade| format!("{} {}", grade.sign(), grade.as_str()));
    let _ = writeln!(text, "\n{}", legend.join(" · "));
    for run in &report.runs {
        if let Some(why) = &run.not_spoken {
            let _ = writeln!(text, "\n{} is not spoken: {}", run.revision, inline(why));
        }
    }
    text
}

fn section(finding: &Finding<'_>) -> String {
    let known = if finding.known { " (known)" } else { "" };
    let revisions: Vec<_> = finding
        .places
        .iter()
        .map(|place| place.revision.as_str())
        .collect();
    let mut text = format!(
        "\n## {} `{}`{known}\n\n{}\n\n- **Seen:** {}\n- **In:** {}\n",
        finding.grade().sign(),
        finding.rule.id,
        finding.rule.says,
        inline(finding.what),
        revisions.join(", "),
    );
    for row in finding.rows() {
        let id = format!("`{}`", row.id);
        let id = match page(row.source) {
            Some(page) => format!("[{id}]({page})"),
            None => id,
        };
        let _ = writeln!(text, "- **{}:** {} ({id})", row.level, row.summary);
    }
    let _ = writeln!(text, "- **Cure:** {}", finding.rule.cure);
    if finding.level > Level::Advice && !finding.exchange.is_empty() {
        text += "\n<details><summary>The exchange</summary>\n\n";
        text.extend(finding.exchange.iter().map(exchange));
        text += "</details>\n";
    }
    text
}

fn exchange(shown: &Shown) -> String {
    let mut inside = String::new();
    if let Some(head) = &shown.line {
        let _ = writeln!(inside, "{}", line(head));
        for (name, value) in telling(shown) {
            let _ = writeln!(inside, "{}", line(&format!("{name}: {value}")));
        }
        inside.push('\n');
    }
    inside += &pretty(shown, LONGEST);
    let fence = fence(&inside);
    let who = if shown.theirs { "They" } else { "We" };
    format!("{who}:\n\n{fence}http\n{}\n{fence}\n\n", inside.trim_end())
}

fn stale(report: &Report) -> String {
    let mut text = String::new();
    if !report.stale.is_empty() {
        text += "\n## Not broken any more\n\nTake these out of the baseline:\n\n";
    }
    for entry in &report.stale {
        let _ = writeln!(text, "- {}", code(&entry.to_string()));
    }
    text
}

fn untold(report: &Report, grade: Grade) -> String {
    let reasons = report.untold(grade);
    if reasons.is_empty() {
        return String::new();
    }
    let mut title = grade.as_str().to_owned();
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

/// Text that may quote a server, on one line; nothing in it is read as Markdown or HTML but what stands between backticks.
fn inline(text: &str) -> String {
    let text = line(text);
    let parts: Vec<_> = text.split('`').collect();
    // Marks without a twin, and marks side by side, mean something else.
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
    let mut shown = String::new();
    for (at, letter) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + letter.len_utf8()..]);
        match letter {
            // What looks like an address would become a link.
            ':' if after.starts_with("//") => shown += "\\:",
            '.' if before.ends_with("www") || before.ends_with("WWW") => shown += "\\.",
            '<' => shown += "&lt;",
            '>' => shown += "&gt;",
            '&' => shown += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '@' => {
                shown.push('\\');
                shown.push(letter);
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// Text in the type of code, whatever marks it has.
fn code(text: &str) -> String {
    let text = line(text);
    let fence = "`".repeat(longest(&text, '`') + 1);
    match text.starts_with('`') || text.ends_with('`') {
        true => format!("{fence} {text} {fence}"),
        false => format!("{fence}{text}{fence}"),
    }
}

/// A fence that the text cannot close.
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
    fn a_report_is_a_page() {
        insta::assert_snapshot!(document(&sample::report(), &View::default()));
    }

    #[test]
    fn what_matters_less_is_not_shown() {
        let view = View {
            counts: Level::Fail,
            shows: Level::Fail,
        };

        let text = document(&sample::report(), &view);

        assert!(text.contains("base.unknown-method") && !text.contains("models.described"));
    }

    #[test]
    fn no_text_of_a_server_leaves_its_place() {
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
