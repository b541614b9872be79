//! The stemmer of Porter, "An algorithm for suffix stripping" (1980), with the changes of FTS5: the second step has the suffixes
//! `bli` and `logi`, a suffix is never the whole word, and words of other lengths than 3 to 64 bytes stay.
//!
//! It works on bytes, as FTS5 does: a byte that is not an ASCII vowel is a consonant.

/// A rule: a suffix and what replaces it if its condition holds. Of the rules of a step, the first one with a matching suffix
/// counts.
type Rule = (&'static str, &'static str);

const STEP_2: &[Rule] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const STEP_3: &[Rule] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const STEP_4: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// Replaces a word by its stem, which may end within a character.
pub(super) fn stem(word: &mut Vec<u8>) {
    if !(3..=64).contains(&word.len()) {
        return;
    }
    step_1a(word);
    step_1b(word);
    if word.ends_with(b"y") && has_vowel(before(word, "y")) {
        replace_end(word, "y", "i");
    }
    for rules in [STEP_2, STEP_3] {
        if let Some((suffix, replacement)) = matching(word, rules.iter().copied())
            && measure(before(word, suffix)) > 0
        {
            replace_end(word, suffix, replacement);
        }
    }
    step_4(word);
    step_5(word);
}

fn step_1a(word: &mut Vec<u8>) {
    if has_suffix(word, "sses") || has_suffix(word, "ies") {
        replace_end(word, "es", "");
    } else if word.ends_with(b"s") && !word.ends_with(b"ss") {
        word.pop();
    }
}

fn step_1b(word: &mut Vec<u8>) {
    if has_suffix(word, "eed") {
        if measure(before(word, "eed")) > 0 {
            word.pop();
        }
        return;
    }
    let rules = ["ed", "ing"].map(|suffix| (suffix, ""));
    let Some((suffix, _)) = matching(word, rules) else {
        return;
    };
    if !has_vowel(before(word, suffix)) {
        return;
    }
    replace_end(word, suffix, "");
    if ["at", "bl", "iz"].iter().any(|end| has_suffix(word, end)) {
        word.push(b'e');
    } else if let [.., one, other] = word[..]
        && one == other
        && !b"aeioulsz".contains(&other)
    {
        word.pop();
    } else if measure(word) == 1 && ends_like_hop(word) {
        word.push(b'e');
    }
}

fn step_4(word: &mut Vec<u8>) {
    let rules = STEP_4.iter().map(|suffix| (*suffix, ""));
    let Some((suffix, _)) = matching(word, rules) else {
        return;
    };
    let stem = before(word, suffix);
    let fits = suffix != "ion" || matches!(stem.last(), Some(b's' | b't'));
    if fits && measure(stem) > 1 {
        replace_end(word, suffix, "");
    }
}

fn step_5(word: &mut Vec<u8>) {
    if word.ends_with(b"e") {
        let stem = before(word, "e");
        let measure = measure(stem);
        if measure > 1 || measure == 1 && !ends_like_hop(stem) {
            word.pop();
        }
    }
    if word.ends_with(b"ll") && measure(before(word, "l")) > 1 {
        word.pop();
    }
}

/// Returns the first rule with a suffix that the word has.
fn matching(word: &[u8], rules: impl IntoIterator<Item = Rule>) -> Option<Rule> {
    let mut rules = rules.into_iter();
    rules.find(|(suffix, _)| has_suffix(word, suffix))
}

/// Returns whether a word ends with a suffix and is longer.
fn has_suffix(word: &[u8], suffix: &str) -> bool {
    word.len() > suffix.len() && word.ends_with(suffix.as_bytes())
}

/// Returns a word without its suffix.
fn before<'w>(word: &'w [u8], suffix: &str) -> &'w [u8] {
    &word[..word.len() - suffix.len()]
}

fn replace_end(word: &mut Vec<u8>, suffix: &str, replacement: &str) {
    word.truncate(word.len() - suffix.len());
    word.extend_from_slice(replacement.as_bytes());
}

/// Returns for each letter whether it is a consonant. A `y` is one at the start and after a vowel.
fn consonants(word: &[u8]) -> impl Iterator<Item = bool> {
    word.iter().scan(false, |was_consonant, letter| {
        *was_consonant = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => !*was_consonant,
            _ => true,
        };
        Some(*was_consonant)
    })
}

/// Returns how often a consonant follows a vowel, the `m` of the paper.
fn measure(stem: &[u8]) -> usize {
    let mut was_vowel = false;
    let follows = |is_consonant: &bool| std::mem::replace(&mut was_vowel, !is_consonant);
    consonants(stem)
        .filter(follows)
        .filter(|is_consonant| *is_consonant)
        .count()
}

/// Returns whether a stem has a vowel, the `*v*` of the paper. A `y` is one except at the start.
fn has_vowel(stem: &[u8]) -> bool {
    let is_vowel =
        |(at, letter): (usize, &u8)| b"aeiou".contains(letter) || at > 0 && *letter == b'y';
    stem.iter().enumerate().any(is_vowel)
}

/// Returns whether a stem ends with consonant, vowel, consonant, and the last is not `w`, `x` or `y`: the `*o` of the paper.
fn ends_like_hop(stem: &[u8]) -> bool {
    let kinds: Vec<bool> = consonants(stem).collect();
    kinds.ends_with(&[true, false, true]) && !matches!(stem.last(), Some(b'w' | b'x' | b'y'))
}
