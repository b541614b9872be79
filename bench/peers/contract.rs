//! What every measured server is asked for, whichever library it stands on: its command line, and what its tools take.
//!
//! Each server includes this file as a module. As a package it would count among the crates that a peer needs.

#![allow(dead_code, reason = "not every peer can do all of it")]

use std::{error::Error, net::SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What can go wrong in a program that is only measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The command line `--listen ADDRESS | --stdio [--tools N] [--more]`, and the switches of one peer.
pub struct Contract {
    /// Where to serve.
    pub place: Place,
    /// How many tools there are beside `echo` and `add`, not counting those of `more`.
    pub extra: usize,
    /// Whether `steps` and `announce` are there too.
    pub more: bool,
    /// Which of the peer's own switches were given.
    pub switches: Vec<String>,
}

/// Where a server serves.
#[derive(Clone, Copy)]
pub enum Place {
    /// Streamable HTTP; port 0 is any that is free.
    Http(SocketAddr),
    /// Standard input and output.
    Stdio,
}

impl Contract {
    /// Reads the arguments of this process; `switches` are those that only this peer has.
    pub fn from_process(switches: &[&str]) -> Result<Contract, Failure> {
        let mut place = None;
        let (mut extra, mut more, mut given) = (0, false, Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or("an option lacks its value");
            match &*argument {
                "--listen" => place = Some(Place::Http(value()?.parse()?)),
                "--stdio" => place = Some(Place::Stdio),
                "--tools" => extra = value()?.parse::<usize>()?.saturating_sub(2),
                "--more" => more = true,
                other if switches.contains(&other) => given.push(argument),
                other => return Err(format!("unknown argument `{other}`").into()),
            }
        }
        Ok(Contract {
            place: place.ok_or("usage: --listen ADDRESS | --stdio [--tools N] [--more]")?,
            extra,
            more,
            switches: given,
        })
    }
}

/// Returns the names and descriptions of so many further tools.
pub fn extra_tools(count: usize) -> impl Iterator<Item = (String, String)> {
    (0..count).map(|number| {
        let description =
            format!("Looks for something at place {number:03}, and says what it found");
        (format!("tool-{number:03}"), description)
    })
}

/// What `echo` does.
pub const ECHO: &str = "Says the message back";

/// What `add` does.
pub const ADD: &str = "Adds two numbers";

/// What each of the further tools answers.
pub const FOUND: &str = "found nothing";

/// What `steps` does.
pub const STEPS: &str = "Reports three steps, then is done";

/// What `steps` answers.
pub const DONE: &str = "done";

/// What `announce` does.
pub const ANNOUNCE: &str = "Tells everyone who listens that the tools changed";

/// What `announce` answers.
pub const TOLD: &str = "told";

/// How many steps `steps` takes.
pub const STEP_COUNT: u8 = 3;

// What `echo` takes. Like those below it has no documentation, which would be part of the schema.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Echo {
    /// What to say back.
    pub message: String,
}

// What `add` takes.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Add {
    /// The first number.
    pub a: f64,
    /// The second number.
    pub b: f64,
}

// What `add` returns.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Sum {
    /// Both numbers together.
    pub sum: f64,
}

// What each of the further tools takes.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Order {
    /// What is to be looked for.
    pub query: String,
    /// How many results are wanted at most.
    pub limit: u32,
    /// Where to look, as a path from the top.
    pub place: String,
}
