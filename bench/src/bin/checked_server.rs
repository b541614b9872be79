//! `echo-server` once more, in a build that checks arguments and results against the schemas of the tools.

#[path = "echo_server.rs"]
mod echo_server;

fn main() -> Result<(), turnbuckle_bench::Failure> {
    echo_server::main()
}
