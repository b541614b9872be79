//! Prints what one call costs in user-space instructions, beside the least it could cost.
//!
//! Runs `echo-server` and `bare`, which lie beside this program, under callgrind. Counted
//! instructions do not depend on the load of the machine, so a budget on them can be a test.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod callgrind;
mod report;
mod scenario;
mod wire;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use turnbuckle_bench::{Failure, options::Options, process::beside_this_program};

use crate::{
    callgrind::Callgrind,
    report::{Report, Row},
    scenario::{SCENARIOS, Scenario, Server},
};

const USAGE: &str = "\
usage: instructions [--only NAME] [--calls N] [--keep DIR] [--json] [--check]

  --only NAME  run the scenarios whose name contains NAME
  --calls N    count N calls instead of the scenario's own number
  --keep DIR   leave the profiles there, for callgrind_annotate
  --json       print one JSON object
  --check      exit 1 if a budget is exceeded";

fn main() -> ExitCode {
    match run(Options::from_process()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether the answer is yes: every budget is kept, or nobody asked.
fn run(mut options: Options) -> Result<bool, Failure> {
    if options.switch("--help") {
        println!("{USAGE}");
        return Ok(true);
    }
    let (json, check) = (options.switch("--json"), options.switch("--check"));
    let only = options.value::<String>("--only")?.unwrap_or_default();
    let calls = options.value("--calls")?;
    let keep = options.value::<PathBuf>("--keep")?;
    options.finish()?;

    let chosen: Vec<_> = SCENARIOS
        .iter()
        .filter(|scenario| scenario.name.contains(&only))
        .collect();
    if chosen.is_empty() {
        return Err(format!("no scenario is called `{only}`").into());
    }
    let callgrind = Callgrind::new(keep)?;
    let bare = beside_this_program("bare")?;
    let product = match beside_this_program("echo-server") {
        Ok(path) => Some(path),
        Err(error) if check => return Err(error),
        Err(error) => {
            eprintln!("only the limit is measured: {error}");
            None
        }
    };

    let mut report = Report::default();
    for scenario in chosen {
        eprintln!("{} …", scenario.name);
        report
            .rows
            .push(row(&callgrind, scenario, calls, &bare, product.as_deref())?);
    }
    println!("{}", if json { report.json() } else { report.table() });
    Ok(!check || report.within_budget())
}

fn row(
    callgrind: &Callgrind,
    scenario: &'static Scenario,
    calls: Option<u64>,
    bare: &Path,
    product: Option<&Path>,
) -> Result<Row, Failure> {
    let calls = calls.unwrap_or(scenario.calls);
    let limit = callgrind.per_call(scenario, calls, Server::Bare, bare)?;
    let product = match product {
        Some(path) => Some(callgrind.per_call(scenario, calls, Server::Product, path)?),
        None => None,
    };
    Ok(Row {
        scenario,
        limit,
        product,
    })
}
