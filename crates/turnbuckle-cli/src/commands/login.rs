//! `turnbuckle login`.

use std::time::SystemTime;

use turnbuckle_auth::Scopes;

use crate::{
    cli::TargetArg,
    connection,
    context::CommandContext,
    error::{CliError, Result},
    logins,
    target::{
        CliTarget, PositionalArgs,
        config_files::HttpEntry,
        resolve::{self, ResolvedTarget},
    },
};

/// Log in to a server
///
/// Discovers the authorization server, registers as a client unless --client-id is given, opens a browser, and waits
/// until you have logged in. All other commands then use the login and refresh it; they never open a browser. The
/// login is stored in a file that only you can read, which --keyring encrypts.
///
/// On a machine without a browser use --no-browser: it prints the URL, or a code to enter on another device if the
/// authorization server supports that.
#[derive(Debug, clap::Args)]
pub(crate) struct LoginCommand {
    #[command(flatten)]
    target: TargetArg,
    #[command(flatten)]
    options: LoginOptions,
}

/// The options of a login.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LoginOptions {
    /// Print the URL or a device code; open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Request this scope in addition; repeatable
    #[arg(long = "scope", value_name = "SCOPE", value_parser = parse_scopes)]
    pub(crate) scopes: Vec<Scopes>,

    /// Use the client credentials grant, without a user
    #[arg(long, requires = "client_id")]
    pub(crate) as_client: bool,

    /// Use this registered redirect URI on 127.0.0.1
    #[arg(long, value_name = "URI")]
    pub(crate) redirect_uri: Option<String>,

    /// Encrypt stored logins with a key in the system keyring
    #[arg(long)]
    pub(crate) keyring: bool,

    /// Stop encrypting stored logins
    #[arg(long, conflicts_with = "keyring")]
    pub(crate) no_keyring: bool,
}

impl LoginCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (target, args) = PositionalArgs::split("login", self.target.target, &[])?;
        args.finish()?;
        let http_entry = http_entry(&target, context)?;
        let login = logins::log_in(&target, &http_entry, &self.options, context);
        let Some(summary) = connection::or_interrupted(login).await? else {
            context.ui.print(&format!(
                "{} does not use authorization: no login is needed\n",
                target.label()
            ));
            return if context.options.json {
                context.print_json(&serde_json::Value::Null)
            } else {
                Ok(())
            };
        };
        context.ui.print("You are logged in.\n");
        if context.options.json {
            context.print_json(&summary.document())
        } else {
            context.print(&summary.render(SystemTime::now(), context.width()))
        }
    }
}

/// Returns the entry of the server, if it supports logins.
fn http_entry(target: &CliTarget, context: &CommandContext) -> Result<HttpEntry> {
    match resolve::resolve(target, context)? {
        ResolvedTarget::Http(http_entry) if http_entry.has_credentials() => {
            Err(CliError::could_not_run(format!(
                "`{}` has an `Authorization` header, which would override the login",
                target.label()
            ))
            .hint("remove the token option, or the header in the configuration"))
        }
        ResolvedTarget::Http(http_entry) => Ok(http_entry),
        ResolvedTarget::Local(_) => Err(login_not_supported(target)),
    }
}

/// Returns the error for programs and sockets.
pub(super) fn login_not_supported(target: &CliTarget) -> CliError {
    CliError::could_not_run(format!(
        "`{}` is not a server on HTTP: logins are not supported",
        target.label()
    ))
    .hint("pass credentials to a program in environment variables")
}

fn parse_scopes(text: &str) -> std::result::Result<Scopes, String> {
    text.parse()
        .map_err(|error: turnbuckle_auth::InvalidScope| error.to_string())
}
