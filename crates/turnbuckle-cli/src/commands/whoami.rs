//! `turnbuckle whoami`.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::login::login_not_supported;
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    logins::{self, LoginSummary},
    target::{
        CliTarget, PositionalArgs,
        resolve::{self, ResolvedTarget},
    },
};

/// Show your logins
///
/// Shows the issuer, client, scopes, expiry and storage of each login. Tokens are not shown, and no request is sent:
/// your identity is read from the stored tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct WhoamiCommand {
    /// The server: URL or configured name
    #[arg(value_name = "TARGET")]
    target: Option<String>,
}

impl WhoamiCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let summaries = logins::list(context).await?;
        let now = SystemTime::now();
        if self.target.is_none() {
            let documents: Vec<Value> = summaries.iter().map(LoginSummary::document).collect();
            return match (context.options.json, summaries.is_empty()) {
                (true, _) => context.print_json(&json!({ "logins": documents })),
                (false, true) => {
                    context.ui.print("not logged in to any server\n");
                    Ok(())
                }
                (false, false) => {
                    context.print(&logins::table(&summaries, now, context.width()))?;
                    let storage = summaries.first().map(LoginSummary::storage);
                    context
                        .ui
                        .print(&format!("stored {}\n", storage.unwrap_or_default()));
                    Ok(())
                }
            };
        }
        let (target, args) = PositionalArgs::split("whoami", self.target, &[])?;
        args.finish()?;
        let url = url(&target, context)?;
        let mut summaries = summaries.into_iter();
        let summary = summaries.find(|summary| summary.key == url);
        let summary = summary.ok_or_else(|| not_logged_in(&target))?;
        if context.options.json {
            context.print_json(&summary.document())
        } else {
            context.print(&summary.render(now, context.width()))
        }
    }
}

/// Returns the URL that a login is stored under.
pub(super) fn url(target: &CliTarget, context: &CommandContext) -> Result<String> {
    match resolve::resolve(target, context)? {
        ResolvedTarget::Http(http_entry) => Ok(http_entry.url),
        ResolvedTarget::Local(_) => Err(login_not_supported(target)),
    }
}

fn not_logged_in(target: &CliTarget) -> CliError {
    CliError::negative_result(format!("you are not logged in to `{}`", target.label())).hint(
        format!("log in with `{}`", target.command_line("login", "")),
    )
}
