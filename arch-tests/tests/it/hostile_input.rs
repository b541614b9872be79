//! Every test named in the table of hostile input exists.

use std::{collections::HashSet, fs, path::Path};

/// Returns the names in backquotes of the last column of every table.
fn named(page: &str) -> Vec<&str> {
    page.lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| Case"))
        .flat_map(|row| {
            let cells: Vec<_> = row.trim_end_matches(" |").split(" | ").collect();
            assert_eq!(
                cells.len(),
                3,
                "a row has a case, a response and a test: {row}"
            );
            let names: Vec<_> = cells[2].split('`').skip(1).step_by(2).collect();
            assert!(!names.is_empty(), "the row names no test: {row}");
            names
        })
        .collect()
}

/// Adds the names of all test functions under a folder.
fn tests(folder: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file can be read");
            found.extend(tests_in(&text));
        }
    }
}

fn tests_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            is_test = false;
            names.extend(rest.split_once('(').map(|(name, _)| name.to_owned()));
        }
    }
    names
}

#[test]
fn every_test_in_the_table_exists() {
    let root = turnbuckle_arch_tests::root();
    let page = fs::read_to_string(root.join("docs/hostile-input.md")).expect("the page exists");
    let mut existing = HashSet::new();
    tests(&root.join("crates"), &mut existing);

    let named = named(&page);
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !existing.contains(**name))
        .collect();

    assert!(named.len() > 70, "only {} rows were found", named.len());
    assert!(missing.is_empty(), "no such test: {missing:?}");
}

#[test]
fn only_functions_that_are_tests_count() {
    let text = "fn helper() {}\n#[tokio::test(start_paused = true)]\nasync fn a_test() {\n}\nfn other() {}\n";

    assert_eq!(tests_in(text), ["a_test"]);
}
