//! Detection of values that are not secrets: placeholders, words, names, expressions.

/// Text that only occurs in placeholders.
const PLACEHOLDER_PARTS: &[&str] = &[
    "example",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "your-",
    "your_",
    "your ",
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

/// Words used in place of a password.
const PLACEHOLDER_WORDS: &[&str] = &[
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

/// Returns whether a value is a placeholder.
pub(super) fn is_placeholder(value: &str) -> bool {
    // A long key may contain such text by chance.
    if value.len() > 300 {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    PLACEHOLDER_WORDS.contains(&&*lower)
        || PLACEHOLDER_PARTS.iter().any(|part| lower.contains(part))
        || is_reference(value)
        || value.bytes().all(|byte| byte == value.as_bytes()[0])
}

/// Returns whether a value is a reference: `${NAME}`, `$NAME`, `{{ name }}`, `<name>`, `%s`, `#{name}`, a URL.
fn is_reference(value: &str) -> bool {
    let within = |open: &str, close: &str| value.starts_with(open) && value.ends_with(close);
    let holds = ["${", "$(", "{{", "#{", "%{", "<%", "$[", "@{", "secrets."];
    // A value with a digit may be a password that starts with a symbol.
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

/// Returns whether a value is a word, a name or a path without digits and symbols.
pub(super) fn is_word(value: &str) -> bool {
    let joins = |char: char| char.is_alphabetic() || "_-./:".contains(char);
    value.chars().all(joins) && is_pronounceable(value)
}

/// Returns whether a value consists of words with optional digits at their ends: `access_token_v2`, `os.environ`, `self.token`.
pub(super) fn is_name(value: &str) -> bool {
    let is_part = |part: &str| {
        let digits = part.trim_start_matches(|char: char| char.is_ascii_alphabetic());
        digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut parts = value.split(|char: char| char.is_ascii_punctuation());
    is_constant(value) || (parts.all(is_part) && is_pronounceable(value))
}

/// Returns whether a value is an identifier and does not look like a password (words and at least two digits: `octopus12`).
pub(super) fn is_identifier(value: &str) -> bool {
    const SIZES: &[&str] = &["16", "32", "64", "128", "224", "256", "384", "512", "1024"];
    let is_of_password = |char: char| char.is_alphanumeric() || "-!?+#".contains(char);
    let has_sign = value.contains(['!', '?', '+', '#']);
    let before_digits = value.trim_end_matches(|char: char| char.is_ascii_digit());
    let digits = &value[before_digits.len()..];
    let has_number = digits.len() >= 2 && !SIZES.contains(&digits);
    let has_letter = value.contains(char::is_alphabetic);
    let is_password = value.chars().all(is_of_password) && has_letter && (has_sign || has_number);
    is_name(value) && !is_password
}

/// Returns whether words are a sentence about a secret.
pub(super) fn is_sentence(value: &str) -> bool {
    const SENTENCE_WORDS: &[&str] = &[
        "a", "an", "and", "any", "are", "at", "be", "by", "can", "could", "empty", "enter", "for",
        "from", "has", "if", "in", "is", "it", "must", "no", "none", "not", "of", "optional", "or",
        "should", "that", "this", "to", "used", "when", "with", "you", "your",
    ];
    let lower = value.to_lowercase();
    lower
        .split([' ', '-'])
        .any(|word| SENTENCE_WORDS.contains(&word))
}

/// Returns whether the text before an `@` is a port with a path, or a path or query after a host.
pub(super) fn is_url_part(value: &str) -> bool {
    let after_digits = value.trim_start_matches(|char: char| char.is_ascii_digit());
    let is_port = (1..=5).contains(&(value.len() - after_digits.len()))
        && after_digits.starts_with(['/', '?', '#']);
    let host_before = value.split('@').skip(1).any(|part| {
        let host = part.split(['/', ':']).next().unwrap_or_default();
        host.len() < part.len()
            && host.contains('.')
            && !host.contains(|char: char| !is_host_char(char))
    });
    let query = value
        .split_once('?')
        .is_some_and(|(_, query)| query.contains('='));
    is_port || host_before || query || value.contains("://")
}

fn is_host_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '.' || char == '-'
}

/// Returns whether a value has the form of a constant: `D3D_TOKEN_V2`.
fn is_constant(value: &str) -> bool {
    let is_of_one = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let words = value
        .split('_')
        .filter(|part| part.len() > 2 && is_word(part));
    words.count() > 0 && value.contains('_') && value.bytes().all(is_of_one)
}

/// Returns whether the words of a name are long enough and at least half of them have vowels, unlike random text.
fn is_pronounceable(value: &str) -> bool {
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
    fn placeholders_are_recognized() {
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
    fn passwords_are_distinguished_from_identifiers() {
        for value in [
            "render_pass2",
            "sha256",
            "attempt2",
            "2024-11-03",
            "int32",
            "a.b12",
        ] {
            assert!(is_identifier(value), "{value}");
        }
        for value in ["octopus12", "Winter2024!", "mango-tango-51", "a8f3k2l9"] {
            assert!(!is_identifier(value), "{value}");
        }
    }

    #[test]
    fn names_are_recognized() {
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
