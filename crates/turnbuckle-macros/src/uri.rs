//! The variables of a URI template (RFC 6570), to compare them with the parameters of a function.
//!
//! The library validates the rest of the template when the server is built.

use syn::{Error, LitStr, Result};

/// A variable of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UriVariable {
    pub(crate) name: String,
    /// Set for `{?a}`, `{&a}` and `{;a}`, which a URI may omit.
    pub(crate) is_optional: bool,
}

/// Returns the variables without duplicates; empty if the URI is not a template.
pub(crate) fn variables(uri: &LitStr) -> Result<Vec<UriVariable>> {
    let text = uri.value();
    let mut variables: Vec<UriVariable> = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else {
            return Err(Error::new(uri.span(), "a `{` in this URI is not closed"));
        };
        for variable in expression(inside) {
            if variable.name.is_empty() {
                let message = format!("`{{{inside}}}` does not contain a variable name");
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

fn expression(inside: &str) -> impl Iterator<Item = UriVariable> {
    let operator = inside
        .chars()
        .next()
        .filter(|first| "+#./;?&".contains(*first));
    let names = &inside[operator.map_or(0, char::len_utf8)..];
    let is_optional = operator.is_some_and(|operator| ";?&".contains(operator));
    names.split(',').map(move |name| {
        let name = name.trim_end_matches('*');
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        UriVariable {
            name: name.to_owned(),
            is_optional,
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
            .map(|variable| (variable.name, variable.is_optional))
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
