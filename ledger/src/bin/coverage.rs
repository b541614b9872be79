//! Prints which requirements of the specification are proven by a test that passed.
//!
//! `coverage CLAIMS JUNIT [--missing | --json]`: the folder that `TURNBUCKLE_CLAIMS` named during the
//! run, and the report that nextest wrote. Exits 0 with the figures, 1 if a duty is neither proven nor listed (see
//! `gate`), 2 when the figures could not be made.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use turnbuckle_ledger::coverage::Coverage;
use turnbuckle_ledger::gate::{self, Gate};
use turnbuckle_ledger::side::Side;
use turnbuckle_ledger::{claim, report, table};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(exit) => exit,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[&str]) -> io::Result<ExitCode> {
    let (claims, junit, print): (_, _, fn(&Coverage<'_>) -> io::Result<ExitCode>) = match *arguments
    {
        [claims, junit] => (claims, junit, print_figures),
        [claims, junit, "--missing"] => (claims, junit, print_missing),
        [claims, junit, "--json"] => (claims, junit, |coverage| {
            writeln!(io::stdout(), "{}", coverage.to_json())?;
            Ok(ExitCode::SUCCESS)
        }),
        _ => {
            return Err(io::Error::other(
                "usage: coverage CLAIMS JUNIT [--missing | --json]",
            ));
        }
    };
    let junit = fs::read_to_string(junit).map_err(|error| {
        io::Error::other(format!("no report of a test run at {junit}: {error}"))
    })?;
    print(&Coverage::of(
        table::all(),
        &claim::read(Path::new(claims))?,
        &report::passed(&junit),
    ))
}

fn print_figures(coverage: &Coverage<'_>) -> io::Result<ExitCode> {
    for (id, test) in coverage.failing() {
        writeln!(
            io::stderr(),
            "does not count: {id}, claimed by {} {}",
            test.binary,
            test.test
        )?;
    }
    let mut out = io::stdout().lock();
    write!(out, "{coverage}")?;
    let out_of_role: Vec<_> = coverage.out_of_role().map(|row| row.id).collect();
    let count = out_of_role.len();
    writeln!(out, "out of role, {count}: they bind authorization servers")?;
    writeln!(out, "  {}", out_of_role.join("\n  "))?;
    for (id, test) in coverage.unknown() {
        writeln!(
            out,
            "FAULT: {id} is claimed by {} {}, whose package stands for no side (ledger/src/side.rs)",
            test.binary, test.test
        )?;
    }
    let mut shut = !coverage.unknown().is_empty();
    for side in Side::ALL {
        let gate = Gate::judge(coverage, side, gate::exemptions());
        write!(out, "{gate}")?;
        shut |= !gate.faults().is_empty();
    }
    Ok(ExitCode::from(u8::from(shut)))
}

fn print_missing(coverage: &Coverage<'_>) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for (row, lacking) in coverage.missing() {
        let lacking: Vec<_> = lacking
            .iter()
            .map(|(side, dates)| format!("{side}: {}", dates.join(" ")))
            .collect();
        let lacking = lacking.join("; ");
        writeln!(out, "{}\t{}\t{lacking}\t{}", row.id, row.level, row.summary)?;
    }
    Ok(ExitCode::SUCCESS)
}
