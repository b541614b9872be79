//! Expanded variables are matched again.

use proptest::{collection::vec, option, prelude::*};

use super::*;

/// A path of pieces that may be adjacent, then a query and a fragment.
fn sources() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/{N}"),
        Just("{/N}"),
        Just("/fixed-{N}"),
        Just("{/N,N_b}/end"),
        Just("/{N,N_b}"),
        Just("/{N}{;N_m}"),
        Just("/fixed"),
        Just("/{N:4}/{N}"),
    ];
    let ends = (
        prop_oneof![Just(""), Just("{?q,r}"), Just("{?q}"), Just("?k=v{&q,r}")],
        prop_oneof![Just(""), Just("{#h}")],
    );
    (vec(piece, 0..5), ends).prop_map(|(pieces, (query, fragment))| {
        let pieces = pieces.iter().enumerate();
        let path: String = pieces
            .map(|(index, piece)| piece.replace('N', &format!("v{index}")))
            .collect();
        format!("scheme://host{path}{query}{fragment}")
    })
}

proptest! {
    #[test]
    fn texts_come_back(source in sources(), values in vec("\\PC{1,12}|[a/?#&,;=%.]{1,6}", 16)) {
        let template = UriTemplate::parse(&source).unwrap();
        let names = template.variables().map(str::to_owned);
        let expected: BTreeMap<_, _> = names
            .zip(values)
            .map(|(name, value)| match name.as_str() {
                // A fragment preserves escapes in its value.
                "h" => (name, value.replace('%', "_")),
                _ => (name, value),
            })
            .collect();
        let variables = expected.clone().into_iter().collect();

        let uri = template.expand(&variables);

        prop_assert_eq!(template.matches(&uri), Some(expected), "{}", uri);
    }

    #[test]
    fn missing_and_empty_named_values_come_back(a in option::of("\\PC{0,6}"), b in option::of("[/;&?#=]{0,3}")) {
        let pairs = [("a", a), ("b", b)];
        let expected: BTreeMap<_, _> = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        let variables = expected.clone().into_iter().collect();

        for source in ["x:y{?a,b}", "x:y{;a,b}", "x:y{&a,b}", "x:y{;a}{?b}", "x:y{?a,b}#z", "x:y{;a,b}/z"] {
            let template = template(source);
            let uri = template.expand(&variables);
            prop_assert_eq!(template.matches(&uri), Some(expected.clone()), "{} gave {}", source, uri);
        }
    }

    #[test]
    fn reserved_text_is_matched_up_to_the_end(path in "[a-z/.,?#&;é ]{1,20}") {
        for source in ["f:{+path}", "f:{+path}.txt", "f:/{+path}/raw", "{#path}"] {
            let template = template(source);
            let uri = template.expand(&TemplateVariables::from([("path", path.as_str())]));
            let found = template.matches(&uri).unwrap();
            prop_assert_eq!(&found["path"], &path, "{} gave {}", source, uri);
        }
    }

    #[test]
    fn lists_come_back_joined(items in vec("[a-z/.é ]{1,5}", 1..6)) {
        for source in ["{/a*}", "{a*}", "{?a*}", "{;a*}", "{+a*}", "{?a}"] {
            let template = template(source);
            let variables = TemplateVariables::from([("a", items.clone())]);
            let found = template.matches(&template.expand(&variables)).unwrap();
            prop_assert_eq!(&found["a"], &items.join(","), "{}", source);
        }
    }
}
