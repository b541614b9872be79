//! Keeps the invariants of the design by test.
//!
//! Here is what the tests look through; the invariants themselves are in `tests/it`, one file each for
//! who depends on whom, what the sources may say, and what `deny.toml` allows.
//!
//! - [`graph`]: packages and their dependencies, as cargo resolves them.
//! - [`source`]: Rust files of the workspace, without comments, strings and tests.
//! - [`licence`]: licence expressions.

pub mod graph;
pub mod licence;
pub mod source;

use std::path::{Path, PathBuf};

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    house
        .parent()
        .expect("this package is a folder of the workspace")
        .to_owned()
}
