//! What can be done, a file each. The comment of a command is its help.

mod call;
mod check;
mod complete;
mod completions;
mod context;
mod info;
mod listen;
mod login;
mod logout;
mod man;
mod ping;
mod prompt;
mod prompts;
mod read;
mod resources;
mod serve;
mod servers;
mod skills;
mod tools;
mod whoami;

pub(crate) use call::Call;
pub(crate) use check::Check;
pub(crate) use complete::Complete;
pub(crate) use completions::Completions;
pub(crate) use context::Memory;
pub(crate) use info::Info;
pub(crate) use listen::Listen;
pub(crate) use login::{Login, Wish};
pub(crate) use logout::Logout;
pub(crate) use man::Man;
pub(crate) use ping::Ping;
pub(crate) use prompt::Prompt;
pub(crate) use prompts::Prompts;
pub(crate) use read::Read;
pub(crate) use resources::Resources;
pub(crate) use serve::Serve;
pub(crate) use servers::Servers;
pub(crate) use skills::Skills;
pub(crate) use tools::Tools;
pub(crate) use whoami::Whoami;

use crate::arguments::Command;
use crate::context::Context;
use crate::failure::Result;

/// Does what the command line says.
pub(crate) async fn run(command: Command, context: &Context) -> Result {
    match command {
        Command::Tools(command) => command.run(context).await,
        Command::Call(command) => command.run(context).await,
        Command::Resources(command) => command.run(context).await,
        Command::Read(command) => command.run(context).await,
        Command::Prompts(command) => command.run(context).await,
        Command::Prompt(command) => command.run(context).await,
        Command::Complete(command) => command.run(context).await,
        Command::Skills(command) => command.run(context).await,
        Command::Info(command) => command.run(context).await,
        Command::Listen(command) => command.run(context).await,
        Command::Ping(command) => command.run(context).await,
        Command::Check(command) => command.run(context).await,
        Command::Login(command) => command.run(context).await,
        Command::Logout(command) => command.run(context).await,
        Command::Whoami(command) => command.run(context).await,
        Command::Servers(command) => command.run(context),
        Command::Serve(command) => command.run(context).await,
        Command::Memory(command) => command.run(context),
        Command::Completions(command) => command.run(context),
        Command::Man(command) => command.run(context),
    }
}
