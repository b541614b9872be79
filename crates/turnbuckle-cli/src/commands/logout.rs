//! `turnbuckle logout`.

use serde_json::json;

use super::whoami;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::logins;
use crate::output::plain;
use crate::target::Words;

/// Forget the login to a server
///
/// The tokens are forgotten on this machine. Those that were given may still be good until they end; a page
/// of whoever gave them may end them at once.
#[derive(Debug, clap::Args)]
pub(crate) struct Logout {
    /// The server: its URL, or its name in a configuration
    #[arg(
        value_name = "TARGET",
        conflicts_with = "all",
        required_unless_present = "all"
    )]
    target: Option<String>,

    /// Forget all logins
    #[arg(long)]
    all: bool,
}

impl Logout {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let servers = match self.all {
            true => {
                let accounts = logins::all(context).await?.into_iter();
                accounts.map(|account| account.server).collect()
            }
            false => {
                let (target, words) = Words::split("logout", self.target, &[])?;
                words.end()?;
                vec![whoami::url(&target, context)?]
            }
        };
        let mut forgotten = Vec::new();
        for server in servers {
            if logins::log_out(&server, context).await? {
                forgotten.push(plain::line(&plain::without_query(&server)));
            }
        }
        if forgotten.is_empty() && !self.all {
            return Err(Failure::refused("there is no login to this server")
                .hint("`turnbuckle whoami` lists those that there are"));
        }
        match context.options.json {
            true => context.json(&json!({ "loggedOut": forgotten })),
            false => {
                let lines = forgotten.iter();
                let lines = lines.map(|server| format!("logged out of {server}\n"));
                context.voice.say(&lines.collect::<String>());
                Ok(())
            }
        }
    }
}
