//! The variables of a URI template (RFC 6570), as far as a function's parameters have to match them.
//!
//! Whether the template is a good one in every other respect, the library says when the server is put together.

use syn::{Error, LitStr, Result};

/// A variable of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Stands in `{?a}`, `{&a}` or `{;a}`, so a URI may come without it.
    pub(crate) may_be_missing: bool,
}

/// Returns the variables, each once; there are none if the URI is fixed.
pub(crate) fn variables(uri: &LitStr) -> Result<Vec<Variable>> {
    let text = uri.value();
    let mut variables: Vec<Variable> = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else {
            return Err(Error::new(uri.span(), "a `{` of this URI has no `}`"));
        };
        for variable in expression(inside) {
            if variable.name.is_empty() {
                let message = format!("`{{{inside}}}` names no variable");
                return Err(Error::new(uri.span(), message));
            }
            if !variables.iter().any(|known| known.name == variable.name) {
                variables.push(variable);
            }
        }
        rest = after;
    }
    Ok(variables)
}

fn expression(inside: &str) -> impl Iterator<Item = Variable> {
    let operator = inside
        .chars()
        .next()
        .filter(|first| "+#./;?&".contains(*first));
    let names = &inside[operator.map_or(0, char::len_utf8)..];
    let may_be_missing = operator.is_some_and(|operator| ";?&".contains(operator));
    names.split(',').map(move |name| {
        let name = name.trim_end_matches('*');
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        Variable {
            name: name.to_owned(),
            may_be_missing,
        }
    })
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;

    use super::*;

    fn found(uri: &str) -> Vec<(String, bool)> {
        variables(&LitStr::new(uri, Span::call_site()))
            .unwrap()
            .into_iter()
            .map(|variable| (variable.name, variable.may_be_missing))
            .collect()
    }

    fn expected(variables: &[(&str, bool)]) -> Vec<(String, bool)> {
        variables
            .iter()
            .map(|(name, missing)| ((*name).to_owned(), *missing))
            .collect()
    }

    #[test]
    fn a_fixed_uri_has_none() {
        assert_eq!(found("notes://all"), []);
    }

    #[test]
    fn operators_and_modifiers_are_no_part_of_a_name() {
        assert_eq!(
            found("a://{x}/{+y}{/z*}{#w:3}"),
            expected(&[("x", false), ("y", false), ("z", false), ("w", false)])
        );
    }

    #[test]
    fn named_variables_may_be_missing() {
        assert_eq!(
            found("a://b{?x,y}{&z}"),
            expected(&[("x", true), ("y", true), ("z", true)])
        );
    }

    #[test]
    fn the_same_name_counts_once() {
        assert_eq!(found("a://{x}/{x}"), expected(&[("x", false)]));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for uri in ["a://{x", "a://{}", "a://{?}", "a://{x,}"] {
            let uri = LitStr::new(uri, Span::call_site());
            assert!(variables(&uri).is_err(), "{}", uri.value());
        }
    }
}
