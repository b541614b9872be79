//! Rust files of the workspace, without comments, strings and tests.
//!
//! What is left out becomes spaces, so that lines keep their numbers.

mod blank;
mod tokens;

pub use blank::{without_comments_and_strings, without_tests};
pub use tokens::{Token, tokens};

use std::fs;
use std::path::{Path, PathBuf};

/// One Rust file of a crate under `crates/`.
#[derive(Debug)]
#[non_exhaustive]
pub struct File {
    /// Its path from the folder of the workspace, with `/` between the parts.
    pub path: String,
    /// Its code; comments, strings and tests are blank.
    pub code: String,
}

/// Returns every Rust file under `crates/*/src` that is not a test.
///
/// # Panics
///
/// If a folder or file cannot be read.
pub fn files() -> Vec<File> {
    let root = crate::root();
    let mut paths = Vec::new();
    for package in folder(&root.join("crates")) {
        collect(&package.join("src"), &mut paths);
    }
    paths.iter().map(|path| read(&root, path)).collect()
}

fn read(root: &Path, path: &Path) -> File {
    let relative = path
        .strip_prefix(root)
        .expect("it was found under the root");
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    let text = fs::read_to_string(path).expect("a source file can be read");
    File {
        path: parts.join("/"),
        code: without_tests(&without_comments_and_strings(&text)),
    }
}

fn collect(place: &Path, found: &mut Vec<PathBuf>) {
    if !place.is_dir() {
        return;
    }
    for path in folder(place) {
        let name = path.file_name().unwrap_or_default().to_owned();
        if path.is_dir() && name != "tests" {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs"
        {
            found.push(path);
        }
    }
}

fn folder(place: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    paths.sort();
    paths
}
