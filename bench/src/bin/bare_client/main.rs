//! The limit of a client: the least that a program which makes the same calls has to do.
//!
//! No MCP library, no checks but whether the answer is right. One write from a borrowed struct, one parse into another.
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
    let said = match &plan.server {
        Server::Url(url) => http::run(&plan, url)?,
        Server::Child(command) => pipes::run(&plan, command)?,
    };
    println!("{said}");
    Ok(())
}
