//! `checked-server`: ours, with validation of arguments and results.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use turnbuckle_bench::Failure;

/// Returns the binary that has it; it is built first if anything has changed.
///
/// It has its own build folder: in the binary that runs, the feature would be on in `echo-server`, too.
pub(crate) fn binary() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| error.to_string()));
    built.clone().map_err(Into::into)
}

fn build() -> Result<PathBuf, Failure> {
    // This binary is in `target/dist`.
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(2).ok_or("no build folder")?;
    let target = target.join("bench-checked");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let status = Command::new("cargo")
        .args(["build", "--profile", "dist", "--locked", "--quiet"])
        .args(["-p", "turnbuckle-bench", "--features", "validation"])
        .arg("--manifest-path")
        .arg(workspace)
        .arg("--target-dir")
        .arg(&target)
        // Tasks are counted by the name of a function.
        .env("CARGO_PROFILE_DIST_STRIP", "none")
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(target.join("dist/turnbuckle-bench"))
    } else {
        Err(format!("checked-server: cargo build: {status}").into())
    }
}
