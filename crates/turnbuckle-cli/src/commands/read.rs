//! `turnbuckle read`.

use std::path::PathBuf;

use crate::arguments::{Program, TargetWord};

/// Read a resource
///
/// A terminal is shown text, and the size of everything else; a pipe or --output gets the exact bytes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle read [OPTIONS] <TARGET> <URI>\n       turnbuckle read [OPTIONS] <URI> -- <COMMAND>..."
)]
pub(crate) struct Read {
    #[command(flatten)]
    target: TargetWord,
    /// The address of the resource
    uri: Option<String>,
    /// Write the bytes to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    program: Program,
}
