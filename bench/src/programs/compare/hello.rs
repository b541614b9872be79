//! `bench/hello`, built on its own as a user builds it, and with the profile that the peers' servers have.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use turnbuckle_bench::Failure;

/// Returns the program; it is built first if anything has changed.
pub(crate) fn program() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| error.to_string()));
    built.clone().map_err(Into::into)
}

fn build() -> Result<PathBuf, Failure> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("hello");
    let target = package.join("../../target/bench-hello");
    let status = Command::new("cargo")
        .args([
            "build",
            "--release",
            "--locked",
            "--quiet",
            "--manifest-path",
        ])
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "thin")
        .stdout(Stdio::null())
        .status()?;
    if status.success() {
        Ok(target.join("release/hello"))
    } else {
        Err(format!("cargo build: {status}").into())
    }
}
