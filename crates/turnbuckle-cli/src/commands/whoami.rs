//! `turnbuckle whoami`.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::login::on_this_machine;
use crate::account;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::logins;
use crate::place::{self, Place};
use crate::target::{Target, Words};

/// Show as whom you are logged in, to one server or to all of them
///
/// Says who gave the tokens, to whom, what they are good for, when they end and how they are kept. No token is
/// ever shown, and nobody is asked: who you are is read from the tokens that are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Whoami {
    /// The server: its URL, or its name in a configuration
    #[arg(value_name = "TARGET")]
    target: Option<String>,
}

impl Whoami {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let accounts = logins::all(context).await?;
        let now = SystemTime::now();
        if self.target.is_none() {
            let documents: Vec<Value> = accounts.iter().map(account::Account::document).collect();
            return match (context.options.json, accounts.is_empty()) {
                (true, _) => context.json(&json!({ "logins": documents })),
                (false, true) => {
                    context.voice.say("you are logged in nowhere\n");
                    Ok(())
                }
                (false, false) => {
                    context.print(&account::table(&accounts, now, context.width()))?;
                    let kept = accounts.first().map(account::Account::kept);
                    context
                        .voice
                        .say(&format!("kept {}\n", kept.unwrap_or_default()));
                    Ok(())
                }
            };
        }
        let (target, words) = Words::split("whoami", self.target, &[])?;
        words.end()?;
        let url = url(&target, context)?;
        let mut accounts = accounts.into_iter();
        let account = accounts.find(|account| account.server == url);
        let account = account.ok_or_else(|| not_logged_in(&target))?;
        match context.options.json {
            true => context.json(&account.document()),
            false => context.print(&account.shown(now, context.width())),
        }
    }
}

/// Returns the URL that a login is kept by.
pub(super) fn url(target: &Target, context: &Context) -> Result<String> {
    match place::find(target, context)? {
        Place::Web(remote) => Ok(remote.url),
        Place::Here(_) => Err(on_this_machine(target)),
    }
}

fn not_logged_in(target: &Target) -> Failure {
    Failure::refused(format!("you are not logged in to `{}`", target.label())).hint(format!(
        "log in with `{}`",
        target.command_line("login", "")
    ))
}
