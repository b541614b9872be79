//! What the path of a file says about it.

use std::collections::HashSet;

use super::stem::stem;
use crate::words;

/// Folders, words of file names and words of questions that mean tests, examples or benchmarks.
const TESTS: [&str; 18] = [
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

/// Words of questions that mean documentation.
const PROSE: [&str; 12] = [
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

/// Whether a file is documentation: prose by its language, or a text without an ending, such as `LICENSE`.
pub(super) fn is_prose(path: &str, language: &str) -> bool {
    match language {
        "markdown" | "restructuredtext" => true,
        "text" => {
            let name = path.rsplit('/').next().unwrap_or(path);
            !name.contains('.') || name.ends_with(".txt")
        }
        _ => false,
    }
}

/// Whether a word in lower case means documentation.
pub(super) fn means_prose(word: &str) -> bool {
    PROSE.contains(&word)
}

/// Whether a file declares what another one defines.
pub(super) fn is_declarations(path: &str) -> bool {
    [".d.ts", ".d.mts", ".d.cts", ".pyi"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

/// Whether a file is a test, an example or a benchmark.
pub(super) fn is_test(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = folders.split('/').any(|folder| {
        let folder = folder.trim_matches('_').to_lowercase();
        means_tests(&folder) || folder == "specs"
    });
    in_folder || is_test_name(name)
}

/// Whether a word in lower case means tests, examples or benchmarks.
pub(super) fn means_tests(word: &str) -> bool {
    TESTS.contains(&word)
}

/// `test_router.py`, `router_test.go`, `router.test.ts`, `router.spec.js`, `RouterTest.java`, `tests.rs`.
fn is_test_name(name: &str) -> bool {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let parts = words::split(stem);
    let is_test = |part: Option<&&str>| part.is_some_and(|part| means_tests(&part.to_lowercase()));
    is_test(parts.first()) || is_test(parts.last())
}

/// The stems of the words in the name of a file and of the folder it is in.
pub(super) fn words_of(path: &str) -> HashSet<String> {
    let mut segments = path.rsplit('/');
    let name = segments.next().unwrap_or_default();
    let name = name.split_once('.').filter(|(stem, _)| !stem.is_empty());
    let name = name.map_or(path, |(stem, _)| stem);
    let both = segments.next().into_iter().chain([name]);
    both.flat_map(words::plain_words)
        .map(|word| stem(&word).to_owned())
        .collect()
}

/// Whether `asked` is the path, or the end of it from some folder on.
pub(super) fn ends_with(path: &str, asked: &str) -> bool {
    let asked = asked.trim_start_matches("./").trim_start_matches('/');
    let ends = |path: &str, end: &str| {
        let folders = path.strip_suffix(end);
        folders.is_some_and(|folders| folders.is_empty() || folders.ends_with('/'))
    };
    // The path below the root may itself be the end of an absolute one.
    ends(path, asked) || path.contains('/') && ends(asked, path)
}
