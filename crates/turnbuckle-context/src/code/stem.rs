//! Words without their endings, to compare those of a path with those of a question.

/// Cuts the endings of English that code and questions differ in: `routes`, `routing` and `route` are `rout`.
///
/// Simpler than what FTS5 does in the index, which cannot be asked for a stem.
pub(crate) fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.ends_with("ss") {
        return word;
    }
    let endings = [
        "ings", "ing", "ers", "er", "ors", "or", "ies", "es", "ed", "s",
    ];
    let stem = strip_any_suffix(&endings, word).map_or(word, strip_doubled_consonant);
    strip_any_suffix(&["e", "y"], stem).unwrap_or(stem)
}

/// The word without the first of these endings that leaves enough of it.
fn strip_any_suffix<'a>(endings: &[&str], word: &'a str) -> Option<&'a str> {
    let mut stems = endings
        .iter()
        .filter_map(|ending| word.strip_suffix(*ending));
    stems.find(|stem| stem.len() >= 3)
}

/// `mapp` of `mapping` is `map`.
fn strip_doubled_consonant(stem: &str) -> &str {
    match stem.as_bytes() {
        [.., _, one, other] if one == other && !b"aeiouls".contains(one) => &stem[..stem.len() - 1],
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["route", "routes", "routing", "router", "routers", "routed"][..],
            &["map", "maps", "mapping", "mapper", "mapped"],
            &["extract", "extractor", "extractors", "extracting"],
            &["query", "queries", "querying"],
            &["user", "users"],
            &["parse", "parser", "parsing"],
            &["middleware", "middlewares"],
        ] {
            let stems: Vec<&str> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn short_words_keep_their_ends() {
        for word in ["is", "bed", "yes", "ring", "class", "größe", ""] {
            assert_eq!(stem(word), word);
        }
    }
}
