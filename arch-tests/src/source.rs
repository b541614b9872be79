//! Source files of the workspace: as text, or as code without comments, strings and tests.
//!
//! Blanked parts become spaces, so lines keep their numbers.

mod blank;
mod tokens;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub use blank::{without_comments_and_strings, without_tests};
pub use tokens::{Token, tokens};

use crate::style::SourceText;

/// The code of a Rust file under `crates/`.
#[derive(Debug)]
#[non_exhaustive]
pub struct SourceCode {
    /// The path from the workspace root, with `/` between the components.
    pub path: String,
    /// The text, with comments, strings and tests blanked.
    pub code: String,
}

/// Returns every Rust file under `crates/*/src` that is not a test.
///
/// # Panics
///
/// If a folder or file cannot be read.
pub fn library_code() -> Vec<SourceCode> {
    let is_code = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        path.starts_with("crates/")
            && path.contains("/src/")
            && !path.contains("/tests/")
            && name != "tests.rs"
    };
    let texts = texts(&["rs"])
        .into_iter()
        .filter(|file| is_code(&file.path));
    texts
        .map(|file| SourceCode {
            code: without_tests(&without_comments_and_strings(&file.text)),
            path: file.path,
        })
        .collect()
}

/// Returns every file of the workspace with one of these extensions, build output left out.
///
/// # Panics
///
/// If a folder or file cannot be read.
pub fn texts(extensions: &[&str]) -> Vec<SourceText> {
    let root = crate::root();
    let mut paths = Vec::new();
    collect(&root, extensions, &mut paths);
    paths.iter().map(|path| read(&root, path)).collect()
}

fn read(root: &Path, path: &Path) -> SourceText {
    let relative = path
        .strip_prefix(root)
        .expect("the path was found under the root");
    let components: Vec<_> = relative.iter().map(|name| name.to_string_lossy()).collect();
    SourceText {
        path: components.join("/"),
        text: fs::read_to_string(path).expect("a source file can be read"),
    }
}

fn collect(folder: &Path, extensions: &[&str], paths: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let extension = path.extension().unwrap_or_default();
        if path.is_dir() && !is_skipped(&path, &name) {
            collect(&path, extensions, paths);
        } else if path.is_file() && extensions.iter().any(|known| extension == *known) {
            paths.push(path);
        }
    }
}

/// Returns whether a folder is not source: build output, packages of npm and Python, hidden folders without files of ours.
fn is_skipped(path: &Path, name: &str) -> bool {
    const OURS: [&str; 3] = [".cargo", ".config", ".github"];
    let is_build_output = path.join("CACHEDIR.TAG").exists();
    (name.starts_with('.') && !OURS.contains(&name)) || is_build_output || name == "node_modules"
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect();
    paths.sort();
    paths
}
