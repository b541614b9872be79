//! `turnbuckle logout`.

use serde_json::json;

use super::whoami;
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    logins::{self, LoginSummary},
    output::sanitize,
    target::PositionalArgs,
};

/// Delete the login to a server
///
/// Deletes the tokens on this machine, and revokes them if the authorization server supports that. Otherwise they stay
/// valid until they expire. Logins of callers of `turnbuckle bridge` at the server are deleted, too.
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
        let logins = if self.all {
            logins::list(context).await?
        } else {
            let (target, args) = PositionalArgs::split("logout", self.target, &[])?;
            args.finish()?;
            logins_at(whoami::url(&target, context)?, context).await
        };
        let mut forgotten = Vec::new();
        let mut failure = None;
        for login in logins {
            match logins::log_out(&login.key, context).await {
                Ok(true) => forgotten.push(sanitize::line(&login.label())),
                Ok(false) => {}
                // The others are deleted nevertheless; the last error is that of the command.
                Err(error) => {
                    if let Some(earlier) = failure.replace(error) {
                        context.ui.print(&earlier.render());
                    }
                }
            }
        }
        if forgotten.is_empty() && failure.is_none() && !self.all {
            return Err(
                CliError::negative_result("you are not logged in to this server")
                    .hint("list your logins with `turnbuckle whoami`"),
            );
        }
        if context.options.json {
            context.print_json(&json!({ "loggedOut": forgotten }))?;
        } else {
            let lines = forgotten.iter();
            let lines = lines.map(|server| format!("logged out of {server}\n"));
            context.ui.print(&lines.collect::<String>());
        }
        failure.map_or(Ok(()), Err)
    }
}

/// Returns the logins at a server: that of this user, also if it cannot be read, and those of callers of a bridge.
async fn logins_at(url: String, context: &CommandContext) -> Vec<LoginSummary> {
    let own = LoginSummary {
        key: url.clone(),
        server: url.clone(),
        ..LoginSummary::default()
    };
    let stored = logins::list(context).await.unwrap_or_default().into_iter();
    let of_callers = stored.filter(|login| login.server == url && login.user.is_some());
    [own].into_iter().chain(of_callers).collect()
}
