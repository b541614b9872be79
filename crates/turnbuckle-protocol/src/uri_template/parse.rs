//! From text to a template (RFC 6570, section 2).

use std::collections::BTreeSet;

use super::{
    UriTemplate, UriTemplateError,
    expression::{Expression, Modifier, Operator, Run, Variable},
    percent::{self, Keep},
};

/// A template, and why it cannot be matched if it cannot.
pub(super) struct Parsed {
    pub(super) template: UriTemplate,
    pub(super) ambiguity: Option<UriTemplateError>,
}

pub(super) fn template(source: &str) -> Result<Parsed, UriTemplateError> {
    if source.len() > UriTemplate::MAX_LENGTH {
        return Err(UriTemplateError::TooLong {
            length: source.len(),
        });
    }
    let mut parser = Parser::default();
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
struct Parser {
    runs: Vec<Run>,
    names: Vec<String>,
    known: BTreeSet<String>,
    expressions: usize,
    variables: usize,
    ambiguity: Option<UriTemplateError>,
}

impl Parser {
    /// Reads a literal and returns its length.
    fn literal(&mut self, rest: &str, at: usize) -> Result<usize, UriTemplateError> {
        let text = &rest[..rest.find('{').unwrap_or(rest.len())];
        for (index, character) in text.char_indices() {
            check_literal(character, &text.as_bytes()[index..], at + index)?;
        }
        let mut run = Run::default();
        percent::encode(text, Keep::Reserved, &mut run.literal);
        self.runs.push(run);
        Ok(text.len())
    }

    /// Reads the expression whose brace opens at `at` and returns its length.
    fn expression(&mut self, inside: &str, at: usize) -> Result<usize, UriTemplateError> {
        self.expressions += 1;
        if self.expressions > UriTemplate::MAX_EXPRESSIONS {
            return Err(UriTemplateError::TooManyExpressions { at });
        }
        let end = inside.find('}').ok_or(UriTemplateError::Unclosed { at })?;
        let inside = &inside[..end];
        let operator = operator(inside, at + 1)?;
        let mut expression = Expression {
            operator,
            variables: Vec::new(),
        };
        let mut start = operator_length(operator);
        for specifier in inside[start..].split(',') {
            let variable = self.variable(specifier, at + 1 + start)?;
            self.note_second_list(&expression, &variable, at + 1 + start);
            expression.variables.push(variable);
            start += specifier.len() + 1;
        }
        self.push(expression, at);
        Ok(end + 2)
    }

    fn variable(&mut self, specifier: &str, at: usize) -> Result<Variable, UriTemplateError> {
        self.variables += 1;
        if self.variables > UriTemplate::MAX_VARIABLES {
            return Err(UriTemplateError::TooManyVariables { at });
        }
        let (name, modifier) = if let Some(name) = specifier.strip_suffix('*') {
            (name, Modifier::Explode)
        } else if let Some((name, length)) = specifier.split_once(':') {
            (name, prefix(length, at + name.len() + 1)?)
        } else {
            (specifier, Modifier::Whole)
        };
        if !is_name(name) {
            let name = name.to_owned();
            return Err(UriTemplateError::Name { name, at });
        }
        if self.known.insert(name.to_owned()) {
            self.names.push(name.to_owned());
        }
        Ok(Variable {
            name: name.to_owned(),
            modifier,
        })
    }

    fn push(&mut self, expression: Expression, at: usize) {
        if self.runs.is_empty() {
            self.runs.push(Run::default());
        }
        let run = self.runs.last_mut().expect("one was pushed above");
        run.expressions.push(expression);
        if let Some((first, second)) = adjacent(&run.expressions) {
            self.ambiguity.get_or_insert(clash(first, second, at));
        }
    }

    /// Notes two lists in one expression whose items would have the same separator.
    fn note_second_list(&mut self, expression: &Expression, second: &Variable, at: usize) {
        let first = expression.variables.iter().find(|one| one.is_exploded());
        if let Some(first) = first
            && second.is_exploded()
            && !expression.operator.is_named()
        {
            self.ambiguity.get_or_insert(clash(first, second, at));
        }
    }

    fn finish(self, source: &str) -> Parsed {
        Parsed {
            template: UriTemplate {
                source: source.to_owned(),
                runs: self.runs,
                names: self.names,
                matchable: self.ambiguity.is_none(),
            },
            ambiguity: self.ambiguity,
        }
    }
}

/// Returns two variables that cannot be told apart, if the last expression brought such a pair.
fn adjacent(expressions: &[Expression]) -> Option<(&Variable, &Variable)> {
    let (last, before) = expressions.split_last()?;
    for one in before.iter().rev() {
        if !is_told_from(one, last) {
            return Some((one.variables.last()?, last.variables.first()?));
        }
        // What must be there stands between the last expression and all that is further away.
        if !one.operator.is_named() {
            return None;
        }
    }
    None
}

/// Says whether the beginning of `second` shows where `first` ends.
fn is_told_from(first: &Expression, second: &Expression) -> bool {
    let Some(sigil) = second.operator.sigil() else {
        return false;
    };
    if first.operator.is_named() {
        return Some(sigil) != first.operator.sigil() && sigil != first.operator.separator();
    }
    let is_single = matches!(first.variables.as_slice(), [one] if !one.is_exploded());
    is_single || sigil != first.operator.separator()
}

fn clash(first: &Variable, second: &Variable, at: usize) -> UriTemplateError {
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

fn operator(inside: &str, at: usize) -> Result<Operator, UriTemplateError> {
    Ok(match inside.chars().next() {
        Some('+') => Operator::Reserved,
        Some('#') => Operator::Fragment,
        Some('.') => Operator::Label,
        Some('/') => Operator::Path,
        Some(';') => Operator::Parameter,
        Some('?') => Operator::Query,
        Some('&') => Operator::Continuation,
        Some(operator @ ('=' | ',' | '!' | '@' | '|')) => {
            return Err(UriTemplateError::Operator { operator, at });
        }
        _ => Operator::Simple,
    })
}

fn operator_length(operator: Operator) -> usize {
    usize::from(operator != Operator::Simple)
}

fn prefix(length: &str, at: usize) -> Result<Modifier, UriTemplateError> {
    let is_number = length.len() <= 4
        && length.bytes().all(|byte| byte.is_ascii_digit())
        && !length.starts_with('0');
    match length.parse() {
        Ok(number) if is_number => Ok(Modifier::Prefix(number)),
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
