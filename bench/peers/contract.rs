//! The contract of every measured server, whatever its library: its command line, and the arguments of its tools.
//!
//! Each server includes this file as a module. As a package it would count among the crates that a peer needs.

#![allow(dead_code, reason = "not every peer can do all of it")]

use std::{error::Error, net::SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error of a program that is only measured.
pub type Failure = Box<dyn Error + Send + Sync>;

/// The command line `--listen ADDRESS | --stdio [--tools N] [--more]`, and the switches of one peer.
pub struct Contract {
    /// The transport to serve.
    pub place: ServeOn,
    /// The number of tools in addition to `echo` and `add`, not counting those of `more`.
    pub extra: usize,
    /// Whether to add `steps` and `announce`.
    pub more: bool,
    /// The given switches of this peer.
    pub switches: Vec<String>,
}

/// The transport of a server.
#[derive(Clone, Copy)]
pub enum ServeOn {
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
                "--listen" => place = Some(ServeOn::Http(value()?.parse()?)),
                "--stdio" => place = Some(ServeOn::Stdio),
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

/// Returns the names and descriptions of this many further tools.
pub fn extra_tools(count: usize) -> impl Iterator<Item = (String, String)> {
    (0..count).map(|number| {
        let description =
            format!("Looks for something at place {number:03}, and says what it found");
        (format!("tool-{number:03}"), description)
    })
}

/// The description of `echo`.
pub const ECHO: &str = "Says the message back";

/// The description of `add`.
pub const ADD: &str = "Adds two numbers";

/// The result of each of the further tools.
pub const FOUND: &str = "found nothing";

/// The description of `steps`.
pub const STEPS: &str = "Reports three steps, then is done";

/// The result of `steps`.
pub const DONE: &str = "done";

/// The description of `announce`.
pub const ANNOUNCE: &str = "Tells everyone who listens that the tools changed";

/// The result of `announce`.
pub const TOLD: &str = "told";

/// The number of progress notifications of `steps`.
pub const STEP_COUNT: u8 = 3;

// The arguments of `echo`. These types lack documentation, which would be part of the schema.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Echo {
    /// What to say back.
    pub message: String,
}

// The arguments of `add`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Add {
    /// The first number.
    pub a: f64,
    /// The second number.
    pub b: f64,
}

// The result of `add`.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Sum {
    /// Both numbers together.
    pub sum: f64,
}

// The arguments of each of the further tools.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Order {
    /// What is to be looked for.
    pub query: String,
    /// How many results are wanted at most.
    pub limit: u32,
    /// Where to look, as a path from the top.
    pub place: String,
}
