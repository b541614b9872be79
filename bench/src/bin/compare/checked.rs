//! `checked-server`: ours, with validation of arguments and results.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use turnbuckle_bench::Failure;

/// Returns the program; it is built first if anything has changed.
///
/// `cargo build -p turnbuckle-bench` leaves it out: the feature would be on in `echo-server`, too.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| error.to_string()));
    built.clone().map_err(Into::into)
}

fn build() -> Result<PathBuf, Failure> {
    // This program is `target/release/compare`.
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(2).ok_or("no build folder")?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--quiet"])
        .args(["-p", "turnbuckle-bench", "--features", "validation"])
        .args(["--bin", "checked-server", "--manifest-path"])
        .arg(workspace)
        .arg("--target-dir")
        .arg(target)
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(target.join("release/checked-server"))
    } else {
        Err(format!("checked-server: cargo build: {status}").into())
    }
}
