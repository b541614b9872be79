//! `turnbuckle prompt`.

use crate::arguments::{Program, TargetWord};

/// Show a prompt with its arguments filled in
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle prompt [OPTIONS] <TARGET> <NAME> [KEY=VALUE]...\n       turnbuckle prompt [OPTIONS] <NAME> [KEY=VALUE]... -- <COMMAND>..."
)]
pub(crate) struct Prompt {
    #[command(flatten)]
    target: TargetWord,
    /// The prompt
    name: Option<String>,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    #[command(flatten)]
    program: Program,
}
