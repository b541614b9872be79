//! The compliance checklist as Markdown: rules with results, checklist lines, and requirements without a rule.

use std::{collections::HashSet, fmt::Write as _};

use turnbuckle_protocol::revision::Revision;
use turnbuckle_spec_coverage::{Requirement, table};

use super::ChecklistLine;
use crate::{
    report::{Report, RuleStatus, spec_link},
    rule::{Area, RequirementLevel, Role, Rule},
};

/// The legend of the result signs.
const SIGNS: &str = "✓ passed, – not applicable, ? not tested, · not observable";

/// Returns the rules as Markdown: a table per area with a sign per report.
///
/// Each report is shown with the rules for its side, in the given order.
pub fn rules_markdown(rules: &[&Rule], reports: &[Report]) -> String {
    let mut text = String::new();
    for role in [Role::Server, Role::Client] {
        let rules: Vec<_> = rules
            .iter()
            .filter(|rule| rule.role == role)
            .copied()
            .collect();
        let reports: Vec<_> = reports
            .iter()
            .filter(|report| report.role == role)
            .collect();
        if rules.is_empty() {
            continue;
        }
        let _ = write!(text, "## Rules for {}\n\n", plural(role));
        text += &rule_summary(&rules, &reports);
        for &area in Area::ALL {
            text += &section(area, &rules, &reports);
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the checklist lines as Markdown: requirements, signs, and the rules or the reason why there are none.
pub fn lines_markdown(lines: &[ChecklistLine], reports: &[Report]) -> String {
    let covered = lines.iter().filter(|line| !line.rules.is_empty()).count();
    let mut text = format!(
        "## Checklist lines\n\n{} lines: {covered} with rules, {} with a reason why they cannot be observed.",
        lines.len(),
        lines.len() - covered,
    );
    text += &match reports {
        [] => "\n\n".to_owned(),
        reports => {
            let names: Vec<_> = reports
                .iter()
                .map(|report| report.target.as_str())
                .collect();
            format!(
                " Signs for {}, over all revisions: {SIGNS}.\n\n",
                names.join(", ")
            )
        }
    };
    let head = if reports.is_empty() { "" } else { " Signs |" };
    let rule = if reports.is_empty() { "" } else { "---|" };
    let _ = write!(
        text,
        "| Line | Requirement |{head} Rules or reason |\n|---|---|{rule}---|\n"
    );
    for line in lines {
        let signs: String = reports
            .iter()
            .map(|report| line.status(report).map_or("·", RuleStatus::sign))
            .collect();
        let signs = match reports {
            [] => String::new(),
            _ => format!(" {signs} |"),
        };
        let rules = line.rules.iter().map(|rule| format!("`{}`", rule.id));
        let reason = line.reason.map(str::to_owned);
        let cell: Vec<_> = rules.chain(reason).collect();
        let _ = writeln!(
            text,
            "| {} | {} |{signs} {} |",
            line.id,
            line.text().replace('|', "\\|"),
            cell.join("<br>")
        );
    }
    text
}

/// Returns the requirements that can be observed on the wire and are not covered by a rule, as Markdown.
pub fn uncovered_requirements(rules: &[&Rule], role: Role) -> String {
    let rules = rules.iter().filter(|rule| rule.role == role);
    let covered: HashSet<_> = rules
        .flat_map(|rule| rule.requirement_ids)
        .copied()
        .collect();
    let open: Vec<_> = table::all()
        .iter()
        .filter(|row| is_demanded(row, role) && !covered.contains(row.id))
        .collect();
    let demanded = table::all().iter().filter(|row| is_demanded(row, role));
    let demanded = demanded.count();
    let mut text = format!(
        "## Requirements without a rule: {}\n\nOf {demanded} requirements that can be observed, {} are covered. These are not:\n",
        plural(role),
        demanded - open.len(),
    );
    let mut areas: Vec<_> = open.iter().map(|row| row.area).collect();
    areas.dedup();
    let mut evidence = HashSet::new();
    for area in areas.into_iter().filter(|area| evidence.insert(*area)) {
        let _ = write!(text, "\n### {area}\n\n");
        for row in open.iter().filter(|row| row.area == area) {
            let _ = writeln!(text, "- {}: {} ({})", linked(row), row.summary, span(row));
        }
    }
    text
}

fn is_demanded(row: &Requirement, role: Role) -> bool {
    let bound = match role {
        Role::Server => ["server", "both"],
        Role::Client => ["client", "both"],
    };
    row.is_on_the_wire() && ["MUST", "MUST NOT"].contains(&row.level) && bound.contains(&row.role)
}

fn plural(role: Role) -> &'static str {
    match role {
        Role::Server => "servers",
        Role::Client => "clients",
    }
}

fn rule_summary(rules: &[&Rule], reports: &[&Report]) -> String {
    let count = |level: RequirementLevel| rules.iter().filter(|rule| rule.level() == level).count();
    let mut text = format!(
        "{} rules: {} MUST, {} SHOULD, {} advice.\n\n",
        rules.len(),
        count(RequirementLevel::Fail),
        count(RequirementLevel::Warn),
        count(RequirementLevel::Advice)
    );
    if !reports.is_empty() {
        let names: Vec<_> = reports
            .iter()
            .map(|report| report.target.as_str())
            .collect();
        let _ = write!(
            text,
            "Signs for {}, in this order: {SIGNS}.\n\n",
            names.join(" and ")
        );
    }
    text
}

fn section(area: Area, rules: &[&Rule], reports: &[&Report]) -> String {
    let rules: Vec<_> = rules.iter().filter(|rule| rule.area == area).collect();
    if rules.is_empty() {
        return String::new();
    }
    let dates = Revision::ALL.map(Revision::as_str);
    let mut title = area.as_str().to_owned();
    title[..1].make_ascii_uppercase();
    let mut text = format!(
        "### {title}\n\n| Rule | {} | Requirements |\n|---|{}---|\n",
        dates.join(" | "),
        "---|".repeat(dates.len())
    );
    for rule in rules {
        let cells = Revision::ALL.map(|revision| cell(rule, revision, reports));
        let rows: Vec<_> = rule.requirements().map(linked).collect();
        let _ = writeln!(
            text,
            "| `{}`<br>{} | {} | {} |",
            rule.id,
            rule.requirement.replace('|', "\\|"),
            cells.join(" | "),
            rows.join("<br>")
        );
    }
    text + "\n"
}

/// Returns the level of a rule in a revision and the sign of each report.
fn cell(rule: &Rule, revision: Revision, reports: &[&Report]) -> String {
    if !rule.applies_in(revision) {
        return String::new();
    }
    let word = rule.level_in(revision).as_str();
    let signs: String = reports
        .iter()
        .map(|report| sign(rule, revision, report))
        .collect();
    if signs.is_empty() {
        word.to_owned()
    } else {
        format!("{word} {signs}")
    }
}

fn sign(rule: &Rule, revision: Revision, report: &Report) -> &'static str {
    let mut results = report.results();
    let result =
        results.find(|(run, result)| run.revision == revision && result.rule.id == rule.id);
    result.map_or("·", |(_, result)| RuleStatus::sign(result.status()))
}

fn linked(row: &Requirement) -> String {
    match spec_link(row.source) {
        Some(spec_link) => format!("[`{}`]({spec_link})", row.id),
        None => format!("`{}`", row.id),
    }
}

fn span(row: &Requirement) -> String {
    match row.revisions.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first} to {last}"),
    }
}
