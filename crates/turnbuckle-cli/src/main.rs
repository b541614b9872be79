//! The command `turnbuckle`: calls MCP servers from a terminal.
//!
//! [`cli`] defines the command line, [`commands`] has a file for each command. [`target`] finds the server that is
//! meant and asks before a project's configuration is used. [`connection`] connects to it with the user's [`logins`].
//! [`tool_args`] builds the arguments of calls, [`tool_pins`] notices tools that have changed, [`elicitation`] shows
//! the requests of a server to the user, and [`output`] formats results. [`supervisor`] ends child programs if this
//! process is killed. `listener` serves clients, for `serve` and `bridge`; `recorder` relays and records, for `record`.

mod cli;
mod commands;
mod connection;
mod context;
mod credentials;
mod elicitation;
mod environment;
mod error;
#[cfg(feature = "listener")]
mod listener;
mod logins;
mod output;
#[cfg(feature = "record")]
mod recorder;
mod signals;
mod state_files;
#[cfg(unix)]
mod supervisor;
mod target;
mod tool_args;
mod tool_pins;
mod ui;

use std::{
    io::Write as _,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cli::{Cli, ColorMode};
use context::CommandContext;
use environment::Environment;
use error::CliError;
use ui::Ui;

/// Maximum number of threads for blocking work. The context server runs at most ten such jobs at once, and reads stdin on
/// another one. The allocator keeps memory for each thread, so more threads would only leave more memory behind.
const MAX_BLOCKING_THREADS: usize = 12;

fn main() -> ExitCode {
    if let Some(code) = supervisor::run_if_started_as_one() {
        return code;
    }
    let cli = Cli::from_process();
    set_color_choice(cli.options.color);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = anstream::stderr().write_all(failure.render().as_bytes());
            failure.exit_code()
        }
    }
}

/// Locks a mutex, ignoring poisoning: no code under these locks leaves an invalid value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the command on its own runtime.
///
/// The runtime does not wait for a thread that is still reading from the terminal.
fn run(cli: Cli) -> error::Result {
    let environment = Environment::from_process().map_err(|error| {
        CliError::could_not_run(format!("cannot get the current directory: {error}"))
    })?;
    let context = CommandContext {
        environment,
        options: cli.options,
        ui: Ui::default(),
        supervisor: Arc::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .build()?;
    let done = runtime.block_on(commands::run(cli.command, &context));
    runtime.shutdown_background();
    if let Err(failure) = &done
        && let Some(document) = failure.as_document()
        && context.options.json
    {
        context.print_json(document)?;
    }
    done
}

fn set_color_choice(color: ColorMode) {
    match color {
        ColorMode::Auto => anstream::ColorChoice::Auto,
        ColorMode::Always => anstream::ColorChoice::Always,
        ColorMode::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Stub for systems without process groups: child programs outlive a killed process.
#[cfg(not(unix))]
mod supervisor {
    use std::process::ExitCode;

    use turnbuckle_client::stdio::ProcessObserver;

    /// Does nothing.
    #[derive(Debug, Default)]
    pub(crate) struct Supervisor;

    impl ProcessObserver for Supervisor {
        fn started(&self, _: u32) {}

        fn ended(&self, _: u32) {}
    }

    /// Returns `None`.
    pub(crate) fn run_if_started_as_one() -> Option<ExitCode> {
        None
    }
}
