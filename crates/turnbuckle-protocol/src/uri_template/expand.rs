//! From variables to a URI (RFC 6570, section 3).

use super::{
    expression::{Expression, Modifier, Operator, Run, Variable},
    percent::{self, Keep},
    variables::{Value, Variables},
};

pub(super) fn runs(runs: &[Run], variables: &Variables) -> String {
    let mut out = String::new();
    for run in runs {
        out.push_str(&run.literal);
        for expression in &run.expressions {
            append(expression, variables, &mut out);
        }
    }
    out
}

fn append(expression: &Expression, variables: &Variables, out: &mut String) {
    let operator = expression.operator;
    let mut before = operator.sigil();
    for variable in &expression.variables {
        let texts;
        let items: &[&str] = match (variables.get(&variable.name), variable.modifier) {
            (None, _) => continue,
            (Some(Value::List(items)), _) if items.is_empty() => continue,
            (Some(Value::List(items)), _) => {
                texts = items.iter().map(String::as_str).collect::<Vec<_>>();
                &texts
            }
            (Some(Value::Text(text)), Modifier::Prefix(length)) => {
                &[prefix(text, length.into(), keep(operator))]
            }
            (Some(Value::Text(text)), _) => &[text],
        };
        out.extend(before);
        before = Some(operator.separator());
        append_items(operator, variable, items, out);
    }
}

fn append_items(operator: Operator, variable: &Variable, items: &[&str], out: &mut String) {
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
            // `;a` has no `=` if there is nothing after it, `?a=` has.
            let is_empty = item.is_empty() && (items.len() == 1 || variable.is_exploded());
            if !(is_empty && operator == Operator::Parameter) {
                out.push('=');
            }
        }
        percent::encode(item, keep(operator), out);
    }
}

fn keep(operator: Operator) -> Keep {
    if operator.keeps_reserved() {
        Keep::Reserved
    } else {
        Keep::Unreserved
    }
}

/// Returns the first characters of a text.
///
/// Where triplets are kept, those that make up one character count as one: none is cut in two (section 2.4.1).
fn prefix(text: &str, length: usize, keep: Keep) -> &str {
    let bytes = text.as_bytes();
    let mut count = 0;
    let mut at = 0;
    while at < bytes.len() {
        let (byte, width) = match percent::triplet(&bytes[at..]) {
            Some(byte) if keep == Keep::Reserved => (byte, 3),
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
