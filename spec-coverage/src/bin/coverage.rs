//! Prints which requirements of the specification are proven by a test that passed.
//!
//! `coverage CLAIMS JUNIT [--missing | --json]`: the folder that `TURNBUCKLE_CLAIMS` named during the
//! run, and the report that nextest wrote. Exits 0 with the figures, 1 if a mandatory requirement is
//! neither proven nor listed (see `coverage_gate`), 2 if the input cannot be read.

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use turnbuckle_spec_coverage::{
    claim,
    coverage::Coverage,
    coverage_gate::{self, CoverageGate},
    report,
    side::Side,
    table,
};

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
        io::Error::other(format!("cannot read the test report {junit}: {error}"))
    })?;
    print(&Coverage::new(
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
            "VIOLATION: {id} is claimed by {} {}, and its package is not listed (spec-coverage/src/side.rs)",
            test.binary, test.test
        )?;
    }
    let mut failed = !coverage.unknown().is_empty();
    for side in Side::ALL {
        let gate = CoverageGate::evaluate(coverage, side, coverage_gate::exemptions());
        write!(out, "{gate}")?;
        failed |= !gate.violations().is_empty();
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn print_missing(coverage: &Coverage<'_>) -> io::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for (row, unproven) in coverage.missing() {
        let unproven: Vec<_> = unproven
            .iter()
            .map(|(side, dates)| format!("{side}: {}", dates.join(" ")))
            .collect();
        let unproven = unproven.join("; ");
        writeln!(
            out,
            "{}\t{}\t{unproven}\t{}",
            row.id, row.level, row.summary
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
