//! The limit of a client: the least that a program must do to make the same calls.
//!
//! No MCP library, no checks except whether the response is right. One write from a borrowed struct, one parse into another.
#![expect(clippy::print_stdout, reason = "a command prints what it measured")]

mod call;
mod http;
mod pipes;

use turnbuckle_bench::{
    Failure,
    client::{Plan, Server},
};

fn main() -> Result<(), Failure> {
    let plan = Plan::from_process()?;
    let report = match &plan.server {
        Server::Url(url) => http::run(&plan, url)?,
        Server::Child(command) => pipes::run(&plan, command)?,
    };
    println!("{report}");
    Ok(())
}
