//! Parses templates (RFC 6570, section 2).

use std::collections::BTreeSet;

use super::{
    UriTemplate, UriTemplateError,
    expression::{
        Segment, TemplateExpression, TemplateOperator, TemplateVariable, VariableModifier,
    },
    percent::{self, PercentSet},
};

/// A template, and the reason why it cannot be matched, if any.
pub(super) struct ParsedTemplate {
    pub(super) template: UriTemplate,
    pub(super) ambiguity: Option<UriTemplateError>,
}

pub(super) fn template(source: &str) -> Result<ParsedTemplate, UriTemplateError> {
    if source.len() > UriTemplate::MAX_LENGTH {
        return Err(UriTemplateError::TooLong {
            length: source.len(),
        });
    }
    let mut parser = TemplateParser::default();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        at += match rest.strip_prefix('{') {
            Some(inside) => parser.expression(inside, at)?,
            None => parser.literal(rest, at)?,
        };
    }
    Ok(parser.finish(source))
}

#[derive(Default)]
struct TemplateParser {
    segments: Vec<Segment>,
    names: Vec<String>,
    seen_names: BTreeSet<String>,
    expressions: usize,
    variables: usize,
    ambiguity: Option<UriTemplateError>,
}

impl TemplateParser {
    /// Parses a literal and returns its length.
    fn literal(&mut self, rest: &str, at: usize) -> Result<usize, UriTemplateError> {
        let text = &rest[..rest.find('{').unwrap_or(rest.len())];
        for (index, character) in text.char_indices() {
            check_literal(character, &text.as_bytes()[index..], at + index)?;
        }
        let mut segment = Segment::default();
        percent::encode(text, PercentSet::Reserved, &mut segment.literal);
        self.segments.push(segment);
        Ok(text.len())
    }

    /// Parses the expression with the opening brace at `at` and returns its length.
    fn expression(&mut self, inside: &str, at: usize) -> Result<usize, UriTemplateError> {
        self.expressions += 1;
        if self.expressions > UriTemplate::MAX_EXPRESSIONS {
            return Err(UriTemplateError::TooManyExpressions { at });
        }
        let end = inside.find('}').ok_or(UriTemplateError::Unclosed { at })?;
        let inside = &inside[..end];
        let operator = operator(inside, at + 1)?;
        let mut expression = TemplateExpression {
            operator,
            variables: Vec::new(),
        };
        let mut start = operator_length(operator);
        for specifier in inside[start..].split(',') {
            let variable = self.variable(specifier, at + 1 + start)?;
            self.check_second_list(&expression, &variable, at + 1 + start);
            expression.variables.push(variable);
            start += specifier.len() + 1;
        }
        self.push(expression, at);
        Ok(end + 2)
    }

    fn variable(
        &mut self,
        specifier: &str,
        at: usize,
    ) -> Result<TemplateVariable, UriTemplateError> {
        self.variables += 1;
        if self.variables > UriTemplate::MAX_VARIABLES {
            return Err(UriTemplateError::TooManyVariables { at });
        }
        let (name, modifier) = if let Some(name) = specifier.strip_suffix('*') {
            (name, VariableModifier::Explode)
        } else if let Some((name, length)) = specifier.split_once(':') {
            (name, prefix(length, at + name.len() + 1)?)
        } else {
            (specifier, VariableModifier::Whole)
        };
        if !is_name(name) {
            let name = name.to_owned();
            return Err(UriTemplateError::Name { name, at });
        }
        if self.seen_names.insert(name.to_owned()) {
            self.names.push(name.to_owned());
        }
        Ok(TemplateVariable {
            name: name.to_owned(),
            modifier,
        })
    }

    fn push(&mut self, expression: TemplateExpression, at: usize) {
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let segment = self
            .segments
            .last_mut()
            .expect("a segment was pushed above");
        segment.expressions.push(expression);
        if let Some((first, second)) = adjacent(&segment.expressions) {
            self.ambiguity.get_or_insert(ambiguous(first, second, at));
        }
    }

    /// Records two lists in one expression that would have the same separator.
    fn check_second_list(
        &mut self,
        expression: &TemplateExpression,
        second: &TemplateVariable,
        at: usize,
    ) {
        let first = expression.variables.iter().find(|one| one.is_exploded());
        if let Some(first) = first
            && second.is_exploded()
            && !expression.operator.is_named()
        {
            self.ambiguity.get_or_insert(ambiguous(first, second, at));
        }
    }

    fn finish(self, source: &str) -> ParsedTemplate {
        ParsedTemplate {
            template: UriTemplate {
                source: source.to_owned(),
                segments: self.segments,
                names: self.names,
                matchable: self.ambiguity.is_none(),
            },
            ambiguity: self.ambiguity,
        }
    }
}

/// Returns two variables without a delimiter between them, if the last expression adds such a pair.
fn adjacent(expressions: &[TemplateExpression]) -> Option<(&TemplateVariable, &TemplateVariable)> {
    let (last, before) = expressions.split_last()?;
    for one in before.iter().rev() {
        if !is_distinguishable(one, last) {
            return Some((one.variables.last()?, last.variables.first()?));
        }
        // A required expression separates the last expression from all earlier ones.
        if !one.operator.is_named() {
            return None;
        }
    }
    None
}

/// Returns whether the start of `second` delimits the end of `first`.
fn is_distinguishable(first: &TemplateExpression, second: &TemplateExpression) -> bool {
    let Some(sigil) = second.operator.sigil() else {
        return false;
    };
    if first.operator.is_named() {
        return Some(sigil) != first.operator.sigil() && sigil != first.operator.separator();
    }
    let is_single = matches!(first.variables.as_slice(), [one] if !one.is_exploded());
    is_single || sigil != first.operator.separator()
}

fn ambiguous(first: &TemplateVariable, second: &TemplateVariable, at: usize) -> UriTemplateError {
    UriTemplateError::Adjacent {
        first: first.name.clone(),
        second: second.name.clone(),
        at,
    }
}

fn check_literal(character: char, rest: &[u8], at: usize) -> Result<(), UriTemplateError> {
    match character {
        '}' => Err(UriTemplateError::Unopened { at }),
        '%' if percent::triplet(rest).is_some() => Ok(()),
        '%' | ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '|' => {
            Err(UriTemplateError::Literal { character, at })
        }
        _ if character.is_control() => Err(UriTemplateError::Literal { character, at }),
        _ => Ok(()),
    }
}

fn operator(inside: &str, at: usize) -> Result<TemplateOperator, UriTemplateError> {
    Ok(match inside.chars().next() {
        Some('+') => TemplateOperator::Reserved,
        Some('#') => TemplateOperator::Fragment,
        Some('.') => TemplateOperator::Label,
        Some('/') => TemplateOperator::Path,
        Some(';') => TemplateOperator::Parameter,
        Some('?') => TemplateOperator::Query,
        Some('&') => TemplateOperator::Continuation,
        Some(operator @ ('=' | ',' | '!' | '@' | '|')) => {
            return Err(UriTemplateError::Operator { operator, at });
        }
        _ => TemplateOperator::Simple,
    })
}

fn operator_length(operator: TemplateOperator) -> usize {
    usize::from(operator != TemplateOperator::Simple)
}

fn prefix(length: &str, at: usize) -> Result<VariableModifier, UriTemplateError> {
    let is_number = length.len() <= 4
        && length.bytes().all(|byte| byte.is_ascii_digit())
        && !length.starts_with('0');
    match length.parse() {
        Ok(number) if is_number => Ok(VariableModifier::Prefix(number)),
        _ => {
            let length = length.to_owned();
            Err(UriTemplateError::Prefix { length, at })
        }
    }
}

fn is_name(name: &str) -> bool {
    name.split('.').all(is_name_part)
}

fn is_name_part(part: &str) -> bool {
    let mut rest = part.as_bytes();
    while let Some(&byte) = rest.first() {
        let width = match percent::triplet(rest) {
            Some(_) => 3,
            None if byte == b'_' || byte.is_ascii_alphanumeric() => 1,
            None => return false,
        };
        rest = &rest[width..];
    }
    !part.is_empty()
}
