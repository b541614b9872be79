//! What a text defines, found line by line: a table of words per language, no grammar.
//!
//! It misses a definition now and then and takes nothing apart, but it takes time in proportion to the text whatever the
//! text is, and knows every language by a line of a table.

mod family;
mod line;

pub(super) use family::LanguageRules;

use super::text::beginning;

/// Only so much of a line is looked at: a definition that begins later is none that people read.
const MAX_LINE_BYTES: usize = 400;

/// A name that a text defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Definition<'t> {
    /// Which line it is on, from 0.
    pub(super) line: usize,
    pub(super) name: &'t str,
    /// `function`, `type`, `section` and the like.
    pub(super) kind: &'static str,
}

/// Finds what is defined, in the order of the lines.
pub(super) fn definitions<'t>(rules: &LanguageRules, lines: &[&'t str]) -> Vec<Definition<'t>> {
    let mut found = Vec::new();
    let mut fence = None;
    for (number, line) in lines.iter().enumerate() {
        let line = beginning(line, MAX_LINE_BYTES).trim_end_matches(['\n', '\r']);
        if rules.is_prose() && is_fenced(&mut fence, line) {
            continue;
        }
        if let Some((name, kind)) = line::definition(rules, line) {
            found.push(Definition {
                line: number,
                name,
                kind,
            });
        }
    }
    found
}

/// Whether a line of Markdown is code: a `#` is a comment there.
fn is_fenced(fence: &mut Option<&'static str>, line: &str) -> bool {
    let mark = ["```", "~~~"]
        .into_iter()
        .find(|mark| line.trim_start().starts_with(mark));
    match (*fence, mark) {
        (None, Some(mark)) => *fence = Some(mark),
        (Some(open), Some(mark)) if open == mark => {
            *fence = None;
            return true;
        }
        _ => {}
    }
    fence.is_some()
}

#[cfg(test)]
mod tests;
