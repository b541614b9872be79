//! Measures names and comments, and finds retired phrases.
//!
//! The figures follow fixed definitions, so that they can be compared with other code bases: non-test Rust files only, comments
//! counted by line, a type name split into its capitalized words.

use std::{
    collections::{BTreeMap, HashMap},
    sync::LazyLock,
};

use regex::Regex;

/// The retired words and phrases that count in [`StyleReport::retired_phrases`].
static RETIRED_PHRASE: LazyLock<Regex> = LazyLock::new(|| {
    let words = [
        "whoever|whomever|whom|whose|anew|seldom|beside|besides|nobody|somebody|everybody|anybody",
        "mend(?:s|ed)?|cure[sd]?|for ever|as good as|in vain|meanwhile|thereby|therein|wherever|lest|at hand",
        "a stranger|strangers?|overheard|untold|bury|buried|put aside|knows? of|says? so|in the end",
        "comes? of it|came of|lets? in|told of|is told|are told|is asked|so that nobody|has to do with",
        "to be had|let(?:s)? go|goes along",
    ];
    regex(&format!(r"(?i)\b(?:{})\b", words.join("|")))
});

/// More retired phrases, which do not count in the figure.
static OTHER_RETIRED_PHRASE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)\b(?:go(?:ing)? along|what comes of|longest ago|does not mind)\b")
});

/// "is no host" instead of "is not a host". The group has the idioms that are allowed.
static NO_NOUN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b(?:is|was|are|be|has|have) no (longer\b|more\b|need\b|effect\b|way\b|op\b|such\b)?[a-z]*",
    )
});

static TYPE_DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?m)^(?:    )?(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait)\s+(\w+)")
});

static QUESTION_WORD: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:What|Who|Whom|Whose|Whether|Where|When|Why|How|Which|As whom)\b"));

static REGULAR_PARTICIPLE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:Un)?[A-Z][a-z]+(?:ed|en)$"));

/// Participles, regular ones included.
const PARTICIPLES: &str = "
    Known Kept Held Told Asked Taken Begun Found Written Heard Seen Posted Looked Visited Gathered Poked Said Met Came Lost Shown Ended
    Done Given Presented Reached Offered Attached Numbered Arrived Denied Appended Claimed Answered Forgotten Refused Hidden Untold
    Settled Lowered Died";

/// Nouns and adjectives that end like a participle.
const NOT_PARTICIPLES: &str = "Token Screen Open Feed Seed Need Embed Shed Speed";

/// Paths that are not measured: tests, benchmarks, examples and build output.
static TEST_PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?:^|/)(?:tests?|benches|fuzz|examples|target|suite)(?:/|\.rs$)|tests\.rs$")
});

/// A Rust source file: its path from the workspace root, and its text.
#[derive(Debug)]
pub struct SourceText {
    /// The path, with `/` between the components.
    pub path: String,
    /// The text, inline test modules included.
    pub text: String,
}

/// Figures about the names, comments and files of a tree.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct StyleReport {
    types: BTreeMap<String, usize>,
    files_per_folder: HashMap<String, usize>,
    files: usize,
    code_lines: usize,
    comment_lines: usize,
    retired_phrases: usize,
    doc_comments: usize,
    question_openings: usize,
    bool_matches: usize,
}

impl StyleReport {
    /// Measures these files.
    pub fn new<'a>(files: impl IntoIterator<Item = &'a SourceText>) -> Self {
        let mut report = Self::default();
        for file in files {
            report.add(file);
        }
        report
    }

    fn add(&mut self, file: &SourceText) {
        let text = file
            .text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.files += 1;
        *self.files_per_folder.entry(folder.to_owned()).or_default() += 1;
        for definition in TYPE_DEFINITION.captures_iter(text) {
            *self.types.entry(definition[1].to_owned()).or_default() += 1;
        }
        let mut in_doc_comment = false;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            in_doc_comment = self.add_line(line, in_doc_comment);
        }
    }

    /// Counts a line; returns whether it belongs to a doc comment.
    fn add_line(&mut self, line: &str, in_doc_comment: bool) -> bool {
        if !line.starts_with("//") {
            self.code_lines += 1;
            self.bool_matches += usize::from(line.starts_with("true =>"));
            return false;
        }
        let comment = line.trim_start_matches(['/', '!']).trim();
        self.comment_lines += 1;
        self.retired_phrases +=
            RETIRED_PHRASE.find_iter(comment).count() + no_nouns(comment).count();
        let is_doc = line.starts_with("///") || line.starts_with("//!");
        if is_doc && !in_doc_comment {
            self.doc_comments += 1;
            self.question_openings += usize::from(QUESTION_WORD.is_match(comment));
        }
        is_doc
    }

    /// The mean number of words in a type name.
    pub fn words_per_type(&self) -> f64 {
        let words = self
            .types
            .iter()
            .map(|(name, count)| word_count(name) * count);
        ratio(words.sum(), self.types.values().sum())
    }

    /// Percentage of types with a name of one word.
    pub fn one_word_types(&self) -> f64 {
        self.share_of_types(|name, _| word_count(name) == 1)
    }

    /// Percentage of types that share their name with another type.
    pub fn shared_type_names(&self) -> f64 {
        self.share_of_types(|_, definitions| definitions > 1)
    }

    /// Percentage of types with a participle as their name.
    pub fn participle_types(&self) -> f64 {
        self.share_of_types(|name, _| is_participle(name))
    }

    /// Retired phrases per 1,000 comment lines.
    pub fn retired_phrases(&self) -> f64 {
        ratio(1000 * self.retired_phrases, self.comment_lines)
    }

    /// Percentage of doc comments that begin with a question word.
    pub fn question_openings(&self) -> f64 {
        ratio(100 * self.question_openings, self.doc_comments)
    }

    /// Matches on a `bool` per 1,000 lines of code.
    pub fn bool_matches(&self) -> f64 {
        ratio(1000 * self.bool_matches, self.code_lines)
    }

    /// Files per 10,000 lines of code and comments.
    pub fn files_per_10_000_lines(&self) -> f64 {
        ratio(10_000 * self.files, self.code_lines + self.comment_lines)
    }

    /// The number of files in the largest folder.
    pub fn largest_folder(&self) -> usize {
        self.files_per_folder
            .values()
            .copied()
            .max()
            .unwrap_or_default()
    }

    /// Folders with more than this many files, the largest first.
    pub fn folders_over(&self, files: usize) -> Vec<(&str, usize)> {
        let mut large: Vec<_> = self.folders().filter(|(_, count)| *count > files).collect();
        large.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        large
    }

    /// Folders that hold one Rust file, in order.
    pub fn folders_of_one_file(&self) -> Vec<&str> {
        let single = self.folders().filter(|(_, count)| *count == 1);
        let mut folders: Vec<_> = single.map(|(folder, _)| folder).collect();
        folders.sort_unstable();
        folders
    }

    /// The names that are counted by [`shared_type_names`](Self::shared_type_names).
    pub fn shared_names(&self) -> Vec<&str> {
        let shared = self
            .types
            .iter()
            .filter(|(_, definitions)| **definitions > 1);
        shared.map(|(name, _)| name.as_str()).collect()
    }

    fn folders(&self) -> impl Iterator<Item = (&str, usize)> {
        self.files_per_folder
            .iter()
            .map(|(folder, count)| (folder.as_str(), *count))
    }

    fn share_of_types(&self, counts: impl Fn(&str, usize) -> bool) -> f64 {
        let total = self.types.values().sum();
        let counted = self
            .types
            .iter()
            .filter(|(name, definitions)| counts(name, **definitions));
        ratio(
            100 * counted.map(|(_, definitions)| definitions).sum::<usize>(),
            total,
        )
    }
}

/// Returns whether a path under `crates/` is a test, and so not measured.
pub fn is_test(path: &str) -> bool {
    TEST_PATH.is_match(path)
}

/// Returns the retired words and phrases in a text.
pub fn retired_phrases(text: &str) -> Vec<&str> {
    let phrases = RETIRED_PHRASE.find_iter(text);
    let others = OTHER_RETIRED_PHRASE.find_iter(text);
    let phrases = phrases.chain(others).map(|found| found.as_str());
    phrases.chain(no_nouns(text)).collect()
}

fn no_nouns(text: &str) -> impl Iterator<Item = &str> {
    NO_NOUN
        .captures_iter(text)
        .filter(|found| found.get(1).is_none())
        .filter_map(|found| found.get(0))
        .map(|found| found.as_str())
        .filter(|found| !found.ends_with(' '))
}

/// Counts the words of a type name; a run of capitals such as `HTTP` is one word, and so is the `O` of `OAuth`.
fn word_count(name: &str) -> usize {
    let letters: Vec<_> = name.chars().collect();
    let starts_word = |at: usize| {
        let is_capital = |at: usize| letters.get(at).is_some_and(char::is_ascii_uppercase);
        let follows_capital = at > 0 && is_capital(at - 1);
        let precedes_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        is_capital(at) && (!follows_capital || precedes_small)
    };
    (0..letters.len())
        .filter(|&at| starts_word(at))
        .count()
        .max(1)
}

/// Returns whether a type name is a participle on its own.
pub fn is_participle(name: &str) -> bool {
    let is_in = |list: &str| list.split_whitespace().any(|word| word == name);
    is_in(PARTICIPLES) || (REGULAR_PARTICIPLE.is_match(name) && !is_in(NOT_PARTICIPLES))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a literal")
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> StyleReport {
        let file = |path: &str| SourceText {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        StyleReport::new(&[file("a/b.rs")])
    }

    #[test]
    fn names_are_counted_by_word() {
        let report =
            report("struct Kept;\npub struct SessionTable;\nenum Token {}\ntrait HttpClient {}\n");

        assert_eq!(report.one_word_types(), 50.0);
        assert_eq!(report.participle_types(), 25.0);
    }

    #[test]
    fn acronyms_are_one_word() {
        for (name, words) in [
            ("HTTP", 1),
            ("OAuth", 2),
            ("HttpSseStream", 3),
            ("Token", 1),
            ("JWTHeader", 2),
        ] {
            assert_eq!(word_count(name), words, "{name}");
        }
    }

    #[test]
    fn a_name_defined_twice_is_shared() {
        let report = report("struct A1;\nmod b {\n    pub struct A1;\n}\nstruct C1;\nstruct D1;\n");

        assert_eq!(report.shared_type_names(), 50.0);
        assert_eq!(report.shared_names(), ["A1"]);
    }

    #[test]
    fn phrases_and_openings_are_counted_in_comments_only() {
        let report = report(
            "/// What whoever asks is told.\n/// What follows.\nfn a() {}\n// Is no host.\nlet whoever = 1;\n",
        );

        assert_eq!(report.question_openings(), 100.0);
        assert_eq!(report.retired_phrases(), 2000.0 / 3.0);
    }

    #[test]
    fn is_no_longer_is_fine_and_is_no_host_is_not() {
        assert_eq!(retired_phrases("it is no longer open"), [""; 0]);
        assert_eq!(retired_phrases("it has no effect"), [""; 0]);
        assert_eq!(retired_phrases("it is no host"), ["is no host"]);
    }

    /// The expected figures are those of the script that measures the other code bases.
    #[test]
    fn figures_of_a_small_tree_are_as_defined() {
        let file = |path: &str, text: &str| SourceText {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let report = StyleReport::new(&[
            file(
                "a/one.rs",
                "//! What it is.\n\nuse std::io;\n\n/// The table.\n// Whose is no matter: it has no effect.\n\
                 pub(crate) struct SessionTable;\n    /// How.\n    enum Kept {}\nmatch a {\n    true => 1,\n}\n\
                 #[cfg(test)]\nmod tests {\n    struct Lost;\n}\n",
            ),
            file("a/two.rs", "trait OAuth {}\nstruct Kept;\nstruct HTTP2;\n"),
            file("b/three.rs", "fn f() {}\n"),
        ]);

        let figures = [
            report.words_per_type(),
            report.one_word_types(),
            report.shared_type_names(),
            report.participle_types(),
            report.retired_phrases(),
            report.question_openings(),
            report.bool_matches(),
            report.files_per_10_000_lines(),
        ];
        let rounded = figures.map(|figure| (figure * 10.0).round() / 10.0);
        assert_eq!(rounded, [1.4, 60.0, 40.0, 40.0, 500.0, 66.7, 100.0, 2142.9]);
        assert_eq!(report.largest_folder(), 2);
        assert_eq!(report.folders_of_one_file(), ["b"]);
    }

    #[test]
    fn tests_and_build_output_are_not_measured() {
        for path in [
            "a/tests/it/b.rs",
            "a/src/b/tests.rs",
            "a/src/b_tests.rs",
            "a/src/target/b.rs",
            "a/src/suite.rs",
            "a/benches/b.rs",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in ["a/src/testing/b.rs", "a/src/contest.rs", "a/src/targets.rs"] {
            assert!(!is_test(path), "{path}");
        }
    }

    #[test]
    fn inline_tests_are_left_out() {
        let report =
            report("struct SessionTable;\n#[cfg(test)]\nmod tests {\n    struct Kept;\n}\n");

        assert_eq!(report.participle_types(), 0.0);
    }
}
