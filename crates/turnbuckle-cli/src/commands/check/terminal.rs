//! A report for people at a terminal: what stands where, then what is broken.

use anstyle::Style;
use turnbuckle_check::Report;
use turnbuckle_check::report::{Counts, Finding, Grade, Shown, View, page, telling};
use turnbuckle_check::rule::Level;

use crate::output::{plain, style, wrap};

/// The longest message that is shown whole.
const LONGEST: usize = 700;
/// So much room a label has.
const LABEL: usize = 10;

/// Returns the whole report, with colours.
pub(super) fn shown(report: &Report, view: &View, width: usize) -> String {
    let mut text = matrix(report);
    text += &not_spoken(report, width);
    for finding in view.findings(report) {
        text += &match finding.level {
            Level::Advice => briefly(&finding, width),
            Level::Warn | Level::Fail => in_full(&finding, report, width),
        };
    }
    for grade in [Grade::NotTested, Grade::NotApplicable] {
        text += &untold(report, grade, width);
    }
    text += &left_out(report, width);
    text += &summary(report);
    text
}

/// A line for each area, a column for each revision.
fn matrix(report: &Report) -> String {
    let rows = report.matrix();
    let cells = rows.iter().flat_map(|row| &row.cells);
    let column = cells.map(|counts| wrap::width(&cell(counts))).max();
    let column = column.unwrap_or(0).max("2026-07-28".len());
    let label = rows.iter().map(|row| row.area.as_str().len()).max();
    let label = label.unwrap_or(0);
    let mut text = " ".repeat(label);
    for run in &report.runs {
        let head = match run.not_spoken {
            Some(_) => style::DIM,
            None => style::NAME,
        };
        let gap = column - run.revision.as_str().len();
        text += &format!("  {}{:gap$}", style::paint(head, run.revision.as_str()), "");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for row in &rows {
        text += &format!("{:<label$}", row.area.as_str());
        for counts in &row.cells {
            let cell = cell(counts);
            let gap = column - wrap::width(&cell);
            text += &format!("  {cell}{:gap$}", "");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn cell(counts: &Counts) -> String {
    let part = |(grade, count): (Grade, usize)| {
        style::paint(colour(grade), &format!("{}{count}", grade.sign()))
    };
    let parts: Vec<_> = counts.told().into_iter().map(part).collect();
    parts.join(" ")
}

pub(super) fn colour(grade: Grade) -> Style {
    match grade {
        Grade::Pass => style::TYPE,
        Grade::Fail => style::ERROR,
        Grade::Warn => style::WARNING,
        Grade::Advice => style::HINT,
        Grade::NotApplicable | Grade::NotTested => style::DIM,
    }
}

fn not_spoken(report: &Report, width: usize) -> String {
    let mut text = String::new();
    for run in &report.runs {
        if let Some(why) = &run.not_spoken {
            let why = format!("{} is not spoken: {}", run.revision, plain::line(why));
            text += &wrap::indented(&why, 0, width);
        }
    }
    match text.is_empty() {
        true => text,
        false => format!("\n{text}"),
    }
}

fn in_full(finding: &Finding<'_>, report: &Report, width: usize) -> String {
    let mut text = head(finding, width);
    text += &row("seen", finding.what, width);
    text += &row("in", &places(finding, report), width);
    for requirement in finding.rows() {
        let says = format!("{} ({})", requirement.summary, requirement.id);
        text += &row(requirement.level, &says, width);
        if let Some(page) = page(requirement.source) {
            text += &format!("{:1$}{page}\n", "", LABEL + 2);
        }
    }
    for (at, shown) in finding.exchange.iter().enumerate() {
        text += &exchange(shown, at == 0, width);
    }
    text += &row("cure", finding.rule.cure, width);
    text
}

fn briefly(finding: &Finding<'_>, width: usize) -> String {
    let mut text = head(finding, width);
    text += &row("seen", finding.what, width);
    text += &row("cure", finding.rule.cure, width);
    text
}

fn head(finding: &Finding<'_>, width: usize) -> String {
    let grade = finding.grade();
    let known = if finding.known { " (known)" } else { "" };
    let sign = style::paint(colour(grade), grade.sign());
    let id = style::paint(style::NAME, finding.rule.id);
    let says = wrap::indented(finding.rule.says, 2, width);
    format!("\n{sign} {id}{known}\n{says}")
}

fn row(label: &str, value: &str, width: usize) -> String {
    let lines = wrap::indented(&plain::line(value), LABEL + 2, width);
    let label = style::paint(style::DIM, &format!("  {label:<LABEL$}"));
    format!("{label}{}", lines.get(LABEL + 2..).unwrap_or("\n"))
}

fn places(finding: &Finding<'_>, report: &Report) -> String {
    let spoken = report.runs.iter().filter(|run| run.not_spoken.is_none());
    let all = spoken.count();
    let places = &finding.places;
    if all > 1 && places.len() == all {
        return "every revision that is spoken".to_owned();
    }
    let revisions: Vec<_> = places.iter().map(|place| place.revision.as_str()).collect();
    revisions.join(", ")
}

/// Shows a message, with what stands before it on HTTP.
fn exchange(shown: &Shown, first: bool, width: usize) -> String {
    let mut lines: Vec<_> = shown.line.iter().cloned().collect();
    lines.extend(telling(shown).map(|(name, value)| format!("{name}: {value}")));
    if !shown.text.is_empty() {
        lines.push(shown.excerpt(LONGEST));
    }
    let room = width.saturating_sub(LABEL + 4).max(20);
    let lines = lines
        .iter()
        .flat_map(|line| wrap::lines(&plain::line(line), room));
    let mut text = String::new();
    for (at, line) in lines.enumerate() {
        let label = if first && at == 0 { "exchange" } else { "" };
        let sign = match (at, shown.theirs) {
            (0, true) => "<",
            (0, false) => ">",
            _ => " ",
        };
        let label = style::paint(style::DIM, &format!("  {label:<LABEL$}{sign}"));
        text += &format!("{label} {line}\n");
    }
    text
}

/// Says what could not be told, and why.
fn untold(report: &Report, grade: Grade, width: usize) -> String {
    let reasons = report.untold(grade);
    if reasons.is_empty() {
        return String::new();
    }
    let sign = style::paint(colour(grade), grade.sign());
    let name = style::paint(style::NAME, grade.as_str());
    let mut text = format!("\n{sign} {name}\n");
    for reason in reasons {
        let line = format!("{}: {}", plain::line(reason.why), reason.rules.join(", "));
        text += &wrap::indented(&line, 2, width);
    }
    text
}

fn left_out(report: &Report, width: usize) -> String {
    if report.left_out.is_empty() {
        return String::new();
    }
    let mut text = format!("\n  {}\n", style::paint(style::NAME, "left out"));
    for what in &report.left_out {
        text += &wrap::indented(&plain::line(what), 2, width);
    }
    text
}

fn summary(report: &Report) -> String {
    let count = |grade: Grade| {
        let text = format!(
            "{} {} {}",
            grade.sign(),
            report.count(grade),
            grade.as_str()
        );
        style::paint(colour(grade), &text)
    };
    let seen = Grade::ALL
        .into_iter()
        .filter(|&grade| report.count(grade) > 0);
    let counts: Vec<_> = seen.map(count).collect();
    let target = plain::line(&report.target);
    let seconds = report.took.as_secs_f64();
    format!("\n{target}: {} in {seconds:.1} s\n", counts.join(", "))
}
