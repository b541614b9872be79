//! `turnbuckle complete`.

use crate::arguments::{Program, TargetWord};

/// Ask how an argument of a prompt or a variable of a template could go on
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <TARGET> <ARGUMENT> [VALUE]\n       turnbuckle complete [OPTIONS] <--prompt NAME|--resource TEMPLATE> <ARGUMENT> [VALUE] -- <COMMAND>..."
)]
pub(crate) struct Complete {
    /// The argument belongs to this prompt
    #[arg(
        long,
        value_name = "NAME",
        required_unless_present = "resource",
        conflicts_with = "resource"
    )]
    prompt: Option<String>,
    /// The variable belongs to this template
    #[arg(long, value_name = "TEMPLATE")]
    resource: Option<String>,
    /// What another argument is already; can be given again
    #[arg(long, value_name = "KEY=VALUE")]
    given: Vec<String>,
    #[command(flatten)]
    target: TargetWord,
    /// The argument or variable
    argument: Option<String>,
    /// What is typed so far
    value: Option<String>,
    #[command(flatten)]
    program: Program,
}
