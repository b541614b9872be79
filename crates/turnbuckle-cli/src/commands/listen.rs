//! `turnbuckle listen`.

use crate::arguments::{Program, TargetWord};

/// Show what changes, until Ctrl-C
///
/// With --json, each change is a line.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle listen [OPTIONS] <TARGET>\n       turnbuckle listen [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Listen {
    #[command(flatten)]
    target: TargetWord,
    /// Watch this resource, too; can be given again
    #[arg(long = "resource", value_name = "URI")]
    resources: Vec<String>,
    #[command(flatten)]
    program: Program,
}
