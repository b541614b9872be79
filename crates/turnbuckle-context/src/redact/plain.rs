//! What stands where a secret would and is none: placeholders, words, names, expressions.

/// Parts that only occur in what shall be replaced by the reader.
const TELLING: &[&str] = &[
    "example",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "your-",
    "your_",
    "yourpass",
    "yourtoken",
    "yoursecret",
    "yourkey",
    "dummy",
    "redacted",
    "replace",
    "insert",
    "xxxxx",
    "*****",
    ".....",
    "•••",
    "…",
    "0123456789",
    "abcdefghij",
    "sample",
    "not-a-",
    "not_a_",
];

/// What says "a password belongs here".
const WORDS: &[&str] = &[
    "pass",
    "passwd",
    "password",
    "pw",
    "pwd",
    "secret",
    "token",
    "user",
    "username",
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "string",
    "xxx",
    "xxxx",
    "***",
    "****",
    "...",
    "test",
];

/// Says whether the reader is meant to put something else here.
pub(super) fn is_placeholder(value: &str) -> bool {
    // A key in a block is none, whatever stands in it by chance.
    if value.len() > 300 {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    WORDS.contains(&&*lower)
        || TELLING.iter().any(|part| lower.contains(part))
        || is_reference(value)
        || value.bytes().all(|byte| byte == value.as_bytes()[0])
}

/// Says whether a value is taken from elsewhere: `${NAME}`, `$NAME`, `{{ name }}`, `<name>`, `%s`, `#{name}`, an address.
fn is_reference(value: &str) -> bool {
    let within = |open: &str, close: &str| value.starts_with(open) && value.ends_with(close);
    let holds = ["${", "$(", "{{", "#{", "%{", "<%", "$[", "@{", "secrets."];
    // One with a digit may be a password that begins with a sign.
    let is_variable = |name: &str| {
        let is_of_one = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_of_one)
    };
    let begins = ["arn:", "urn:", "http://", "https://", "file://"];
    holds.iter().any(|open| value.contains(open))
        || begins.iter().any(|begin| value.starts_with(begin))
        || within("<", ">")
        || within("{", "}")
        || within("[", "]")
        || within("%", "%")
        || value.strip_prefix(['$', ':', '@']).is_some_and(is_variable)
        || matches!(value, "%s" | "%v" | "%q" | "%@" | "%d" | "?" | "{}")
}

/// Says whether a value is a word, a name or a path without digits and signs.
pub(super) fn is_word(value: &str) -> bool {
    let joins = |char: char| char.is_alphabetic() || "_-./:".contains(char);
    value.chars().all(joins) && can_be_spoken(value)
}

/// Says whether a value consists of words with digits at their ends: `access_token_v2`, `os.environ`, `self.token`.
pub(super) fn is_name(value: &str) -> bool {
    let is_part = |part: &str| {
        let digits = part.trim_start_matches(|char: char| char.is_ascii_alphabetic());
        digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = value.split(|char: char| char.is_ascii_punctuation());
    is_constant(value) || (parts.all(is_part) && can_be_spoken(value))
}

/// Says whether a value is written as constants are: `D3D_TOKEN_V2`.
fn is_constant(value: &str) -> bool {
    let is_of_one = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let words = value
        .split('_')
        .filter(|part| part.len() > 2 && is_word(part));
    words.count() > 0 && value.contains('_') && value.bytes().all(is_of_one)
}

/// Says whether the words of a name are not too short, and half of them have vowels: chance is rarely so kind.
fn can_be_spoken(value: &str) -> bool {
    let is_vowel = |char: char| "aeiouyAEIOUY".contains(char) || !char.is_ascii();
    let (mut words, mut mute, mut vowels, mut before) = (0, 0, 1, ' ');
    for char in value.chars().chain([' ']) {
        let begins = !char.is_alphabetic() || (char.is_uppercase() && !before.is_uppercase());
        if begins && before.is_lowercase() {
            words += 1;
            mute += usize::from(vowels == 0);
        }
        vowels = if begins { 0 } else { vowels };
        vowels += usize::from(is_vowel(char));
        before = char;
    }
    let letters = value.chars().filter(|char| char.is_alphabetic()).count();
    (mute < 2 || mute * 2 <= words) && (words < 3 || letters * 2 >= words * 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_known() {
        for value in [
            "changeme",
            "${TOKEN}",
            "$TOKEN",
            "<token>",
            "{{ token }}",
            "xxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "%s",
            "********",
        ] {
            assert!(is_placeholder(value), "{value}");
        }
        for value in ["hunter2", "$ecr3t!", "$ecret2", "@hunter2", "a8f3k2l9"] {
            assert!(!is_placeholder(value), "{value}");
        }
    }

    #[test]
    fn names_are_known() {
        for value in [
            "parser.next_token",
            "access_token_v2",
            "sha256",
            "os.environ",
            "/etc/secret/key1",
            "D3D_TOKEN_V2",
        ] {
            assert!(is_name(value), "{value}");
        }
        for value in [
            "a8f3k2l9x0q7",
            "9f86d081884c7d65",
            "NlnOxeHzFRHr",
            "xeHzFRHrUbBS",
        ] {
            assert!(!is_name(value), "{value}");
        }
    }
}
