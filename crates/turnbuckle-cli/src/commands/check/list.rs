//! `turnbuckle check --list`: the catalogue.

use turnbuckle_check::report::json;
use turnbuckle_check::rule::{Area, Level, Role, Rule};
use turnbuckle_check::{Options, catalogue, compliance};

use super::{Check, Format};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::{style, wrap};

impl Check {
    /// Lists the rules that would be looked at.
    pub(super) fn list(&self, context: &Context) -> Result {
        let options = self.choice();
        let binds = |rule: &&Rule| options.revisions.iter().any(|&date| rule.binds_in(date));
        let rules: Vec<_> = catalogue::all()
            .filter(|rule| options.wants(rule))
            .filter(|rule| !self.client || rule.role == Role::Client)
            .filter(binds)
            .collect();
        let text = match self.format(context) {
            Format::Terminal => terminal(&rules, &options, context.width()),
            Format::Json => crate::output::json::document(&json::catalogue(rules.into_iter())),
            Format::Markdown => compliance::checklist(&rules, &[]),
            _ => {
                let message = "rules are listed as terminal, json or markdown";
                return Err(Failure::not_asked(message));
            }
        };
        match &self.output {
            Some(file) => context.save(file, style::without(&text).as_bytes()),
            None => context.print(&text),
        }
    }
}

fn terminal(rules: &[&Rule], options: &Options, width: usize) -> String {
    let mut text = String::new();
    for &area in Area::ALL {
        let rules: Vec<_> = rules.iter().filter(|rule| rule.area == area).collect();
        if rules.is_empty() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}{}\n", style::paint(style::HEAD, area.as_str()));
        for rule in rules {
            text += &entry(rule, options, width);
        }
    }
    text
}

fn entry(rule: &Rule, options: &Options, width: usize) -> String {
    let id = style::paint(style::NAME, rule.id);
    let says = wrap::indented(rule.says, 4, width);
    let levels = wrap::indented(&levels(rule, options), 4, width);
    let mut text = format!(
        "  {id}\n{says}{}",
        style::paint(style::DIM, levels.trim_end())
    );
    text.push('\n');
    if !rule.rows.is_empty() {
        let rows = wrap::indented(&rule.rows.join(", "), 4, width);
        text += &format!("{}\n", style::paint(style::DIM, rows.trim_end()));
    }
    text
}

/// Says how much a rule matters, and since when: `MUST 2025-06-18 to 2026-07-28`.
fn levels(rule: &Rule, options: &Options) -> String {
    let dates = options.revisions.iter();
    let level = |&date| rule.binds_in(date).then(|| rule.level_in(date));
    let levels: Vec<(String, Option<Level>)> =
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
