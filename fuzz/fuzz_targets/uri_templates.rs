//! Any template is parsed or rejected, any URI matches or does not, and an expanded value is matched again.
//!
//! The first line is a template, the second a URI, every further one a value.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::uri_template::{TemplateVariables, UriTemplate};

/// The length of the URI that bounds the matching time.
const LONG: usize = 64 * 1024;

fuzz_target!(|input: &str| {
    let mut lines = input.lines();
    let (source, uri) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    let values: Vec<_> = lines.collect();

    if let Ok(template) = UriTemplate::parse_for_expansion(source) {
        let _ = expand(&template, &values);
    }
    let Ok(template) = UriTemplate::parse(source) else {
        return;
    };
    let expanded = expand(&template, &values);
    for uri in [uri, &expanded] {
        if let Some(found) = template.matches(uri) {
            let names: Vec<_> = template.variables().collect();
            assert!(found.keys().all(|name| names.contains(&&**name)));
        }
    }
    let _ = template.matches(&stretched(uri));
    assert_round_trip(&template);
});

/// Expands with texts and lists, which must give valid URI characters.
fn expand(template: &UriTemplate, values: &[&str]) -> String {
    let mut values = values.iter();
    let mut variables = TemplateVariables::new();
    for name in template.variables() {
        match values.next() {
            Some(value) if value.contains('|') => {
                let items: Vec<_> = value.split('|').map(str::to_owned).collect();
                variables.insert(name, items);
            }
            Some(value) => {
                variables.insert(name, *value);
            }
            None => {}
        }
    }
    let uri = template.expand(&variables);
    assert!(uri.bytes().all(|byte| byte.is_ascii_graphic()), "{uri:?}");
    uri
}

/// A URI with its middle repeated many times.
fn stretched(uri: &str) -> String {
    let middle = uri.get(uri.len() / 3..uri.len() / 3 * 2).unwrap_or(uri);
    let times = LONG / middle.len().max(1);
    uri.replacen(middle, &middle.repeat(times), 1)
}

/// A value of a character that the template lacks always matches its variable.
fn assert_round_trip(template: &UriTemplate) {
    let source = template.as_str();
    let free = ('a'..='z').find(|letter| !source.contains(*letter));
    let Some(value) = free.map(String::from).filter(|_| !has_name_twice(template)) else {
        return;
    };
    // A variable ends where the mark of the next expression first occurs, even in a name: `{?a,b.c}{.d}`.
    if template.variables().any(|name| name.contains('.')) {
        return;
    }
    let expected: BTreeMap<_, _> = template
        .variables()
        .map(|name| (name.to_owned(), value.clone()))
        .collect();
    let uri = template.expand(&expected.clone().into_iter().collect());
    // A variable ends where the literal behind it first occurs, even if another variable brought it: `{?a,b}&`.
    let mut literals = source.split('}').filter_map(|rest| rest.split('{').next());
    if literals.any(|literal| !literal.is_empty() && uri.matches(literal).count() != 1) {
        return;
    }
    assert_eq!(template.matches(&uri), Some(expected), "{uri}");
}

fn has_name_twice(template: &UriTemplate) -> bool {
    let expressions = template.as_str().split('{').skip(1);
    let variables =
        expressions.flat_map(|rest| rest.split('}').next().unwrap_or_default().split(','));
    variables.count() != template.variables().count()
}
