//! The report of a check: for people at a terminal, and the formats for files.

use std::path::PathBuf;

use anstyle::Style;
use clap::ValueEnum as _;
use turnbuckle_check::{
    Report,
    report::{
        EvidenceExcerpt, ReportOptions, RuleFinding, RuleStatus, StatusCounts, html, json, junit,
        markdown, relevant_headers, sarif,
    },
    rule::RequirementLevel,
};

use crate::{
    output,
    output::{sanitize, style, wrap},
};

/// Longer messages are shortened.
const MAX_MESSAGE_CHARS: usize = 700;
/// The columns of a label.
const LABEL_WIDTH: usize = 10;

/// Returns the whole report, with styles.
pub(super) fn render(report: &Report, view: &ReportOptions, width: usize) -> String {
    let mut text = matrix(report);
    text += &unsupported_revisions(report, width);
    for finding in view.findings(report) {
        text += &match finding.level {
            RequirementLevel::Advice => short_finding(&finding, width),
            RequirementLevel::Warn | RequirementLevel::Fail => {
                full_finding(&finding, report, width)
            }
        };
    }
    for status in [RuleStatus::NotTested, RuleStatus::NotApplicable] {
        text += &unresolved(report, status, width);
    }
    text += &skipped(report, width);
    text += &summary(report);
    text
}

/// Returns a table with a row for each area and a column for each revision.
fn matrix(report: &Report) -> String {
    let rows = report.matrix();
    let cells = rows.iter().flat_map(|row| &row.cells);
    let column = cells.map(|counts| wrap::width(&cell(counts))).max();
    let column = column.unwrap_or(0).max("2026-07-28".len());
    let label = rows.iter().map(|row| row.area.as_str().len()).max();
    let label = label.unwrap_or(0);
    let mut text = " ".repeat(label);
    for run in &report.runs {
        let head = match run.unsupported {
            Some(_) => style::DIM,
            None => style::NAME,
        };
        let gap = column - run.revision.as_str().len();
        text += &format!(
            "  {}{:gap$}",
            style::styled(head, run.revision.as_str()),
            ""
        );
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

fn cell(counts: &StatusCounts) -> String {
    let part = |(status, count): (RuleStatus, usize)| {
        style::styled(status_style(status), &format!("{}{count}", status.sign()))
    };
    let parts: Vec<_> = counts.summary().into_iter().map(part).collect();
    parts.join(" ")
}

pub(super) fn status_style(status: RuleStatus) -> Style {
    match status {
        RuleStatus::Pass => style::TYPE,
        RuleStatus::Fail => style::ERROR,
        RuleStatus::Warn => style::WARNING,
        RuleStatus::Advice => style::HINT,
        RuleStatus::NotApplicable | RuleStatus::NotTested => style::DIM,
    }
}

fn unsupported_revisions(report: &Report, width: usize) -> String {
    let mut text = String::new();
    for run in &report.runs {
        if let Some(why) = &run.unsupported {
            let why = format!("{} is not supported: {}", run.revision, sanitize::line(why));
            text += &wrap::indented(&why, 0, width);
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n{text}")
    }
}

fn full_finding(finding: &RuleFinding<'_>, report: &Report, width: usize) -> String {
    let mut text = head(finding, width);
    text += &row("found", finding.observed, width);
    text += &row("in", &revisions_text(finding, report), width);
    if let Some(requirement) = finding.requirement() {
        let requirement_text = format!("{} ({})", requirement.summary, requirement.id);
        text += &row(requirement.level, &requirement_text, width);
        if let Some(page) = finding.link() {
            text += &format!("{:1$}{page}\n", "", LABEL_WIDTH + 2);
        }
    }
    for (at, shown) in finding.evidence.iter().enumerate() {
        text += &exchange(shown, at == 0, width);
    }
    text += &row("hint", finding.rule.hint, width);
    text
}

fn short_finding(finding: &RuleFinding<'_>, width: usize) -> String {
    let mut text = head(finding, width);
    text += &row("found", finding.observed, width);
    text += &row("hint", finding.rule.hint, width);
    text
}

fn head(finding: &RuleFinding<'_>, width: usize) -> String {
    let status = finding.status();
    let known = if finding.in_baseline {
        " (in baseline)"
    } else {
        ""
    };
    let sign = style::styled(status_style(status), status.sign());
    let id = style::styled(style::NAME, finding.rule.id);
    let rule_text = wrap::indented(finding.rule.requirement, 2, width);
    format!("\n{sign} {id}{known}\n{rule_text}")
}

fn row(label: &str, value: &str, width: usize) -> String {
    let value: Vec<_> = value.lines().map(sanitize::line).collect();
    let lines = wrap::indented(&value.join("\n"), LABEL_WIDTH + 2, width);
    let label = style::styled(style::DIM, &format!("  {label:<LABEL_WIDTH$}"));
    format!("{label}{}", lines.get(LABEL_WIDTH + 2..).unwrap_or("\n"))
}

fn revisions_text(finding: &RuleFinding<'_>, report: &Report) -> String {
    let supported = report.runs.iter().filter(|run| run.unsupported.is_none());
    let all = supported.count();
    let locations = &finding.locations;
    if all > 1 && locations.len() == all {
        return "all supported revisions".to_owned();
    }
    let revisions: Vec<_> = locations
        .iter()
        .map(|location| location.revision.as_str())
        .collect();
    revisions.join(", ")
}

/// Returns a message with its HTTP headers.
fn exchange(shown: &EvidenceExcerpt, first: bool, width: usize) -> String {
    let mut lines: Vec<_> = shown.start_line.iter().cloned().collect();
    lines.extend(relevant_headers(shown).map(|(name, value)| format!("{name}: {value}")));
    if !shown.text.is_empty() {
        lines.push(shown.excerpt(MAX_MESSAGE_CHARS));
    }
    let room = width.saturating_sub(LABEL_WIDTH + 4).max(20);
    let lines = lines
        .iter()
        .flat_map(|line| wrap::lines(&sanitize::line(line), room));
    let mut text = String::new();
    for (at, line) in lines.enumerate() {
        let label = if first && at == 0 { "messages" } else { "" };
        let sign = match (at, shown.from_peer) {
            (0, true) => "<",
            (0, false) => ">",
            _ => " ",
        };
        let label = style::styled(style::DIM, &format!("  {label:<LABEL_WIDTH$}{sign}"));
        text += &format!("{label} {line}\n");
    }
    text
}

/// Returns the rules that were not tested or not applicable, with the reasons.
fn unresolved(report: &Report, status: RuleStatus, width: usize) -> String {
    let reasons = report.reasons_for(status);
    if reasons.is_empty() {
        return String::new();
    }
    let sign = style::styled(status_style(status), status.sign());
    let name = style::styled(style::NAME, status.as_str());
    let mut text = format!("\n{sign} {name}\n");
    for reason in reasons {
        let line = format!(
            "{}: {}",
            sanitize::line(reason.why),
            reason.rules.join(", ")
        );
        text += &wrap::indented(&line, 2, width);
    }
    text
}

fn skipped(report: &Report, width: usize) -> String {
    if report.skipped.is_empty() {
        return String::new();
    }
    let mut text = format!("\n  {}\n", style::styled(style::NAME, "skipped"));
    for step in &report.skipped {
        text += &wrap::indented(&sanitize::line(step), 2, width);
    }
    text
}

fn summary(report: &Report) -> String {
    let count = |status: RuleStatus| {
        let text = format!(
            "{} {} {}",
            status.sign(),
            report.count(status),
            status.as_str()
        );
        style::styled(status_style(status), &text)
    };
    let present = RuleStatus::ALL
        .into_iter()
        .filter(|&status| report.count(status) > 0);
    let counts: Vec<_> = present.map(count).collect();
    let target = sanitize::line(&report.target);
    let seconds = report.duration.as_secs_f64();
    format!("\n{target}: {} in {seconds:.1} s\n", counts.join(", "))
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReportFormat {
    /// Text for a terminal
    Terminal,
    /// JSON with a stable schema
    Json,
    /// JUnit XML for CI servers
    Junit,
    /// SARIF 2.1.0 for code scanning tools
    Sarif,
    /// Markdown for comments and wikis
    Markdown,
    /// A single HTML page
    Html,
}

/// A report that is written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportFile {
    pub(super) format: ReportFormat,
    pub(super) file: PathBuf,
}

impl ReportFormat {
    /// Returns a report in this format, without styles.
    pub(super) fn document(self, report: &Report, view: &ReportOptions, width: usize) -> String {
        match self {
            Self::Terminal => style::strip(&render(report, view, width)),
            Self::Json => output::json::document(&json::document(report)),
            Self::Junit => junit::document(report, view),
            Self::Sarif => output::json::document(&sarif::document(report, view)),
            Self::Markdown => markdown::document(report, view),
            Self::Html => html::document(report, view),
        }
    }
}

/// Parses `FORMAT=FILE`.
pub(super) fn parse_report_file(text: &str) -> Result<ReportFile, String> {
    let (format, file) = text.split_once('=').ok_or("expected FORMAT=FILE")?;
    let format = ReportFormat::from_str(format, true).map_err(|_| {
        let names = ReportFormat::value_variants().iter();
        let names = names.filter_map(clap::ValueEnum::to_possible_value);
        let names: Vec<_> = names.map(|one| one.get_name().to_owned()).collect();
        format!("expected one of {}", names.join(", "))
    })?;
    if file.is_empty() {
        Err("missing file name".to_owned())
    } else {
        Ok(ReportFile {
            format,
            file: file.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_file_is_a_format_and_a_path() {
        let html = parse_report_file("html=out/a=b.html").unwrap();

        assert_eq!(
            (html.format, html.file),
            (ReportFormat::Html, "out/a=b.html".into())
        );
        assert_eq!(
            parse_report_file("html").unwrap_err(),
            "expected FORMAT=FILE"
        );
        assert_eq!(
            parse_report_file("pdf=x").unwrap_err(),
            "expected one of terminal, json, junit, sarif, markdown, html"
        );
        assert_eq!(parse_report_file("json=").unwrap_err(), "missing file name");
    }
}
