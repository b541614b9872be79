//! The benchmarks, and the servers and clients that they measure: one binary. Its first argument names the program.
//!
//! A separate binary for each would be linked, and optimized across crates, once for each.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod programs;

use std::process::ExitCode;

use turnbuckle_bench::options::Options;

fn main() -> ExitCode {
    let mut options = Options::from_process();
    let Some(name) = options.verb() else {
        return list(options.switch("--help"));
    };
    match programs::run(&name, options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the programs; without `--help`, the lack of a name is an error.
fn list(is_requested: bool) -> ExitCode {
    if is_requested {
        println!("{}", programs::list());
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", programs::list());
    ExitCode::from(2)
}
