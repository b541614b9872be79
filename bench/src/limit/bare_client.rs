//! The limit of a client: the least that a program must do to make the same calls.
//!
//! No MCP library, no checks except whether the response is right. One write from a borrowed struct, one parse into another.

mod call;
mod http;
mod pipes;

use crate::{
    Failure,
    client::{Plan, Server},
    options::Options,
};

/// Makes the calls and prints their cost.
pub fn run(options: Options) -> Result<bool, Failure> {
    let plan = Plan::parse(options)?;
    let report = match &plan.server {
        Server::Url(url) => http::run(&plan, url)?,
        Server::Child(command) => pipes::run(&plan, command)?,
    };
    println!("{report}");
    Ok(true)
}
