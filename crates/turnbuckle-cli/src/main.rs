//! The command `turnbuckle`: calls MCP servers from a terminal.
//!
//! [`arguments`] is the command line, [`commands`] has a file for each command. [`servers`] finds servers in the
//! configurations that people have, [`trust`] asks before a project's commands run, [`known_tools`] before a tool is
//! called that has changed; both remember by [`state`]. [`logins`] are what the user is known by to servers that ask.
//! [`pairs`] makes arguments of calls, [`form`] and [`visit`] ask what a server wants to know, and [`output`] is what people
//! see. [`supervisor`] ends what we started if we are killed.

mod account;
mod arguments;
mod commands;
mod context;
mod credentials;
mod environment;
mod failure;
mod form;
mod known_tools;
#[cfg(feature = "tls")]
mod logins;
#[cfg(not(feature = "tls"))]
#[path = "no_logins.rs"]
mod logins;
mod memory;
mod output;
mod pairs;
mod place;
mod questions;
mod secret;
mod servers;
mod session;
mod state;
#[cfg(unix)]
mod stop_signals;
#[cfg(not(unix))]
#[path = "stop_ctrl_c.rs"]
mod stop_signals;
#[cfg(unix)]
mod supervisor;
#[cfg(not(unix))]
#[path = "no_supervisor.rs"]
mod supervisor;
mod target;
mod trust;
mod visit;
mod voice;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use arguments::{Arguments, Color};
use context::Context;
use environment::Environment;
use failure::Failure;
use voice::Voice;

fn main() -> ExitCode {
    if supervisor::is_supervisor() {
        return supervisor::run();
    }
    let arguments = Arguments::parse();
    choose_colours(arguments.options.color);
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = anstream::stderr().write_all(failure.render().as_bytes());
            failure.exit_code()
        }
    }
}

/// Runs the command on a runtime of its own, which waits for no thread that still reads the terminal.
fn run(arguments: Arguments) -> failure::Result {
    let environment = Environment::of_process()
        .map_err(|error| Failure::not_asked(format!("there is no current folder: {error}")))?;
    let context = Context {
        environment,
        options: arguments.options,
        voice: Voice::default(),
        supervisor: Arc::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(commands::run(arguments.command, &context));
    runtime.shutdown_background();
    if let Err(failure) = &done
        && let Some(document) = failure.as_document()
        && context.options.json
    {
        context.json(document)?;
    }
    done
}

fn choose_colours(color: Color) {
    match color {
        Color::Auto => anstream::ColorChoice::Auto,
        Color::Always => anstream::ColorChoice::Always,
        Color::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}
