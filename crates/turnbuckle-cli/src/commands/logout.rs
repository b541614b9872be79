//! `turnbuckle logout`.

use serde_json::json;

use super::whoami;
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    logins,
    output::sanitize,
    target::PositionalArgs,
};

/// Delete the login to a server
///
/// Deletes the tokens on this machine, and revokes them if the authorization server supports that. Otherwise they stay
/// valid until they expire.
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutCommand {
    /// The server: URL or configured name
    #[arg(
        value_name = "TARGET",
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    target: Option<String>,

    /// Delete all logins
    #[arg(long)]
    all: bool,
}

impl LogoutCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let servers = if self.all {
            let summaries = logins::list(context).await?.into_iter();
            summaries.map(|summary| summary.server).collect()
        } else {
            let (target, args) = PositionalArgs::split("logout", self.target, &[])?;
            args.finish()?;
            vec![whoami::url(&target, context)?]
        };
        let mut forgotten = Vec::new();
        for server in servers {
            if logins::log_out(&server, context).await? {
                forgotten.push(sanitize::line(&sanitize::redact_query(&server)));
            }
        }
        if forgotten.is_empty() && !self.all {
            return Err(
                CliError::negative_result("you are not logged in to this server")
                    .hint("list your logins with `turnbuckle whoami`"),
            );
        }
        if context.options.json {
            context.print_json(&json!({ "loggedOut": forgotten }))
        } else {
            let lines = forgotten.iter();
            let lines = lines.map(|server| format!("logged out of {server}\n"));
            context.ui.print(&lines.collect::<String>());
            Ok(())
        }
    }
}
