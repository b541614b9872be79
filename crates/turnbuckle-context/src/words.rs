//! Words as they are looked for: the names of code taken apart, and any text at all made a question that FTS5 understands.
//!
//! FTS5 parts `snake_case` and `a::b` by itself and leaves `camelCase` whole. What it leaves whole is indexed a second
//! time, in parts (`identifier_parts`), and is asked for both ways (`fts_query`). The writing systems that put no
//! space between words are indexed and asked for in pairs of signs.

mod name;
mod scan;
mod split;
mod stop;
mod terms;

use std::collections::HashSet;

pub use name::NameToken;
pub use split::split_identifier;
pub use stop::is_stop_word;

/// A question of more terms would cost more time and find nothing else: those that tell most are asked for.
const MAX_TERMS: usize = 24;

/// Makes any text a question to FTS5 that is never a syntax error: an OR of quoted terms.
///
/// A name is asked for as a whole (a phrase, if FTS5 parts it), and by each of its parts; so is what stands in double
/// quotes or backticks. Stop words and single letters are left out unless nothing else is there. Of a long text
/// the 24 terms are taken that tell most: phrases first, then long words and mixed ones; numbers and hashes come last.
///
/// Returns `None` for a text without any word.
pub fn fts_query(text: &str) -> Option<String> {
    let quoted: Vec<String> = significant_terms(text)
        .iter()
        .map(|term| format!("\"{term}\""))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// Lists the terms that [`fts_query`] asks for, each of one word or more, in lower case and without quotes.
pub fn significant_terms(text: &str) -> Vec<String> {
    terms::most_significant(terms::terms(text), MAX_TERMS)
}

/// Lists the parts of all names in a text that FTS5 would not part itself, in lower case, to be indexed beside it.
///
/// ```
/// # use turnbuckle_context::words::identifier_parts;
/// assert_eq!(identifier_parts("fn open_file(p: HTTPServer)"), "http server");
/// ```
pub fn identifier_parts(text: &str) -> String {
    let mut parts = String::with_capacity(text.len() / 4);
    for piece in scan::pieces(text) {
        for part in scan::parts(piece) {
            if !parts.is_empty() {
                parts.push(' ');
            }
            parts.push_str(&part);
        }
    }
    parts
}

/// Lists the words of a text in lower case, names also in parts, each once, without stop words.
pub fn plain_words(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    scan::pieces(text)
        .flat_map(|piece| {
            let whole = piece.to_lowercase();
            std::iter::once(whole).chain(scan::parts(piece))
        })
        .filter(|word| !is_stop_word(word) && !scan::is_short(word))
        .filter(|word| seen.insert(word.clone()))
        .collect()
}

/// Lists the names in a text: what looks like an identifier, a path through modules, or a path of a file.
pub fn name_tokens(text: &str) -> impl Iterator<Item = NameToken<'_>> {
    name::names(text)
}

#[cfg(test)]
mod tests;
