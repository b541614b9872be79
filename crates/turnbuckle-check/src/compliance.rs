//! The compliance checklist: every rule, what it asks for, and what somebody gets; and what no rule judges.

use std::collections::HashSet;
use std::fmt::Write as _;

use turnbuckle_ledger::{Requirement, table};
use turnbuckle_protocol::revision::Revision;

use crate::checklist::Line;
use crate::report::{Grade, Report, page};
use crate::rule::{Area, Level, Role, Rule};

/// What the signs of a report of a right server or client mean.
const SIGNS: &str = "✓ kept, – not applicable, ? not tested, · not to be seen there";

/// Returns the checklist as Markdown: a table for each area, and in it a sign for each report.
///
/// The reports are of servers or of clients; each is shown with the rules of its role, in the order given.
pub fn checklist(rules: &[&Rule], reports: &[Report]) -> String {
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
        text += &introduction(&rules, &reports);
        for &area in Area::ALL {
            text += &section(area, &rules, &reports);
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the compliance checklist line by line as Markdown: what a line asks for, which rules judge it with what the
/// reports say, and why no rule can.
pub fn lines(lines: &[Line], reports: &[Report]) -> String {
    let judged = lines.iter().filter(|line| !line.rules.is_empty()).count();
    let mut text = format!(
        "## The checklist, line by line\n\n{} lines: {judged} have rules, {} have a reason why they cannot be seen from outside.",
        lines.len(),
        lines.len() - judged,
    );
    text += &match reports {
        [] => "\n\n".to_owned(),
        reports => {
            let names: Vec<_> = reports
                .iter()
                .map(|report| report.target.as_str())
                .collect();
            format!(
                " The signs are for {}, in all revisions together: {SIGNS}.\n\n",
                names.join(", ")
            )
        }
    };
    let head = if reports.is_empty() { "" } else { " Signs |" };
    let rule = if reports.is_empty() { "" } else { "---|" };
    let _ = write!(
        text,
        "| Line | Asks for |{head} Rules, or why there are none |\n|---|---|{rule}---|\n"
    );
    for line in lines {
        let signs: String = reports
            .iter()
            .map(|report| line.grade(report).map_or("·", Grade::sign))
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

/// Returns what the specification demands on the wire and no rule judges, by area, as Markdown.
pub fn not_judged(rules: &[&Rule], role: Role) -> String {
    let rules = rules.iter().filter(|rule| rule.role == role);
    let judged: HashSet<_> = rules.flat_map(|rule| rule.rows).copied().collect();
    let open: Vec<_> = table::all()
        .iter()
        .filter(|row| is_demanded(row, role) && !judged.contains(row.id))
        .collect();
    let demanded = table::all().iter().filter(|row| is_demanded(row, role));
    let demanded = demanded.count();
    let mut text = format!(
        "## What no rule judges: {}\n\nOf {demanded} duties that others can see, {} are judged. These are not:\n",
        plural(role),
        demanded - open.len(),
    );
    let mut areas: Vec<_> = open.iter().map(|row| row.area).collect();
    areas.dedup();
    let mut seen = HashSet::new();
    for area in areas.into_iter().filter(|area| seen.insert(*area)) {
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

fn introduction(rules: &[&Rule], reports: &[&Report]) -> String {
    let count = |level: Level| rules.iter().filter(|rule| rule.level() == level).count();
    let mut text = format!(
        "{} rules: {} with MUST, {} with SHOULD, {} of advice.\n\n",
        rules.len(),
        count(Level::Fail),
        count(Level::Warn),
        count(Level::Advice)
    );
    if !reports.is_empty() {
        let names: Vec<_> = reports
            .iter()
            .map(|report| report.target.as_str())
            .collect();
        let _ = write!(
            text,
            "The signs are for {}, in this order: {SIGNS}.\n\n",
            names.join(" and for ")
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
            rule.says.replace('|', "\\|"),
            cells.join(" | "),
            rows.join("<br>")
        );
    }
    text + "\n"
}

/// Says how much a rule matters in a revision, and what each report has to say about it.
fn cell(rule: &Rule, revision: Revision, reports: &[&Report]) -> String {
    if !rule.binds_in(revision) {
        return String::new();
    }
    let word = rule.level_in(revision).as_str();
    let signs: String = reports
        .iter()
        .map(|report| sign(rule, revision, report))
        .collect();
    match signs.is_empty() {
        true => word.to_owned(),
        false => format!("{word} {signs}"),
    }
}

fn sign(rule: &Rule, revision: Revision, report: &Report) -> &'static str {
    let mut rulings = report.rulings();
    let ruling =
        rulings.find(|(run, ruling)| run.revision == revision && ruling.rule.id == rule.id);
    ruling.map_or("·", |(_, ruling)| Grade::sign(ruling.grade()))
}

fn linked(row: &Requirement) -> String {
    match page(row.source) {
        Some(page) => format!("[`{}`]({page})", row.id),
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
