//! Is the other side right? The specification as rules that any server, or client, can be checked against.
//!
//! A [`Rule`] knows which rows of the requirements ledger it judges, and how to find out. [`check_server`] runs all that apply
//! against a [`Target`], in every revision that it speaks, and makes a [`Report`] of what was seen.
//!
//! - [`rule`]: a rule, and [`catalogue`]: all of them.
//! - `wire`: how bytes reach the other side, and `tape`: all that was said.
//! - `visit`: a server, met in one revision on one transport; `session`: a conversation with it.
//! - `server`, `client`: the rules, a file for each area.
//! - [`report`]: what came of it, and how it is shown.
//! - [`checklist`]: the lines of the compliance checklist, with the rules that judge them.

pub mod baseline;
pub mod catalogue;
pub mod checklist;
mod client;
pub mod compliance;
mod discovery;
mod lives;
mod options;
mod outcome;
mod overheard;
mod reach;
pub mod report;
pub mod rule;
mod run;
mod secret;
mod server;
mod session;
mod shape;
mod speech;
mod tape;
mod target;
mod trials;
mod visit;
mod wire;

pub use client::{BadCommand, ClientTarget, Dial, check_client, stdio_bridge};
pub use options::{Options, Progress};
pub use reach::NotChecked;
pub use report::Report;
pub use rule::Rule;
pub use run::check_server;
pub use target::Target;
