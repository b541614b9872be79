//! `turnbuckle check --client`: we play the server.

use turnbuckle_check::{ClientTarget, Report, check_client};

use super::Check;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::session::interruptible;

impl Check {
    pub(super) async fn check_client(&self, context: &Context) -> Result<Report> {
        if self.target.target.is_some() || !self.calls.is_empty() || self.allow_writes {
            let message = "a client is a command behind `--`, and it calls the tools that it likes";
            return Err(Failure::not_asked(message).hint("see `turnbuckle check --help`"));
        }
        let target = ClientTarget::command(self.program.command.iter().cloned(), play()?).map_err(
            |error| {
                let example = "for example `turnbuckle check --client -- my-client --url {url}`";
                Failure::not_asked(error.to_string()).hint(example)
            },
        )?;
        let target = target.observer(context.supervisor.clone());
        let options = self.options_for_client(context);
        let checked = interruptible(async { Ok(check_client(&target, &options).await) }).await;
        context.voice.quiet();
        checked?.map_err(|error| {
            Failure::not_asked(error.to_string()).hint(
                "see whether the command connects to what `{url}` or `{server}` stands for; \
                 one that is slow gets more time by --timeout",
            )
        })
    }
}

/// Returns the command that a client on stdio starts as its server: this program.
fn play() -> Result<Vec<String>> {
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy().into_owned();
    Ok(vec![program, "check".to_owned(), "--play".to_owned()])
}
