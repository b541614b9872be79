//! Expands a template with variables (RFC 6570, section 3).

use std::collections::BTreeMap;

use super::{
    expression::{
        Segment, TemplateExpression, TemplateOperator, TemplateVariable, VariableModifier,
    },
    percent,
    percent::PercentSet,
};

pub(super) fn segments(segments: &[Segment], variables: &TemplateVariables) -> String {
    let mut out = String::new();
    for segment in segments {
        out.push_str(&segment.literal);
        for expression in &segment.expressions {
            append(expression, variables, &mut out);
        }
    }
    out
}

fn append(expression: &TemplateExpression, variables: &TemplateVariables, out: &mut String) {
    let operator = expression.operator;
    let mut before = operator.sigil();
    for variable in &expression.variables {
        let texts;
        let items: &[&str] = match (variables.get(&variable.name), variable.modifier) {
            (None, _) => continue,
            (Some(VariableValue::List(items)), _) if items.is_empty() => continue,
            (Some(VariableValue::List(items)), _) => {
                texts = items.iter().map(String::as_str).collect::<Vec<_>>();
                &texts
            }
            (Some(VariableValue::Text(text)), VariableModifier::Prefix(length)) => {
                &[prefix(text, length.into(), keep(operator))]
            }
            (Some(VariableValue::Text(text)), _) => &[text],
        };
        out.extend(before);
        before = Some(operator.separator());
        append_items(operator, variable, items, out);
    }
}

fn append_items(
    operator: TemplateOperator,
    variable: &TemplateVariable,
    items: &[&str],
    out: &mut String,
) {
    let between = if variable.is_exploded() {
        operator.separator()
    } else {
        ','
    };
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(between);
        }
        if operator.is_named() && (index == 0 || variable.is_exploded()) {
            out.push_str(&variable.name);
            // With an empty value, `;a` is written without `=`, and `?a=` with it.
            let is_empty = item.is_empty() && (items.len() == 1 || variable.is_exploded());
            if !(is_empty && operator == TemplateOperator::Parameter) {
                out.push('=');
            }
        }
        percent::encode(item, keep(operator), out);
    }
}

fn keep(operator: TemplateOperator) -> PercentSet {
    if operator.keeps_reserved() {
        PercentSet::Reserved
    } else {
        PercentSet::Unreserved
    }
}

/// Returns the first characters of a text.
///
/// If triplets are preserved, those that encode one character count as one and are not split (section 2.4.1).
fn prefix(text: &str, length: usize, keep: PercentSet) -> &str {
    let bytes = text.as_bytes();
    let mut count = 0;
    let mut at = 0;
    while at < bytes.len() {
        let (byte, width) = match percent::triplet(&bytes[at..]) {
            Some(byte) if keep == PercentSet::Reserved => (byte, 3),
            _ => (bytes[at], 1),
        };
        let continues = byte & 0b1100_0000 == 0b1000_0000;
        count += usize::from(!continues);
        if count > length {
            break;
        }
        at += width;
    }
    &text[..at]
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableValue {
    /// A single string.
    Text(String),
    /// Several strings, in order. An empty list counts as absent.
    List(Vec<String>),
}

impl From<&str> for VariableValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for VariableValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for VariableValue {
    fn from(items: Vec<String>) -> Self {
        Self::List(items)
    }
}

impl<const N: usize> From<[&str; N]> for VariableValue {
    fn from(items: [&str; N]) -> Self {
        Self::List(items.map(str::to_owned).into())
    }
}

/// The values to expand a template with, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateVariables(BTreeMap<String, VariableValue>);

impl TemplateVariables {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable and returns the value it had.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        value: impl Into<VariableValue>,
    ) -> Option<VariableValue> {
        self.0.insert(name.into(), value.into())
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&VariableValue> {
        self.0.get(name)
    }
}

impl<N: Into<String>, V: Into<VariableValue>> FromIterator<(N, V)> for TemplateVariables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl<N: Into<String>, V: Into<VariableValue>, const COUNT: usize> From<[(N, V); COUNT]>
    for TemplateVariables
{
    fn from(pairs: [(N, V); COUNT]) -> Self {
        pairs.into_iter().collect()
    }
}
