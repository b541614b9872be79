//! Ranking signals from file paths.

use std::collections::HashSet;

use super::synonyms::stem;
use crate::text::tokenize;

/// Folder names, file name parts and query words that mean tests, examples or benchmarks.
const TEST_WORDS: [&str; 18] = [
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "conftest",
    "demo",
    "demos",
    "example",
    "examples",
    "fixture",
    "fixtures",
    "mock",
    "mocks",
    "spec",
    "test",
    "testdata",
    "tests",
    "testing",
];

/// Query words that mean documentation.
const DOCUMENTATION_WORDS: [&str; 12] = [
    "changelog",
    "doc",
    "docs",
    "documentation",
    "documented",
    "guide",
    "license",
    "licence",
    "manual",
    "readme",
    "release",
    "tutorial",
];

/// Returns whether a file is documentation: a documentation language, or a text file without extension such as
/// `LICENSE`.
pub(super) fn is_documentation(path: &str, language: &str) -> bool {
    match language {
        "markdown" | "restructuredtext" => true,
        "text" => {
            let name = path.rsplit('/').next().unwrap_or(path);
            !name.contains('.') || name.ends_with(".txt")
        }
        _ => false,
    }
}

/// Returns whether a lower-case word means documentation.
pub(super) fn means_documentation(word: &str) -> bool {
    DOCUMENTATION_WORDS.contains(&word)
}

/// Returns whether a file only declares what another file defines.
pub(super) fn is_declaration_file(path: &str) -> bool {
    [".d.ts", ".d.mts", ".d.cts", ".pyi"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

/// Returns whether a file is a test, an example or a benchmark.
pub(super) fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = folders.split('/').any(|folder| {
        let folder = folder.trim_matches('_').to_lowercase();
        means_tests(&folder) || folder == "specs"
    });
    in_folder || is_test_name(name)
}

/// Returns whether a lower-case word means tests, examples or benchmarks.
pub(super) fn means_tests(word: &str) -> bool {
    TEST_WORDS.contains(&word)
}

/// Matches `test_router.py`, `router_test.go`, `router.test.ts`, `router.spec.js`, `RouterTest.java`, `tests.rs`.
fn is_test_name(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let parts = tokenize::split_identifier(stem);
    let is_test = |part: Option<&&str>| part.is_some_and(|part| means_tests(&part.to_lowercase()));
    is_test(parts.first()) || is_test(parts.last())
}

/// Returns the stems of the words in the file name and in the name of its folder.
pub(super) fn path_words(path: &str) -> HashSet<String> {
    let mut segments = path.rsplit('/');
    let name = segments.next().unwrap_or_default();
    let name = name.split_once('.').filter(|(stem, _)| !stem.is_empty());
    let name = name.map_or(path, |(stem, _)| stem);
    let both = segments.next().into_iter().chain([name]);
    both.flat_map(tokenize::plain_words)
        .map(|word| stem(&word).to_owned())
        .collect()
}

/// Returns whether `requested` equals the path or a suffix of it that starts at a folder.
pub(super) fn path_ends_with(path: &str, requested: &str) -> bool {
    let requested = requested.trim_start_matches("./").trim_start_matches('/');
    let ends = |path: &str, end: &str| {
        let folders = path.strip_suffix(end);
        folders.is_some_and(|folders| folders.is_empty() || folders.ends_with('/'))
    };
    // A relative path can be the suffix of a requested absolute path.
    ends(path, requested) || path.contains('/') && ends(requested, path)
}
