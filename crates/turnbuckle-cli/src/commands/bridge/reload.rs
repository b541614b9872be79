//! Reloads the servers of a running bridge: on SIGHUP, and when a file that defines them changes.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _},
    path::PathBuf,
    time::{Duration, SystemTime},
};

use turnbuckle_gateway::{Reload, RunningGateway, Upstream};
use turnbuckle_text::error_chain;

use super::{
    BridgeCommand, server_files,
    upstreams::{self, Warnings},
};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    listener::ListenAddress,
    output::sanitize,
    signals::HangupSignal,
};

/// The interval in which the files are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Reloads servers while the bridge runs.
pub(super) struct Reloader<'a> {
    bridge: &'a BridgeCommand,
    listen: &'a ListenAddress,
    /// The context of the command, without a user to ask.
    context: CommandContext,
    has_terminal: bool,
    warnings: Warnings,
    files: FileStates,
    hangup: HangupSignal,
}

/// The time of the last change and the size of each file that exists.
type FileStates = BTreeMap<PathBuf, (SystemTime, u64)>;

impl<'a> Reloader<'a> {
    /// Creates a reloader before the files are first read, so that it misses no change.
    pub(super) fn new(
        bridge: &'a BridgeCommand,
        listen: &'a ListenAddress,
        context: &CommandContext,
    ) -> io::Result<Self> {
        let mut environment = context.environment.clone();
        environment.terminal.is_interactive = false;
        let context_without_user = CommandContext {
            environment,
            options: context.options.clone(),
            ui: context.ui.clone(),
            supervisor: context.supervisor.clone(),
        };
        Ok(Self {
            bridge,
            listen,
            files: file_states(context),
            context: context_without_user,
            has_terminal: io::stdin().is_terminal(),
            warnings: Warnings::new(context),
            hangup: HangupSignal::new()?,
        })
    }

    /// The warnings that were printed.
    pub(super) fn warnings(&mut self) -> &mut Warnings {
        &mut self.warnings
    }

    /// Reloads until the terminal of the bridge is closed. `changed` is called when there are other servers.
    pub(super) async fn run(mut self, gateway: &RunningGateway, changed: impl Fn() -> Result) {
        loop {
            tokio::select! {
                () = self.hangup.recv() => {
                    // SIGHUP also means that the terminal was closed.
                    if self.has_terminal && !io::stdin().is_terminal() {
                        return;
                    }
                    self.files = file_states(&self.context);
                }
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    let files = file_states(&self.context);
                    if files == self.files {
                        continue;
                    }
                    self.files = files;
                }
            }
            let message = match self.reload(gateway).await {
                Ok(changes) if changes.is_empty() => continue,
                Ok(changes) => match changed() {
                    Ok(()) => changes,
                    Err(failure) => failure.render(),
                },
                Err(failure) => format!("the servers stay as they are\n{}", failure.render()),
            };
            self.context.ui.print(&message);
        }
    }

    /// Reads the files again, and applies them. Returns what has changed, as text.
    async fn reload(&mut self, gateway: &RunningGateway) -> Result<String> {
        let found = upstreams::find(self.bridge, self.listen, &self.context, &mut self.warnings)?;
        self.bridge.policy_files.check_lock(found.lock.as_deref())?;
        let mut upstreams: Vec<Upstream> = Vec::new();
        for server in found.iter() {
            upstreams.push(server.upstream(self.bridge, &self.context).await?);
        }
        let reloaded = gateway.reload(upstreams).await;
        let reload = reloaded.map_err(|error| CliError::could_not_run(error_chain(&error)))?;
        let has_other_rate = gateway.set_rate_limit(found.rate_limit());
        Ok(describe(&reload, has_other_rate))
    }
}

fn file_states(context: &CommandContext) -> FileStates {
    let state = |path: PathBuf| {
        let found = std::fs::metadata(&path).ok()?;
        Some((path, (found.modified().ok()?, found.len())))
    };
    let files = server_files::watched_files(context).into_iter();
    files.filter_map(state).collect()
}

fn describe(reload: &Reload, has_other_rate: bool) -> String {
    let mut text = String::new();
    if !reload.is_empty() {
        text += &describe_servers(reload);
    }
    if has_other_rate {
        text += "policy: changed rate\n";
    }
    text
}

fn describe_servers(reload: &Reload) -> String {
    let parts = [
        ("added", &reload.added),
        ("changed", &reload.changed),
        ("removed", &reload.removed),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", names.join(", ")))
        .collect();
    format!("servers: {}\n", sanitize::line(&parts.join("; ")))
}
