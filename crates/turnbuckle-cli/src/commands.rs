//! The commands, one file each. The doc comment of a command is its help text.

#[cfg(feature = "bridge")]
mod bridge;
mod call;
#[cfg(feature = "check")]
mod check;
mod complete;
mod completions;
#[cfg(feature = "serve")]
mod context;
#[cfg(feature = "serve")]
mod database;
mod info;
mod listen;
mod login;
mod logout;
mod man;
mod ping;
mod prompt;
mod prompts;
mod read;
#[cfg(feature = "record")]
mod record;
mod resources;
#[cfg(feature = "serve")]
mod serve;
mod servers;
mod skills;
#[cfg(feature = "listener")]
mod state_keys;
mod tools;
mod whoami;

#[cfg(feature = "bridge")]
pub(crate) use bridge::BridgeCommand;
pub(crate) use call::CallCommand;
#[cfg(feature = "check")]
pub(crate) use check::CheckCommand;
pub(crate) use complete::CompleteCommand;
pub(crate) use completions::CompletionsCommand;
#[cfg(feature = "serve")]
pub(crate) use context::ContextCommand;
pub(crate) use info::InfoCommand;
pub(crate) use listen::ListenCommand;
pub(crate) use login::{LoginCommand, LoginOptions};
pub(crate) use logout::LogoutCommand;
pub(crate) use man::ManCommand;
#[cfg(not(feature = "bridge"))]
pub(crate) use missing::MissingCommand as BridgeCommand;
#[cfg(not(feature = "check"))]
pub(crate) use missing::MissingCommand as CheckCommand;
#[cfg(not(feature = "record"))]
pub(crate) use missing::MissingCommand as RecordCommand;
#[cfg(not(feature = "serve"))]
pub(crate) use missing::{MissingCommand as ContextCommand, MissingCommand as ServeCommand};
pub(crate) use ping::PingCommand;
pub(crate) use prompt::PromptCommand;
pub(crate) use prompts::PromptsCommand;
pub(crate) use read::ReadCommand;
#[cfg(feature = "record")]
pub(crate) use record::RecordCommand;
pub(crate) use resources::ResourcesCommand;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeCommand;
pub(crate) use servers::ServersCommand;
pub(crate) use skills::SkillsCommand;
pub(crate) use tools::ToolsCommand;
pub(crate) use whoami::WhoamiCommand;

use crate::{cli::CliCommand, context::CommandContext, error::Result};

/// Runs a command.
pub(crate) async fn run(command: CliCommand, context: &CommandContext) -> Result {
    match command {
        CliCommand::Tools(command) => command.run(context).await,
        CliCommand::Call(command) => command.run(context).await,
        CliCommand::Resources(command) => command.run(context).await,
        CliCommand::Read(command) => command.run(context).await,
        CliCommand::Prompts(command) => command.run(context).await,
        CliCommand::Prompt(command) => command.run(context).await,
        CliCommand::Complete(command) => command.run(context).await,
        CliCommand::Skills(command) => command.run(context).await,
        CliCommand::Info(command) => command.run(context).await,
        CliCommand::Listen(command) => command.run(context).await,
        CliCommand::Ping(command) => command.run(context).await,
        CliCommand::Check(command) => command.run(context).await,
        CliCommand::Login(command) => command.run(context).await,
        CliCommand::Logout(command) => command.run(context).await,
        CliCommand::Whoami(command) => command.run(context).await,
        CliCommand::Servers(command) => command.run(context),
        CliCommand::Serve(command) => command.run(context).await,
        CliCommand::Bridge(command) => command.run(context).await,
        CliCommand::Record(command) => command.run(context).await,
        CliCommand::Context(command) => command.run(context).await,
        CliCommand::Completions(command) => command.run(context),
        CliCommand::Man(command) => command.run(context),
    }
}

/// Stub for commands of a feature that is off.
#[cfg(not(all(
    feature = "bridge",
    feature = "check",
    feature = "record",
    feature = "serve"
)))]
mod missing {
    use std::ffi::OsString;

    use crate::{
        context::CommandContext,
        error::{CliError, Result},
    };

    /// Not in this build
    #[derive(Debug, clap::Args)]
    #[command(hide = true)]
    pub(crate) struct MissingCommand {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<OsString>,
    }

    impl MissingCommand {
        /// Returns an error: this build does not have the command.
        pub(crate) async fn run(self, _context: &CommandContext) -> Result {
            Err(CliError::could_not_run("this build does not have the command")
                .hint("build turnbuckle-cli with the features `bridge`, `check`, `record` and `serve`, which are on by default"))
        }
    }
}
