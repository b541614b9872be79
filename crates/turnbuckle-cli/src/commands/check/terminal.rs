//! A report for people at a terminal: where what stands, then what is broken.

use std::collections::BTreeMap;

use anstyle::Style;
use turnbuckle_check::Report;
use turnbuckle_check::report::{Finding, Grade, Run, Shown, Verdict, page};
use turnbuckle_check::rule::{Area, Level};

use crate::output::{plain, style, wrap};

/// The longest message that is shown whole.
const LONGEST: usize = 700;
/// So much room a label has.
const LABEL: usize = 10;
/// Headers that never tell anything.
const NOISE: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "vary",
    "x-powered-by",
];

/// How a report is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    /// What matters less is not shown.
    pub(super) shows: Level,
    /// How many columns there are.
    pub(super) width: usize,
}

/// Returns the whole report, with colours.
pub(super) fn shown(report: &Report, view: &View) -> String {
    let mut text = matrix(report);
    text += &unspoken(report);
    for finding in report.findings() {
        match finding.level {
            level if level < view.shows => {}
            Level::Advice => text += &briefly(&finding, view.width),
            Level::Warn | Level::Fail => text += &in_full(&finding, report, view.width),
        }
    }
    text += &untold(report, view.width);
    text += &summary(report);
    text
}

/// A line for each area, a column for each revision.
fn matrix(report: &Report) -> String {
    let cells: Vec<Vec<Vec<(Grade, usize)>>> = Area::ALL
        .iter()
        .map(|&area| report.runs.iter().map(|run| counted(run, area)).collect())
        .collect();
    let wide = |cell: &Vec<(Grade, usize)>| wrap::width(&cell_text(cell));
    let column = cells.iter().flatten().map(wide).max().unwrap_or(0).max(10);
    let label = Area::ALL.iter().map(|area| area.as_str().len()).max();
    let label = label.unwrap_or(0);
    let mut text = " ".repeat(label);
    for run in &report.runs {
        let head = format!("{:<column$}", run.revision.as_str());
        text += &format!("  {}", style::paint(style::NAME, &head));
    }
    text.push('\n');
    for (area, row) in Area::ALL.iter().zip(&cells) {
        if row.iter().all(Vec::is_empty) {
            continue;
        }
        text += &format!("{:<label$}", area.as_str());
        for cell in row {
            let gap = column - wide(cell);
            text += &format!("  {}{:gap$}", cell_text(cell), "");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn counted(run: &Run, area: Area) -> Vec<(Grade, usize)> {
    let mut counts = BTreeMap::new();
    for ruling in run.rulings.iter().filter(|ruling| ruling.rule.area == area) {
        *counts.entry(ruling.grade()).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}

/// What is broken and what is kept; the rest only if there is nothing else to say.
fn cell_text(counts: &[(Grade, usize)]) -> String {
    let told = |grade: Grade| !matches!(grade, Grade::NotApplicable | Grade::NotTested);
    let any = counts.iter().any(|(grade, _)| told(*grade));
    let mut parts: Vec<_> = counts
        .iter()
        .filter(|(grade, _)| told(*grade) || !any || *grade == Grade::NotTested)
        .collect();
    // What is wrong is seen first.
    parts.sort_by_key(|(grade, _)| *grade == Grade::Pass);
    let part = |(grade, count): &&(Grade, usize)| {
        style::paint(colour(*grade), &format!("{}{count}", sign(*grade)))
    };
    parts.iter().map(part).collect::<Vec<_>>().join(" ")
}

fn sign(grade: Grade) -> &'static str {
    match grade {
        Grade::Pass => "✓",
        Grade::Fail => "✗",
        Grade::Warn => "!",
        Grade::Advice => "i",
        Grade::NotApplicable => "–",
        Grade::NotTested => "?",
    }
}

fn colour(grade: Grade) -> Style {
    match grade {
        Grade::Pass => style::TYPE,
        Grade::Fail => style::ERROR,
        Grade::Warn => style::WARNING,
        Grade::Advice => style::HINT,
        Grade::NotApplicable | Grade::NotTested => style::DIM,
    }
}

fn unspoken(report: &Report) -> String {
    let mut text = String::new();
    for run in &report.runs {
        if let Some(why) = &run.not_spoken {
            text += &format!("\n{} is not spoken: {}", run.revision, plain::line(why));
        }
    }
    match text.is_empty() {
        true => text,
        false => text + "\n",
    }
}

fn in_full(finding: &Finding<'_>, report: &Report, width: usize) -> String {
    let mut text = head(finding, width);
    text += &row("in", &places(finding, report), width);
    text += &row("seen", finding.what, width);
    for requirement in finding.rows() {
        text += &row(
            "rule",
            &format!("{} {}", requirement.level, requirement.summary),
            width,
        );
        text += &row("", requirement.id, width);
        if let Some(page) = page(requirement.source) {
            text += &format!("{:LABEL$}  {}\n", "", style::paint(style::DIM, &page));
        }
    }
    for (at, shown) in finding.exchange.iter().enumerate() {
        text += &exchange(shown, at == 0, width);
    }
    text += &row("cure", finding.rule.cure, width);
    text
}

fn head(finding: &Finding<'_>, width: usize) -> String {
    let grade = finding.grade();
    let known = if finding.known { " (known)" } else { "" };
    let sign = style::paint(colour(grade), sign(grade));
    let id = style::paint(style::NAME, finding.rule.id);
    format!(
        "\n{sign} {id}{known}\n{}",
        wrap::indented(finding.rule.says, 2, width)
    )
}

fn briefly(finding: &Finding<'_>, width: usize) -> String {
    let mut text = head(finding, width);
    text += &row("seen", finding.what, width);
    text += &row("cure", finding.rule.cure, width);
    text
}

fn row(label: &str, value: &str, width: usize) -> String {
    let lines = wrap::indented(&plain::line(value), LABEL + 2, width);
    let label = style::paint(style::DIM, &format!("  {label:<LABEL$}"));
    format!("{label}{}", lines.get(LABEL + 2..).unwrap_or("\n"))
}

fn places(finding: &Finding<'_>, report: &Report) -> String {
    let spoken = report.runs.iter().filter(|run| run.not_spoken.is_none());
    if spoken.count() == finding.places.len() && finding.places.len() > 1 {
        return "every revision that is spoken".to_owned();
    }
    let revisions = finding.places.iter().map(|place| place.revision.as_str());
    revisions.collect::<Vec<_>>().join(", ")
}

/// Shows a message with what stands before it on HTTP.
fn exchange(shown: &Shown, first: bool, width: usize) -> String {
    let sign = if shown.theirs { "<" } else { ">" };
    let mut lines = Vec::new();
    lines.extend(shown.line.as_deref().map(plain::line));
    let headers = shown.headers.iter();
    let telling = headers.filter(|(name, _)| !NOISE.contains(&name.as_str()));
    lines.extend(telling.map(|(name, value)| plain::line(&format!("{name}: {value}"))));
    if !shown.text.is_empty() {
        lines.push(plain::line(&shortened(&shown.text)));
    }
    let label = if first { "exchange" } else { "" };
    let mut text = String::new();
    let room = width.saturating_sub(LABEL + 4).max(20);
    for (at, line) in lines
        .iter()
        .flat_map(|line| wrap::lines(line, room))
        .enumerate()
    {
        let (label, sign) = if at == 0 { (label, sign) } else { ("", " ") };
        let label = style::paint(style::DIM, &format!("  {label:<LABEL$}{sign}"));
        text += &format!("{label} {line}\n");
    }
    text
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} … and {} bytes more", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

/// Says what could not be told, and why, the same reasons together.
fn untold(report: &Report, width: usize) -> String {
    let mut not_tested: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut not_applicable: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, ruling) in report.rulings() {
        let (reasons, why) = match &ruling.verdict {
            Verdict::NotTested(why) => (&mut not_tested, why),
            Verdict::NotApplicable(why) => (&mut not_applicable, why),
            _ => continue,
        };
        let rules = reasons.entry(why.as_str()).or_default();
        if !rules.contains(&ruling.rule.id) {
            rules.push(ruling.rule.id);
        }
    }
    let mut text = String::new();
    for (title, reasons) in [
        ("not tested", not_tested),
        ("not applicable", not_applicable),
    ] {
        if reasons.is_empty() {
            continue;
        }
        text += &format!("\n{}\n", style::paint(style::NAME, title));
        for (why, rules) in reasons {
            let line = format!("{} ({})", plain::line(why), rules.join(", "));
            text += &wrap::indented(&line, 2, width);
        }
    }
    if !report.left_out.is_empty() {
        text += &format!("\n{}\n", style::paint(style::NAME, "left out"));
        for what in &report.left_out {
            text += &wrap::indented(&plain::line(what), 2, width);
        }
    }
    text
}

fn summary(report: &Report) -> String {
    let count = |grade: Grade| {
        report
            .rulings()
            .filter(|(_, ruling)| ruling.grade() == grade)
            .count()
    };
    format!(
        "\n{} kept, {} failures, {} warnings, {} pieces of advice, {} not tested, {} not applicable; {} in {:.1} s\n",
        count(Grade::Pass),
        count(Grade::Fail),
        count(Grade::Warn),
        count(Grade::Advice),
        count(Grade::NotTested),
        count(Grade::NotApplicable),
        plain::line(&report.target),
        report.took.as_secs_f64(),
    )
}
