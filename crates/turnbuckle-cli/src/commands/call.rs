//! `turnbuckle call`.

use std::path::PathBuf;

use crate::arguments::{Program, TargetWord};

/// Call a tool
///
/// KEY=VALUE is typed by the schema of the tool: `days=3` is a number where it asks for one, `tags=a,b` or
/// `tags=a tags=b` a list. KEY:=JSON is taken as it is: `days:=3`, `where:='{"lat": 60}'`. Both win over
/// what --args says.
///
/// A single picture, sound or file goes to a pipe as its bytes.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle call [OPTIONS] <TARGET> <TOOL> [KEY=VALUE | KEY:=JSON]...\n       turnbuckle call [OPTIONS] <TOOL> [KEY=VALUE | KEY:=JSON]... -- <COMMAND>..."
)]
pub(crate) struct Call {
    #[command(flatten)]
    target: TargetWord,
    /// The tool
    tool: Option<String>,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Arguments as one JSON object: the JSON itself, @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Write the bytes of the result to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) program: Program,
}
