//! Quoting for POSIX shells.

use std::borrow::Cow;

/// Returns a word so that a shell reads it as one argument.
///
/// Words of letters, digits and `-_./:=@%+,` stay as they are.
pub fn quote(word: &str) -> Cow<'_, str> {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        for (word, quoted) in [
            ("npx", "npx"),
            ("--port=80", "--port=80"),
            ("/opt/my tools/a", "'/opt/my tools/a'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("$HOME;`ls`", "'$HOME;`ls`'"),
            ("ä", "'ä'"),
            ("{url}", "'{url}'"),
        ] {
            assert_eq!(quote(word), quoted, "{word}");
        }
    }
}
