//! `turnbuckle check --checklist`: the compliance checklist, line by line.

use serde_json::{Value, json};
use turnbuckle_check::checklist::{self, Line};
use turnbuckle_check::report::Grade;
use turnbuckle_check::rule::{Role, Rule};
use turnbuckle_check::{Report, compliance};

use super::{Check, Format, terminal};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::{self, style, wrap};

/// How many columns the number of a line takes.
const NUMBER: usize = 10;

impl Check {
    /// Prints all lines with their rules; with a report, with what it says about each.
    pub(super) fn print_checklist(&self, report: Option<&Report>, context: &Context) -> Result {
        let lines = checklist::lines();
        let role = report.map(|report| report.role);
        let role = role.or(self.client.then_some(Role::Client));
        let text = match self.format(context) {
            Format::Terminal => listing(&lines, role, report, context.width()),
            Format::Json => output::json::document(&document(&lines, role, report)),
            Format::Markdown => compliance::lines(&lines, report.map_or(&[], std::slice::from_ref)),
            _ => {
                let message = "the checklist is printed as terminal, json or markdown";
                return Err(Failure::not_asked(message));
            }
        };
        match &self.output {
            Some(file) => context.save(file, style::without(&text).as_bytes()),
            None => context.print(&text),
        }
    }
}

/// Returns the rules of a line that matter: those for the role that is checked, or all.
fn rules(line: &Line, role: Option<Role>) -> Vec<&'static Rule> {
    match role {
        Some(role) => line.rules_for(role).collect(),
        None => line.rules.clone(),
    }
}

fn listing(lines: &[Line], role: Option<Role>, report: Option<&Report>, width: usize) -> String {
    let mut text = String::new();
    for line in lines {
        text += &entry(line, role, report, width);
    }
    text + &summary(lines, role, report)
}

fn entry(line: &Line, role: Option<Role>, report: Option<&Report>, width: usize) -> String {
    let sign = match report.map(|report| line.grade(report)) {
        None => String::new(),
        Some(None) => "· ".to_owned(),
        Some(Some(grade)) => {
            let sign = style::paint(terminal::colour(grade), grade.sign());
            format!("{sign} ")
        }
    };
    let indent = NUMBER + if report.is_some() { 2 } else { 0 };
    let asks = wrap::indented(&line.text(), indent, width);
    let number = style::paint(style::NAME, line.id);
    let gap = NUMBER.saturating_sub(line.id.len());
    let mut text = format!("{sign}{number}{:gap$}{}", "", asks.trim_start());
    let ids: Vec<_> = rules(line, role).iter().map(|rule| rule.id).collect();
    let other = ids.is_empty() && !line.rules.is_empty();
    let note = match (other, line.reason) {
        (true, None) => Some("no rule for the side that is checked"),
        (_, reason) => reason,
    };
    let rules = (!ids.is_empty()).then(|| ids.join(", "));
    for part in rules.into_iter().chain(note.map(str::to_owned)) {
        let part = wrap::indented(&part, indent, width);
        text += &format!("{}\n", style::paint(style::DIM, part.trim_end()));
    }
    text
}

fn summary(lines: &[Line], role: Option<Role>, report: Option<&Report>) -> String {
    let Some(report) = report else {
        let judged = lines.iter().filter(|line| !rules(line, role).is_empty());
        let judged = judged.count();
        return format!(
            "\n{} lines: {judged} have rules, {} have none\n",
            lines.len(),
            lines.len() - judged
        );
    };
    let count = |wanted: Option<Grade>| {
        let same = |line: &&Line| line.grade(report) == wanted;
        lines.iter().filter(same).count()
    };
    let mut parts: Vec<_> = Grade::ALL
        .into_iter()
        .map(|grade| (grade, count(Some(grade))))
        .filter(|(_, count)| *count > 0)
        .map(|(grade, count)| format!("{} {count} {}", grade.sign(), grade.as_str()))
        .collect();
    parts.push(format!("· {} not looked at", count(None)));
    format!(
        "\n{}: {} lines: {}\n",
        report.target,
        lines.len(),
        parts.join(", ")
    )
}

fn document(lines: &[Line], role: Option<Role>, report: Option<&Report>) -> Value {
    let line = |line: &Line| {
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
            value["verdict"] = json!(line.grade(report));
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
