//! The rules for clients: we play the server.
//!
//! - `target`, `command`: the client, and how it is run; `bridge`: how one on stdio reaches us.
//! - `stage`: where a server is played; `part`: what it says, as a list of `cue`s; `scene`: what is special about it.
//! - `take`: what came of a scene; `rules`: what is right about it, a file for each area.

mod bridge;
mod command;
mod cue;
mod part;
mod query;
mod rules;
mod run;
mod scene;
mod stage;
mod take;
mod target;

pub use self::bridge::stdio_bridge;
pub use self::command::BadCommand;
pub(crate) use self::rules::AREAS;
pub use self::run::check_client;
pub(crate) use self::scene::Scene;
pub(crate) use self::take::Takes;
pub use self::target::{ClientTarget, Dial};
