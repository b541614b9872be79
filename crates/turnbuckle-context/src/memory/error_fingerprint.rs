//! Fingerprints of errors, independent of line numbers, addresses and paths.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use crate::{owner::short_hash, text::byte_prefix};

/// Maximum number of lines with a hash; further lines add little information.
const MAX_LINES: usize = 12;
/// Minimum number of words in a line; shorter lines occur in many different errors.
const MIN_WORDS: usize = 3;
/// Maximum number of bytes of a message that are used.
const MAX_BYTES: usize = 16 * 1024;
/// Maximum number of entries per kind.
const MAX_PER_KIND: usize = 16;

/// The identifying parts of an error message.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ErrorFingerprint {
    /// Locations as `file:line`, without folders.
    pub locations: Vec<String>,
    /// Codes such as `E0308`, `TS2345`, `ECONNREFUSED`, `HTTP 404`.
    pub codes: Vec<String>,
    /// Names of exceptions such as `ValueError` or `NullPointerException`.
    pub exceptions: Vec<String>,
}

/// Extracts the identifying parts of an error message.
pub fn error_fingerprint(error: &str) -> ErrorFingerprint {
    let error = used_prefix(error);
    let location = |found: regex::Captures<'_>| format!("{}:{}", &found[1], &found[2]);
    let locations = [&LOCATION, &PYTHON_LOCATION, &BRACKET_LOCATION]
        .into_iter()
        .flat_map(|regex| regex.captures_iter(error).map(location));
    let http = HTTP
        .captures_iter(error)
        .map(|found| format!("HTTP {}", &found[1]));
    let codes = CODE.find_iter(error).map(|found| found.as_str().to_owned());
    let codes = codes.filter(|code| !NOT_CODES.contains(&code.as_str()));
    let exceptions = EXCEPTION
        .find_iter(error)
        .map(|found| found.as_str().to_owned());
    ErrorFingerprint {
        locations: dedup(locations),
        codes: dedup(codes.chain(http)),
        exceptions: dedup(exceptions),
    }
}

/// Returns the words of an error, with `#` for numbers, addresses and times.
pub(super) fn normalized_words(error: &str) -> Vec<String> {
    let text = PATH.replace_all(used_prefix(error), "$1");
    let text = VARIABLE.replace_all(&text, " # ");
    text.to_lowercase()
        .split(|sign: char| !sign.is_alphanumeric() && sign != '#' && sign != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns hashes of the whole error and of each line with enough words. Equal errors have equal hashes even if their numbers
/// differ.
pub(super) fn fingerprint_hashes(error: &str) -> Vec<String> {
    let whole = std::iter::once(used_prefix(error));
    let lines = used_prefix(error).lines().take(MAX_LINES * 4);
    let words = whole.chain(lines).map(normalized_words);
    let telling =
        |words: &Vec<String>| words.iter().filter(|word| *word != "#").count() >= MIN_WORDS;
    let prints = words.filter(telling).map(|words| {
        let parts: Vec<&str> = words.iter().map(String::as_str).collect();
        format!("print{}", short_hash(&parts))
    });
    let mut seen = HashSet::new();
    prints
        .filter(|print| seen.insert(print.clone()))
        .take(MAX_LINES)
        .collect()
}

fn used_prefix(error: &str) -> &str {
    byte_prefix(error, MAX_BYTES)
}

fn dedup(found: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    found
        .filter(|one| seen.insert(one.clone()))
        .take(MAX_PER_KIND)
        .collect()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is right, as the tests show")
}

/// `src/lib.rs:12`
static LOCATION: LazyLock<Regex> = LazyLock::new(|| regex(r"([\w.-]+\.[A-Za-z]\w{0,5}):(\d{1,7})"));
/// `File "app/main.py", line 12`
static PYTHON_LOCATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"([\w.-]+\.\w{1,6})", line (\d{1,7})"#));
/// `main.ts(12,5)`
static BRACKET_LOCATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"([\w.-]+\.[A-Za-z]\w{0,5})\((\d{1,7})[,:)]"));
/// Error codes of compilers, databases and operating systems.
static CODE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:[A-Z]{1,6}-?\d{3,5}|SIG[A-Z]{3,5}|E(?:ACCES|ADDRINUSE|AGAIN|BADF|BUSY|CONNABORTED|CONNREFUSED|CONNRESET|EXIST|HOSTUNREACH|INVAL|IO|ISDIR|LOOP|MFILE|NAMETOOLONG|NETUNREACH|NOENT|NOMEM|NOSPC|NOTDIR|NOTEMPTY|NOTFOUND|PERM|PIPE|RESOLVE|ROFS|TIMEDOUT|TIMEOUT|XDEV)|ERR_[A-Z_]{3,40})\b",
    )
});
const NOT_CODES: [&str; 8] = [
    "SHA256", "SHA384", "SHA512", "SHA-256", "SHA-384", "SHA-512", "AES256", "RFC3339",
];
/// `HTTP/1.1 404`, `status code: 404`
static HTTP: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)\b(?:http(?:/\d(?:\.\d)?)?(?:\s+error)?|status(?:\s*code)?)\s*[:=]?\s*([1-5]\d\d)\b",
    )
});
static EXCEPTION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\b[A-Z][A-Za-z0-9]*(?:Error|Exception|Warning|Interrupt|Fault)\b"));
/// A path; its last component is kept.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:[A-Za-z]:)?[\w.@~+-]*(?:[\\/][\w.@~+-]+)*[\\/]([\w.@~+-]+)"));
/// Ids, addresses, hashes, times and numbers.
static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)
        \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b
        | \b0x[0-9a-fA-F]+\b
        | \b\d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?
        | \b\d+(?:[.,:]\d+)*(?:ns|us|µs|ms|s|m|h|[kKMG]i?B|%)?\b
        | \b[0-9a-f]*\d[0-9a-f]*[a-f][0-9a-f]{6,}\b
        ",
    )
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_locations_and_exceptions_are_found() {
        let rust =
            error_fingerprint("error[E0308]: mismatched types\n  --> src/memory/save.rs:12:5");
        assert_eq!(rust.codes, ["E0308"]);
        assert_eq!(rust.locations, ["save.rs:12"]);
        let typescript = error_fingerprint("src/app.ts(7,3): error TS2345: Argument of type");
        assert_eq!(
            (&*typescript.codes[0], &*typescript.locations[0]),
            ("TS2345", "app.ts:7")
        );
        let node = error_fingerprint("Error: connect ECONNREFUSED 127.0.0.1:5432");
        assert_eq!(node.codes, ["ECONNREFUSED"]);
        let http = error_fingerprint("HTTP/1.1 404 Not Found; request failed with status code 503");
        assert_eq!(http.codes, ["HTTP 404", "HTTP 503"]);
        let python =
            error_fingerprint("File \"/srv/app/main.py\", line 42, in <module>\nValueError: no");
        assert_eq!(python.locations, ["main.py:42"]);
        assert_eq!(python.exceptions, ["ValueError"]);
        let java = error_fingerprint("java.lang.NullPointerException: at Main.java:3");
        assert_eq!(java.exceptions, ["NullPointerException"]);
    }

    #[test]
    fn the_same_error_in_another_place_has_the_same_fingerprint() {
        for (one, other) in [
            (
                "thread 'main' panicked at src/a.rs:10:5: index out of bounds: the len is 3 but the index is 7",
                "thread 'main' panicked at /home/bob/x/src/a.rs:99:17: index out of bounds: the len is 0 but the index is 12",
            ),
            (
                "segfault at 0x7ffe12 in worker 5f0c8a6e-8a43-4c4a-9d5f-2f1f3c7f9a10",
                "segfault at 0x1 in worker 00000000-8a43-4c4a-9d5f-000000000000",
            ),
            (
                "2026-11-16T07:00:01.5Z connection to db timed out after 30s",
                "2025-01-01 00:00:00 connection to db timed out after 5.5s",
            ),
            (
                "cannot read C:\\Users\\ada\\a.txt at all",
                "cannot read /tmp/a.txt at all",
            ),
        ] {
            assert_eq!(
                fingerprint_hashes(one),
                fingerprint_hashes(other),
                "{:?} {:?}",
                normalized_words(one),
                normalized_words(other)
            );
            assert!(!fingerprint_hashes(one).is_empty());
        }
    }

    #[test]
    fn different_errors_have_different_fingerprints() {
        assert_ne!(
            fingerprint_hashes("error[E0308]: mismatched types here"),
            fingerprint_hashes("error[E0382]: mismatched types here")
        );
        assert!(fingerprint_hashes("error: 12").is_empty());
    }

    #[test]
    fn a_line_of_a_long_log_is_recognized() {
        let saved = fingerprint_hashes("error: linking with `cc` failed: exit status: 1");
        let log = "   Compiling a v0.1.0\nerror: linking with `cc` failed: exit status: 127\n  = note: ld: cannot find -lssl";
        assert!(fingerprint_hashes(log).contains(&saved[0]));
    }

    #[test]
    fn any_text_is_accepted() {
        for text in [
            "",
            "\0",
            "#",
            "\u{202e}:12",
            &"/a".repeat(50_000),
            &"1".repeat(50_000),
            &"é".repeat(20_000),
        ] {
            error_fingerprint(text);
            fingerprint_hashes(text);
        }
    }
}
