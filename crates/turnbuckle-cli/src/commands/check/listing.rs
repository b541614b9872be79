//! `turnbuckle check --list` and `--checklist`: the rules, and the compliance checklist.

use serde_json::{Value, json};
use turnbuckle_check::{
    CheckOptions, Report, catalog,
    checklist::{self, ChecklistLine, rules_markdown},
    report::{self, RuleStatus},
    rule::{Area, RequirementLevel, Role, Rule},
};

use super::{
    CheckCommand,
    report::{ReportFormat, status_style},
};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    output::{self, style, wrap},
};

impl CheckCommand {
    /// Prints the selected rules.
    pub(super) fn list(&self, context: &CommandContext) -> Result {
        let options = self.rule_selection();
        let applies = |rule: &&Rule| options.revisions.iter().any(|&date| rule.applies_in(date));
        let rules: Vec<_> = catalog::all()
            .filter(|rule| options.selects(rule))
            .filter(|rule| !self.client || rule.role == Role::Client)
            .filter(applies)
            .collect();
        let text = match self.format(context) {
            ReportFormat::Terminal => rules_text(&rules, &options, context.width()),
            ReportFormat::Json => {
                crate::output::json::document(&report::json::catalog(rules.into_iter()))
            }
            ReportFormat::Markdown => rules_markdown(&rules, &[]),
            _ => {
                let message = "--list supports the formats terminal, json and markdown";
                return Err(CliError::could_not_run(message));
            }
        };
        match &self.output {
            Some(file) => context.write_file(file, style::strip(&text).as_bytes()),
            None => context.print(&text),
        }
    }
}

fn rules_text(rules: &[&Rule], options: &CheckOptions, width: usize) -> String {
    let mut text = String::new();
    for &area in Area::ALL {
        let rules: Vec<_> = rules.iter().filter(|rule| rule.area == area).collect();
        if rules.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}{}\n", style::styled(style::HEAD, area.as_str()));
        for rule in rules {
            text += &rule_entry(rule, options, width);
        }
    }
    text
}

fn rule_entry(rule: &Rule, options: &CheckOptions, width: usize) -> String {
    let id = style::styled(style::NAME, rule.id);
    let requirement = wrap::indented(rule.requirement, 4, width);
    let levels = wrap::indented(&levels(rule, options), 4, width);
    let mut text = format!(
        "  {id}\n{requirement}{}",
        style::styled(style::DIM, levels.trim_end())
    );
    text.push('\n');
    if !rule.requirement_ids.is_empty() {
        let requirement_ids = wrap::indented(&rule.requirement_ids.join(", "), 4, width);
        text += &format!(
            "{}\n",
            style::styled(style::DIM, requirement_ids.trim_end())
        );
    }
    text
}

/// Returns the level of a rule and its revisions: `MUST 2025-06-18 to 2026-07-28`.
fn levels(rule: &Rule, options: &CheckOptions) -> String {
    let dates = options.revisions.iter();
    let level = |&date| rule.applies_in(date).then(|| rule.level_in(date));
    let levels: Vec<(String, Option<RequirementLevel>)> =
        dates.map(|date| (date.to_string(), level(date))).collect();
    let mut spans: Vec<String> = Vec::new();
    for span in levels.chunk_by(|(_, one), (_, other)| one == other) {
        let ([(first, Some(level)), ..], [.., (last, _)]) = (span, span) else {
            continue;
        };
        let word = level.as_str();
        spans.push(match span.len() {
            all if all == levels.len() => word.to_owned(),
            1 => format!("{word} {first}"),
            _ => format!("{word} {first} to {last}"),
        });
    }
    spans.join(", ")
}

/// The columns of a line number.
const NUMBER_WIDTH: usize = 10;

impl CheckCommand {
    /// Prints the checklist with its rules; with a report, also the result of each line.
    pub(super) fn print_checklist(
        &self,
        report: Option<&Report>,
        context: &CommandContext,
    ) -> Result {
        let lines = checklist::lines();
        let role = report.map(|report| report.role);
        let role = role.or(self.client.then_some(Role::Client));
        let text = match self.format(context) {
            ReportFormat::Terminal => checklist_text(&lines, role, report, context.width()),
            ReportFormat::Json => output::json::document(&checklist_json(&lines, role, report)),
            ReportFormat::Markdown => {
                checklist::lines_markdown(&lines, report.map_or(&[], std::slice::from_ref))
            }
            _ => {
                let message = "--checklist supports the formats terminal, json and markdown";
                return Err(CliError::could_not_run(message));
            }
        };
        match &self.output {
            Some(file) => context.write_file(file, style::strip(&text).as_bytes()),
            None => context.print(&text),
        }
    }
}

/// Returns the rules of a line for a role, or all.
fn rules(line: &ChecklistLine, role: Option<Role>) -> Vec<&'static Rule> {
    match role {
        Some(role) => line.rules_for(role).collect(),
        None => line.rules.clone(),
    }
}

fn checklist_text(
    lines: &[ChecklistLine],
    role: Option<Role>,
    report: Option<&Report>,
    width: usize,
) -> String {
    let mut text = String::new();
    for line in lines {
        text += &line_entry(line, role, report, width);
    }
    text + &summary(lines, role, report)
}

fn line_entry(
    line: &ChecklistLine,
    role: Option<Role>,
    report: Option<&Report>,
    width: usize,
) -> String {
    let symbol = match report.map(|report| line.status(report)) {
        None => String::new(),
        Some(None) => "· ".to_owned(),
        Some(Some(status)) => {
            let symbol = style::styled(status_style(status), status.sign());
            format!("{symbol} ")
        }
    };
    let indent = NUMBER_WIDTH + if report.is_some() { 2 } else { 0 };
    let text_lines = wrap::indented(&line.text(), indent, width);
    let number = style::styled(style::NAME, line.id);
    let gap = NUMBER_WIDTH.saturating_sub(line.id.len());
    let mut text = format!("{symbol}{number}{:gap$}{}", "", text_lines.trim_start());
    let ids: Vec<_> = rules(line, role).iter().map(|rule| rule.id).collect();
    let other = ids.is_empty() && !line.rules.is_empty();
    let note = match (other, line.reason) {
        (true, None) => Some("no rule for the checked role"),
        (_, reason) => reason,
    };
    let rules = (!ids.is_empty()).then(|| ids.join(", "));
    for part in rules.into_iter().chain(note.map(str::to_owned)) {
        let part = wrap::indented(&part, indent, width);
        text += &format!("{}\n", style::styled(style::DIM, part.trim_end()));
    }
    text
}

fn summary(lines: &[ChecklistLine], role: Option<Role>, report: Option<&Report>) -> String {
    let Some(report) = report else {
        let checked = lines.iter().filter(|line| !rules(line, role).is_empty());
        let checked = checked.count();
        return format!(
            "\n{} lines: {checked} have rules, {} have none\n",
            lines.len(),
            lines.len() - checked
        );
    };
    let count = |status: Option<RuleStatus>| {
        let same = |line: &&ChecklistLine| line.status(report) == status;
        lines.iter().filter(same).count()
    };
    let mut parts: Vec<_> = RuleStatus::ALL
        .into_iter()
        .map(|status| (status, count(Some(status))))
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| format!("{} {count} {}", status.sign(), status.as_str()))
        .collect();
    parts.push(format!("· {} not checked", count(None)));
    format!(
        "\n{}: {} lines: {}\n",
        report.target,
        lines.len(),
        parts.join(", ")
    )
}

fn checklist_json(lines: &[ChecklistLine], role: Option<Role>, report: Option<&Report>) -> Value {
    let line = |line: &ChecklistLine| {
        let ids =
            |rules: Vec<&'static Rule>| -> Vec<&str> { rules.iter().map(|rule| rule.id).collect() };
        let requirements: Vec<_> = line.requirements.iter().map(|row| row.id).collect();
        let mut value = json!({
            "line": line.id,
            "text": line.text(),
            "requirements": requirements,
            "rules": ids(rules(line, role)),
        });
        if let Some(reason) = line.reason {
            value["reason"] = reason.into();
        }
        if let Some(report) = report {
            value["verdict"] = json!(line.status(report));
        }
        value
    };
    let mut document = json!({
        "format": "turnbuckle-checklist/1",
        "lines": lines.iter().map(line).collect::<Vec<_>>(),
    });
    if let Some(report) = report {
        document["target"] = report.target.as_str().into();
    }
    document
}
