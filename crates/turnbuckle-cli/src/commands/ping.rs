//! `turnbuckle ping`.

use crate::arguments::{Program, TargetWord};

/// See whether a server answers, and how fast
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle ping [OPTIONS] <TARGET>\n       turnbuckle ping [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Ping {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    program: Program,
}
