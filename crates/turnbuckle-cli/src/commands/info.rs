//! `turnbuckle info`.

use crate::arguments::{Program, TargetWord};

/// Show what a server says about itself
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle info [OPTIONS] <TARGET>\n       turnbuckle info [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Info {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    program: Program,
}
