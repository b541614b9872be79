//! From a URI to variables: the reverse of expansion.
//!
//! One walk from left to right without a way back. A run first finds its end, which is where the next literal occurs;
//! then its expressions divide what lies between; then each divides its share among its variables. So a byte is looked
//! at once per layer, however many expressions there are.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{
    expression::{Expression, Operator, Run, Variable},
    percent,
    steps::Steps,
};

/// Returns the variables, and how many bytes were looked at to find them.
pub(super) fn variables(runs: &[Run], uri: &str) -> (Option<BTreeMap<String, String>>, usize) {
    let mut matcher = Matcher::default();
    let complete = matcher.runs(runs, uri);
    let found = complete.and_then(|()| reconcile(matcher.bindings));
    (found, matcher.steps.taken())
}

#[derive(Default)]
struct Matcher<'t> {
    steps: Steps,
    bindings: Vec<(&'t Variable, String)>,
}

impl<'t> Matcher<'t> {
    fn runs(&mut self, runs: &'t [Run], uri: &str) -> Option<()> {
        let mut rest = uri;
        for (index, run) in runs.iter().enumerate() {
            rest = self.steps.strip_prefix(rest, &run.literal)?;
            let end = self.end_of_run(run, &runs[index + 1..], rest)?;
            let (share, after) = rest.split_at(end);
            self.expressions(&run.expressions, share)?;
            rest = after;
        }
        rest.is_empty().then_some(())
    }

    /// Returns where the next literal begins.
    fn end_of_run(&mut self, run: &Run, following: &[Run], rest: &str) -> Option<usize> {
        match following {
            [] => Some(rest.len()),
            [last] if last.expressions.is_empty() => {
                let end = rest.len().checked_sub(last.literal.len())?;
                rest.is_char_boundary(end).then_some(end)
            }
            [next, ..] => {
                let skip = self.last_value(&run.expressions, rest);
                self.steps.find(rest, skip, &next.literal)
            }
        }
    }

    /// Returns where the next literal can begin: after the first character of the last value that must be there.
    ///
    /// Without it, `{/a,b}/{c}` would take the `/` before `b` for the literal before `c`.
    fn last_value(&mut self, expressions: &[Expression], rest: &str) -> usize {
        let mut at = 0;
        for expression in expressions {
            let operator = expression.operator;
            if operator.is_named() {
                continue;
            }
            if let Some(sigil) = operator.sigil() {
                at = self.steps.find_any(rest, at, &[sigil]) + 1;
            }
            // How many separators a list brings, nobody knows.
            if !expression.variables.iter().any(Variable::is_exploded) {
                for _ in 1..expression.variables.len() {
                    at = self.steps.find_any(rest, at + 1, &[operator.separator()]) + 1;
                }
            }
            at += 1;
        }
        at
    }

    fn expressions(&mut self, expressions: &'t [Expression], share: &str) -> Option<()> {
        let mut rest = share;
        for (index, expression) in expressions.iter().enumerate() {
            let end = self.end_of_expression(expression, &expressions[index + 1..], rest);
            let (own, after) = rest.split_at(end);
            self.expression(expression, own)?;
            rest = after;
        }
        rest.is_empty().then_some(())
    }

    /// Returns where one of the next expressions begins: those that may be missing, and the first that may not.
    fn end_of_expression(
        &mut self,
        expression: &Expression,
        following: &[Expression],
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
        // Past its own first character, so that `{/a}{/b}` does not end where it begins.
        self.steps.find_any(rest, expression.shortest(), &sigils)
    }

    fn expression(&mut self, expression: &'t Expression, own: &str) -> Option<()> {
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

    /// Divides values by their place: one each from both sides, and what is left to the list or the last.
    fn positional(&mut self, expression: &'t Expression, values: &str) -> Option<()> {
        let separator = expression.operator.separator();
        let variables = &expression.variables;
        let list = variables.iter().position(Variable::is_exploded);
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

    /// Binds a variable to its part of the URI, none of whose items is empty.
    fn place(&mut self, operator: Operator, variable: &'t Variable, text: &str) -> Option<()> {
        let mut value = Vec::new();
        let mut items = Some(text);
        while let Some(rest) = items {
            let (item, after) = match variable.is_exploded() {
                true => self.steps.next_item(rest, operator.separator()),
                false => (rest, None),
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

    /// Divides values by their names.
    fn named(&mut self, expression: &'t Expression, values: &str) -> Option<()> {
        let operator = expression.operator;
        let variables = &expression.variables;
        let mut found: Vec<Option<Vec<u8>>> = vec![None; variables.len()];
        let mut pairs = Some(values);
        while let Some(rest) = pairs {
            let (pair, after) = self.steps.next_item(rest, operator.separator());
            let (name, text) = self.steps.split_once(pair, '=').unwrap_or((pair, ""));
            let is_free = |(variable, slot): (&Variable, &Option<_>)| {
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

    /// Appends a decoded item, unless it has a character that would not be in it.
    fn decode(
        &mut self,
        operator: Operator,
        variable: &Variable,
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

    fn bind(&mut self, variable: &'t Variable, value: Vec<u8>) -> Option<()> {
        self.steps.add(value.len());
        let value = String::from_utf8(value).ok()?;
        let is_short = value.chars().nth(variable.longest()).is_none();
        self.bindings.push((variable, value));
        is_short.then_some(())
    }
}

/// Returns what a value has only in its encoded form.
fn excluded(operator: Operator, variable: &Variable) -> &'static [u8] {
    match operator {
        Operator::Reserved | Operator::Fragment => b"",
        // Many write `?path=/a/b`, and nothing but a fragment can follow a query.
        Operator::Query | Operator::Continuation => b"#",
        Operator::Parameter => b"/?#&",
        _ if variable.is_exploded() => b"/?#&",
        Operator::Simple | Operator::Label | Operator::Path => b"/?#&,",
    }
}

/// Joins what was found under the same name: a shorter prefix has to be the beginning of a longer one or of the whole.
fn reconcile(mut bindings: Vec<(&Variable, String)>) -> Option<BTreeMap<String, String>> {
    bindings.sort_by_key(|(variable, _)| std::cmp::Reverse(variable.longest()));
    let mut values = BTreeMap::new();
    for (variable, value) in bindings {
        match values.entry(variable.name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(entry) => {
                let expected = entry.get().chars().take(variable.longest());
                if !expected.eq(value.chars()) {
                    return None;
                }
            }
        }
    }
    Some(values)
}
