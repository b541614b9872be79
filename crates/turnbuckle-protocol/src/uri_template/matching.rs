//! Matches a URI against a template: the reverse of expansion.
//!
//! A single pass from left to right without backtracking. A segment first finds its end, the start of the next
//! literal; then its expressions divide the text before it; then each divides its part among its variables. So each
//! byte is read once per layer, independent of the number of expressions.

use std::collections::{BTreeMap, btree_map::Entry};

use memchr::memmem;

use super::{
    expression::{Segment, TemplateExpression, TemplateOperator, TemplateVariable},
    percent,
};

/// Returns the variables, and the number of bytes read to find them.
pub(super) fn variables(
    segments: &[Segment],
    uri: &str,
) -> (Option<BTreeMap<String, String>>, usize) {
    let mut matcher = TemplateMatcher::default();
    let complete = matcher.segments(segments, uri);
    let found = complete.and_then(|()| reconcile(matcher.bindings));
    (found, matcher.steps.steps())
}

#[derive(Default)]
struct TemplateMatcher<'t> {
    steps: CountingCursor,
    bindings: Vec<(&'t TemplateVariable, String)>,
}

impl<'t> TemplateMatcher<'t> {
    fn segments(&mut self, segments: &'t [Segment], uri: &str) -> Option<()> {
        let mut rest = uri;
        for (index, segment) in segments.iter().enumerate() {
            rest = self.steps.strip_prefix(rest, &segment.literal)?;
            let end = self.end_of_segment(segment, &segments[index + 1..], rest)?;
            let (share, after) = rest.split_at(end);
            self.expressions(&segment.expressions, share)?;
            rest = after;
        }
        rest.is_empty().then_some(())
    }

    /// Returns the start of the next literal.
    fn end_of_segment(
        &mut self,
        segment: &Segment,
        following: &[Segment],
        rest: &str,
    ) -> Option<usize> {
        match following {
            [] => Some(rest.len()),
            [last] if last.expressions.is_empty() => {
                let end = rest.len().checked_sub(last.literal.len())?;
                rest.is_char_boundary(end).then_some(end)
            }
            [next, ..] => {
                let skip = self.last_value(&segment.expressions, rest);
                self.steps.find(rest, skip, &next.literal)
            }
        }
    }

    /// Returns the earliest possible start of the next literal: after the first character of the last required value.
    ///
    /// Without it, `{/a,b}/{c}` would take the `/` before `b` for the literal before `c`.
    fn last_value(&mut self, expressions: &[TemplateExpression], rest: &str) -> usize {
        let mut at = 0;
        for expression in expressions {
            let operator = expression.operator;
            if operator.is_named() {
                continue;
            }
            if let Some(sigil) = operator.sigil() {
                at = self.steps.find_any(rest, at, &[sigil]) + 1;
            }
            // The number of separators in a list is unknown.
            if !expression
                .variables
                .iter()
                .any(TemplateVariable::is_exploded)
            {
                for _ in 1..expression.variables.len() {
                    at = self.steps.find_any(rest, at + 1, &[operator.separator()]) + 1;
                }
            }
            at += 1;
        }
        at
    }

    fn expressions(&mut self, expressions: &'t [TemplateExpression], share: &str) -> Option<()> {
        let mut rest = share;
        for (index, expression) in expressions.iter().enumerate() {
            let end = self.end_of_expression(expression, &expressions[index + 1..], rest);
            let (own, after) = rest.split_at(end);
            self.expression(expression, own)?;
            rest = after;
        }
        rest.is_empty().then_some(())
    }

    /// Returns the start of the first following expression that is present: optional ones, and the first required
    /// one.
    fn end_of_expression(
        &mut self,
        expression: &TemplateExpression,
        following: &[TemplateExpression],
        rest: &str,
    ) -> usize {
        let operator = expression.operator;
        if operator.is_named() && !rest.starts_with(|first| Some(first) == operator.sigil()) {
            return 0;
        }
        let required = following.iter().position(|next| !next.operator.is_named());
        let reachable = required.map_or(following, |index| &following[..=index]);
        let sigils: Vec<char> = reachable
            .iter()
            .filter_map(|next| next.operator.sigil())
            .collect();
        // After its own first character, so that `{/a}{/b}` does not end at its start.
        self.steps.find_any(rest, expression.min_length(), &sigils)
    }

    fn expression(&mut self, expression: &'t TemplateExpression, own: &str) -> Option<()> {
        let operator = expression.operator;
        if operator.is_named() && own.is_empty() {
            return Some(());
        }
        let values = match operator.sigil() {
            Some(sigil) => own.strip_prefix(sigil)?,
            None => own,
        };
        if operator.is_named() {
            self.named(expression, values)
        } else {
            self.positional(expression, values)
        }
    }

    /// Divides values by position: one each from both sides, and the rest to the list or the last variable.
    fn positional(&mut self, expression: &'t TemplateExpression, values: &str) -> Option<()> {
        let separator = expression.operator.separator();
        let variables = &expression.variables;
        let list = variables.iter().position(TemplateVariable::is_exploded);
        let taker = list.unwrap_or(variables.len() - 1);

        let mut rest = values;
        for variable in &variables[..taker] {
            let (value, after) = self.steps.split_once(rest, separator)?;
            self.place(expression.operator, variable, value)?;
            rest = after;
        }
        for variable in variables[taker + 1..].iter().rev() {
            let (before, value) = self.steps.rsplit_once(rest, separator)?;
            self.place(expression.operator, variable, value)?;
            rest = before;
        }
        self.place(expression.operator, &variables[taker], rest)
    }

    /// Binds a variable to its part of the URI; empty items do not match.
    fn place(
        &mut self,
        operator: TemplateOperator,
        variable: &'t TemplateVariable,
        text: &str,
    ) -> Option<()> {
        let mut value = Vec::new();
        let mut items = Some(text);
        while let Some(rest) = items {
            let (item, after) = if variable.is_exploded() {
                self.steps.next_item(rest, operator.separator())
            } else {
                (rest, None)
            };
            if item.is_empty() {
                return None;
            }
            if !value.is_empty() {
                value.push(b',');
            }
            self.decode(operator, variable, item, &mut value)?;
            items = after;
        }
        self.bind(variable, value)
    }

    /// Divides values by name.
    fn named(&mut self, expression: &'t TemplateExpression, values: &str) -> Option<()> {
        let operator = expression.operator;
        let variables = &expression.variables;
        let mut found: Vec<Option<Vec<u8>>> = vec![None; variables.len()];
        let mut pairs = Some(values);
        while let Some(rest) = pairs {
            let (pair, after) = self.steps.next_item(rest, operator.separator());
            let (name, text) = self.steps.split_once(pair, '=').unwrap_or((pair, ""));
            let is_free = |(variable, slot): (&TemplateVariable, &Option<_>)| {
                variable.name == name && (slot.is_none() || variable.is_exploded())
            };
            let index = variables.iter().zip(&found).position(is_free)?;
            let value = match &mut found[index] {
                Some(value) => {
                    value.push(b',');
                    value
                }
                slot => slot.insert(Vec::new()),
            };
            self.decode(operator, &variables[index], text, value)?;
            pairs = after;
        }
        for (variable, value) in variables.iter().zip(found) {
            if let Some(value) = value {
                self.bind(variable, value)?;
            }
        }
        Some(())
    }

    /// Appends a decoded item, unless it contains an excluded character.
    fn decode(
        &mut self,
        operator: TemplateOperator,
        variable: &TemplateVariable,
        item: &str,
        value: &mut Vec<u8>,
    ) -> Option<()> {
        self.steps.add(item.len());
        let excluded = excluded(operator, variable);
        if item.bytes().any(|byte| excluded.contains(&byte)) {
            return None;
        }
        percent::decode(item, value)
    }

    fn bind(&mut self, variable: &'t TemplateVariable, value: Vec<u8>) -> Option<()> {
        self.steps.add(value.len());
        let value = String::from_utf8(value).ok()?;
        let is_short = value.chars().nth(variable.max_chars()).is_none();
        self.bindings.push((variable, value));
        is_short.then_some(())
    }
}

/// Returns the characters that a value contains only in encoded form.
fn excluded(operator: TemplateOperator, variable: &TemplateVariable) -> &'static [u8] {
    match operator {
        TemplateOperator::Reserved | TemplateOperator::Fragment => b"",
        // `?path=/a/b` is common, and only a fragment can follow a query.
        TemplateOperator::Query | TemplateOperator::Continuation => b"#",
        TemplateOperator::Parameter => b"/?#&",
        _ if variable.is_exploded() => b"/?#&",
        TemplateOperator::Simple | TemplateOperator::Label | TemplateOperator::Path => b"/?#&,",
    }
}

/// Merges values of the same name: a shorter prefix must be the start of a longer one or of the whole value.
fn reconcile(mut bindings: Vec<(&TemplateVariable, String)>) -> Option<BTreeMap<String, String>> {
    bindings.sort_by_key(|(variable, _)| std::cmp::Reverse(variable.max_chars()));
    let mut values = BTreeMap::new();
    for (variable, value) in bindings {
        match values.entry(variable.name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(entry) => {
                let expected = entry.get().chars().take(variable.max_chars());
                if !expected.eq(value.chars()) {
                    return None;
                }
            }
        }
    }
    Some(values)
}

/// Searches text for the matcher and counts the bytes read.
///
/// Tests compare the count with the length of a URI, because a time measurement would not be reproducible.
#[derive(Debug, Default)]
pub(super) struct CountingCursor(usize);

impl CountingCursor {
    pub(super) fn steps(&self) -> usize {
        self.0
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    pub(super) fn strip_prefix<'u>(&mut self, text: &'u str, prefix: &str) -> Option<&'u str> {
        self.add(prefix.len());
        text.strip_prefix(prefix)
    }

    /// Returns the offset of the first occurrence of an ASCII text after `skip` bytes.
    pub(super) fn find(&mut self, text: &str, skip: usize, literal: &str) -> Option<usize> {
        let bytes = text.as_bytes().get(skip..)?;
        let found = memmem::find(bytes, literal.as_bytes());
        self.add(found.map_or(bytes.len(), |at| at + literal.len()));
        Some(skip + found?)
    }

    /// Returns the offset of the first of these ASCII characters after `skip` bytes, or the end.
    pub(super) fn find_any(&mut self, text: &str, skip: usize, characters: &[char]) -> usize {
        let bytes = text.as_bytes().get(skip..).unwrap_or_default();
        let is_one = |&byte: &u8| characters.contains(&byte.into());
        let found = (!characters.is_empty()).then(|| bytes.iter().position(is_one));
        let end = match found.flatten() {
            Some(at) => skip + at,
            None => text.len(),
        };
        self.add(end.saturating_sub(skip));
        end
    }

    pub(super) fn split_once<'u>(
        &mut self,
        text: &'u str,
        separator: char,
    ) -> Option<(&'u str, &'u str)> {
        let parts = text.split_once(separator);
        self.add(parts.map_or(text.len(), |(before, _)| before.len() + 1));
        parts
    }

    pub(super) fn rsplit_once<'u>(
        &mut self,
        text: &'u str,
        separator: char,
    ) -> Option<(&'u str, &'u str)> {
        let parts = text.rsplit_once(separator);
        self.add(parts.map_or(text.len(), |(_, after)| after.len() + 1));
        parts
    }

    /// Returns the first item, and the rest if a separator follows.
    pub(super) fn next_item<'u>(
        &mut self,
        text: &'u str,
        separator: char,
    ) -> (&'u str, Option<&'u str>) {
        match self.split_once(text, separator) {
            Some((item, after)) => (item, Some(after)),
            None => (text, None),
        }
    }
}
