//! Checks clients: runs a client against a mock server and records what it sends.
//!
//! - `target`, `command`: the client and how it is launched, over stdio through `stdio_bridge`.
//! - `host`: accepts connections; `server`: decides on replies, as lists of `script` steps; `scenario`: special
//!   behavior.
//! - `run`, `scenario_run`: one run of the client per scenario, and the messages recorded in it.
//!
//! The rules are in [`client_rules`](crate::client_rules).

mod command;
mod default_replies;
mod features;
mod host;
mod run;
pub(crate) mod scenario;
pub(crate) mod scenario_run;
mod script;
mod server;
mod target;

pub use self::{
    command::{ClientCommandError, stdio_bridge},
    run::check_client,
    target::{ClientTarget, MockServerAddress},
};
pub(crate) use self::{scenario::Scenario, scenario_run::ScenarioRuns};
