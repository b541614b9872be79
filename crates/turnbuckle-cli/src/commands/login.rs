//! `turnbuckle login`.

use std::time::SystemTime;

use turnbuckle_auth::Scopes;

use crate::arguments::TargetWord;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::logins;
use crate::place::{self, Place};
use crate::servers::Remote;
use crate::session;
use crate::target::{Target, Words};

/// Log in to a server
///
/// Finds out who gives tokens for the server, registers there unless --client-id says by what we are known,
/// opens a browser, and waits until you have logged in. All other commands then use the login, and renew it
/// when that is needed; they never open a browser. It is kept in a file that only you can read, which --keyring
/// seals.
///
/// Without a browser on this machine use --no-browser: the address is printed, or a code that is typed on
/// another device if the authorization server knows that.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    #[command(flatten)]
    target: TargetWord,
    #[command(flatten)]
    wish: Wish,
}

/// How somebody wants to log in.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Wish {
    /// Open no browser: print the address, or a code for another device
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Ask for this scope, too; can be given again
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scopes)]
    pub(crate) scopes: Vec<Scopes>,

    /// Log in as the client itself, by its --client-secret-file, without any user
    #[arg(long, requires = "client_id")]
    pub(crate) as_client: bool,

    /// Come back to this address of this machine, as it is registered for --client-id: http://127.0.0.1:8976/callback
    #[arg(long, value_name = "URI")]
    pub(crate) redirect_uri: Option<String>,

    /// Seal the file of all logins with a key in the keyring of the system; it stays sealed
    #[arg(long)]
    pub(crate) keyring: bool,

    /// Take the seal from the file of all logins
    #[arg(long, conflicts_with = "keyring")]
    pub(crate) no_keyring: bool,
}

impl Login {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) = Words::split("login", self.target.target, &[])?;
        words.end()?;
        let remote = remote(&target, context)?;
        let login = logins::log_in(&target, &remote, &self.wish, context);
        let Some(account) = session::interruptible(login).await? else {
            context.voice.say(&format!(
                "{} asks nobody who they are: there is nothing to log in to\n",
                target.label()
            ));
            return match context.options.json {
                true => context.json(&serde_json::Value::Null),
                false => Ok(()),
            };
        };
        context.voice.say("You are logged in.\n");
        match context.options.json {
            true => context.json(&account.document()),
            false => context.print(&account.shown(SystemTime::now(), context.width())),
        }
    }
}

/// Returns the server to log in to, if that makes sense.
fn remote(target: &Target, context: &Context) -> Result<Remote> {
    match place::find(target, context)? {
        Place::Web(remote) if remote.names_us() => Err(Failure::not_asked(format!(
            "`{}` is sent a header `Authorization` already, which would be used and not the login",
            target.label()
        ))
        .hint("leave out the token, or the header in the configuration")),
        Place::Web(remote) => Ok(remote),
        Place::Here(_) => Err(on_this_machine(target)),
    }
}

/// Says why there are no logins for programs and sockets.
pub(super) fn on_this_machine(target: &Target) -> Failure {
    Failure::not_asked(format!(
        "`{}` is not reached by HTTP: there is nothing to log in to",
        target.label()
    ))
    .hint("a program that is started takes its credentials from its environment")
}

fn scopes(text: &str) -> std::result::Result<Scopes, String> {
    text.parse()
        .map_err(|error: turnbuckle_auth::InvalidScope| error.to_string())
}
