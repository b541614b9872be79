//! Tests of the architecture rules.
//!
//! This library reads the workspace; the rules are in `tests/it`, one file each for the crate graph, the sources, the vocabulary,
//! `deny.toml` and the tables of the documentation.
//!
//! - [`graph`]: packages and their dependencies, as cargo resolves them.
//! - [`source`]: files of the workspace.
//! - [`style`]: figures about names and comments.
//! - [`license`]: license expressions.

pub mod graph;
pub mod license;
pub mod source;
pub mod style;

use std::path::{Path, PathBuf};

/// Returns the root folder of the workspace.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("this package is a folder of the workspace")
        .to_owned()
}
