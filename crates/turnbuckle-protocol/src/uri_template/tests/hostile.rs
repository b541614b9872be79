//! The cost of matching is proportional to the length of the URI.

use proptest::prelude::*;

use super::*;

const TEMPLATES: [&str; 15] = [
    "{/a}{/b}/{c,d}/x{?tags}",
    "{/id*}",
    "{?tags*}",
    "{;tags*}",
    "{.id*}",
    "{a}",
    "{a*}",
    "{+a}",
    "{+a}/x/{b}",
    "{a}a{b}a{c}a{d}a",
    "{+a}aaaaaaab{+b}aaaaaaab{+c}aaaaaaab",
    "{/a,b*,c}{?d*,e}{#f}",
    "{+a,b,c,d,e,f}",
    "{/id*}{;m*}{?tags*}{#h}",
    "{/a:1,a:9,a}",
];

const PIECES: [&str; 16] = [
    "/", "/a", "/a,a", ",a", ",", "a", "aa,", "?", "&tags=a", "&tags=", "&", ";tags=a", ".a",
    "%41", "%", "é",
];

fn steps(template: &UriTemplate, uri: &str) -> usize {
    super::super::matching::variables(&template.segments, uri).1
}

/// A URI that repeats one piece, after the prefix that each operator needs.
fn hostile(start: &str, piece: &str, length: usize) -> String {
    let mut uri = start.to_owned() + &piece.repeat(length / piece.len());
    uri.push('!');
    uri
}

/// Templates with URIs that match them for any number of repetitions of the last piece.
const ATTACKS: [(&str, &str, &str); 7] = [
    ("{/id*}", "/a", "/a"),
    ("{/id*}", "/a", ",a"),
    ("{?tags*}", "?tags=a", "&tags=a"),
    ("{?tags*}", "?tags=a", ",a"),
    ("{a*}", "a", ",a"),
    ("{+a}", "a", "a"),
    ("{+a}aab{+b}", "aaab", "a"),
];

#[test]
fn a_megabyte_is_read_a_few_times_at_most() {
    for (source, start, piece) in ATTACKS {
        let uri = hostile(start, piece, 1_000_000);

        let taken = steps(&template(source), &uri);

        assert!(
            (uri.len()..=8 * uri.len()).contains(&taken),
            "{source} with {piece}: {taken}"
        );
    }
}

#[test]
fn twice_the_length_takes_twice_the_steps() {
    for (source, start, piece) in ATTACKS {
        let template = template(source);
        let [short, long] = [100_000, 200_000].map(|length| hostile(start, piece, length));
        assert!(template.matches(&long).is_some(), "{source} with {piece}");

        let [once, twice] = [&short, &long].map(|uri| steps(&template, uri));

        assert!(
            twice <= 2 * once + 64,
            "{source} with {piece}: {once}, {twice}"
        );
    }
}

#[test]
fn matching_is_linear_for_all_templates_and_repetitions() {
    for source in TEMPLATES {
        let template = template(source);
        for piece in PIECES {
            for start in ["", "/a", "?tags=a", ";tags=a", ".a"] {
                let uri = hostile(start, piece, 10_000);
                let taken = steps(&template, &uri);
                assert!(
                    taken <= 8 * uri.len(),
                    "{source} with {start}{piece}…: {taken}"
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_every_match_is_cheap(
        source in "([{][+#./;?&]?[ab]([*]|:2)?(,[ab][*]?)?[}]|[a/?&=.é-]){0,8}",
        uri in "([ab]|[/?#&=;.,+-]|%|%41|é){0,40}",
    ) {
        let template = UriTemplate::parse_for_expansion(&source).unwrap();

        let taken = steps(&template, &uri);

        prop_assert!(taken <= 8 * uri.len() + source.len() * 4 + 64, "{taken}");
    }

    #[test]
    fn any_text_is_parsed_or_rejected(source in "[{}a-c+#./;?&*:,0-9%é]{0,40}") {
        if let Ok(template) = UriTemplate::parse(&source) {
            prop_assert_eq!(template.as_str(), source);
            template.matches("a/b?c=1");
        }
    }
}
