//! What tells an error from others, whatever its line numbers, addresses and paths are this time.

use std::{collections::HashSet, sync::LazyLock};

use regex::Regex;

use crate::owner::short_hash;

/// More lines of an error than these tell nothing new.
const MAX_LINES: usize = 12;
/// A line of fewer words is found in errors of all kinds.
const MIN_WORDS: usize = 3;
/// Longer messages are looked at as far as this.
const MAX_BYTES: usize = 16 * 1024;
/// Of each sort of pattern, so many are shown.
const MAX_PER_KIND: usize = 16;

/// What an error message shows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ErrorFingerprint {
    /// `file:line` as far as they are named, without the folders.
    pub locations: Vec<String>,
    /// Codes such as `E0308`, `TS2345`, `ECONNREFUSED`, `HTTP 404`.
    pub codes: Vec<String>,
    /// Names of exceptions such as `ValueError` or `NullPointerException`.
    pub exceptions: Vec<String>,
}

/// Finds what an error message shows of itself.
pub fn error_fingerprint(error: &str) -> ErrorFingerprint {
    let error = beginning(error);
    let place = |found: regex::Captures<'_>| format!("{}:{}", &found[1], &found[2]);
    let locations = [&LOCATION, &PYTHON_LOCATION, &BRACKET_LOCATION]
        .into_iter()
        .flat_map(|regex| regex.captures_iter(error).map(place));
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

/// An error in words, without what changes from one time to the next.
pub(super) fn normalized_words(error: &str) -> Vec<String> {
    let text = PATH.replace_all(beginning(error), "$1");
    let text = VARIABLE.replace_all(&text, " # ");
    text.to_lowercase()
        .split(|sign: char| !sign.is_alphanumeric() && sign != '#' && sign != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Words that stand for the whole error and for each of its telling lines: equal for equal errors, whatever their numbers.
pub(super) fn fingerprint_hashes(error: &str) -> Vec<String> {
    let whole = std::iter::once(beginning(error));
    let lines = beginning(error).lines().take(MAX_LINES * 4);
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

fn beginning(text: &str) -> &str {
    super::beginning(text, MAX_BYTES)
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
/// What compilers and databases number their errors by, and what systems call theirs.
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
/// A path through folders; its last part is what the error is about.
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
    fn codes_places_and_exceptions_are_found() {
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
    fn the_same_error_elsewhere_has_the_same_print() {
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
    fn other_errors_have_other_prints() {
        assert_ne!(
            fingerprint_hashes("error[E0308]: mismatched types here"),
            fingerprint_hashes("error[E0382]: mismatched types here")
        );
        assert!(fingerprint_hashes("error: 12").is_empty());
    }

    #[test]
    fn a_line_of_a_long_log_is_recognised() {
        let saved = fingerprint_hashes("error: linking with `cc` failed: exit status: 1");
        let log = "   Compiling a v0.1.0\nerror: linking with `cc` failed: exit status: 127\n  = note: ld: cannot find -lssl";
        assert!(fingerprint_hashes(log).contains(&saved[0]));
    }

    #[test]
    fn any_text_can_be_looked_at() {
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
